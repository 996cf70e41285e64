"""A portrait as escaped HTML and as plain text: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import singledispatch

from durable_nb.core.text import visible
from durable_nb.notebook.inspector import html as inside
from durable_nb.notebook.markup import (
    GAP,
    MONO,
    MOST,
    MUTED,
    PRE,
    TONES,
    code,
    command,
    esc,
    folded,
)
from durable_nb.notebook.parts import (
    Block,
    Commands,
    Fields,
    Fold,
    Lines,
    Part,
    Say,
    Steps,
    Table,
    Timeline,
)
from durable_nb.notebook.portrait import Live, Portrait
from durable_nb.notebook.words import duration, head, tail

SHORT = 300  # characters of one value that show at once
LONG = 2_000  # of a model's answer
ROWS = 40  # of a context, and of a folded timeline
HEARD, LINES = 400, 8  # of the end of a reply that comes: characters, and lines of them


def bundle(card: Portrait) -> dict[str, str]:
    """The card in both forms, as a display takes them."""
    return {"text/html": html(card), "text/plain": text(card)}


def html(card: Portrait) -> str:
    rule, tint = TONES[card.tone]
    facts = "".join(f" <span>· {esc(fact)}</span>" for fact in card.facts)
    top = (
        f'<div><span style="color:{rule}">{card.glyph}</span> <b>{esc(card.headline)}</b> &nbsp;'
        f'{code(card.execution_id)} <span style="{MUTED}">{facts}</span></div>'
    )
    style = (
        f"padding:10px 14px;margin:2px 0;border-left:4px solid {rule};background:{tint};"
        "font-size:13px;line-height:1.5;max-width:900px;box-sizing:border-box"
    )
    return f'<div style="{style}">{top}{"".join(map(_html, card.parts))}</div>'


def text(card: Portrait) -> str:
    facts = " · ".join((card.execution_id, *card.facts))
    lines = [f"{card.glyph} {card.headline} · {visible(facts)}", *map(_text, card.parts)]
    return "\n".join(line for line in lines if line)


def live(step: Live) -> dict[str, str]:
    """What stands under a card while its step is in flight, in both forms: the end of what has come
    of the reply, however long that is."""
    doing = f"{step.tool} is running" if step.tool else "asking the model"
    took = f"{doing} · {duration(step.seconds)}"
    said = visible(tail(step.text, HEARD, LINES))
    rule, tint = TONES["blue"]
    style = (
        f"padding:6px 14px 8px;margin:0 0 2px;border-left:4px solid {rule};background:{tint};"
        "font-size:13px;line-height:1.5;max-width:900px;box-sizing:border-box"
    )
    block = f'<div style="white-space:pre-wrap;overflow-wrap:anywhere">{esc(said)}</div>'
    top = f'<div style="{MUTED}">{esc(took)}</div>'
    return {
        "text/html": f'<div style="{style}">{top}{block if said else ""}</div>',
        "text/plain": f"{visible(took)}\n{said}".rstrip("\n"),
    }


def pieces(parts: Iterable[Part]) -> str:
    """Parts alone, as HTML: what stands among widgets."""
    inner = "".join(map(_html, parts))
    return f'<div style="font-size:13px;line-height:1.5;margin-bottom:6px">{inner}</div>'


@singledispatch
def _html(part: Part) -> str:
    raise NotImplementedError(part)


@singledispatch
def _text(part: Part) -> str:
    raise NotImplementedError(part)


@_html.register
def _(part: Say) -> str:
    before, call, after = head(part.text, LONG).partition(part.code or "\0")
    said = esc(before) + (code(call) if part.code and call else esc(call)) + esc(after)
    return f'<div style="{GAP}">{said}</div>'


@_text.register
def _(part: Say) -> str:
    return visible(head(part.text, LONG))


@_html.register
def _(part: Fields) -> str:
    left = f"padding:0 16px 0 0;text-align:left;vertical-align:top;border:0;color:inherit;{MONO};{MUTED}"
    right = f"padding:0;text-align:left;vertical-align:top;border:0;color:inherit;{MONO}"
    rows = "".join(
        f'<tr style="background:none"><td style="{left}">{esc(head(name, SHORT))}</td>'
        f'<td style="{right}">{folded(value, SHORT)}</td></tr>'
        for name, value in part.values[:ROWS]
    )
    table = (
        f'<table style="border-collapse:collapse;margin:0;border:0;color:inherit">{rows}</table>'
    )
    return f'<div style="{GAP}"><b>{esc(head(part.title, SHORT))}</b>{table}{esc(_cut(part.values))}</div>'


@_text.register
def _(part: Fields) -> str:
    shown = (
        f"  {head(name, SHORT)}: {head(value, SHORT)}" if name else head(value, SHORT)
        for name, value in part.values[:ROWS]
    )
    return visible("\n".join(filter(None, (head(part.title, SHORT), *shown, _cut(part.values)))))


@_html.register
def _(part: Block) -> str:
    if not part.text:
        return ""
    rest = len(part.text) > MOST and part.all_of_it
    whole = f'<div style="{MUTED}">all of it: {code(part.all_of_it)}</div>' if rest else ""
    return f'<div style="{GAP}">{folded(part.text, LONG, face="inherit")}{whole}</div>'


@_text.register
def _(part: Block) -> str:
    more = f"\nall of it: {part.all_of_it}" if len(part.text) > LONG and part.all_of_it else ""
    return visible(head(part.text, LONG) + more)


@_html.register
def _(part: Steps) -> str:
    count = f"{len(part.lines)} step{'' if len(part.lines) == 1 else 's'}"
    lines = esc("\n".join(_few(part)))
    return (
        f'<details style="{GAP}"><summary style="{MUTED};cursor:pointer">{count}</summary>'
        f'<pre style="{PRE};{MONO};overflow-wrap:normal;white-space:pre;overflow-x:auto;'
        f'margin-top:4px">{lines}</pre></details>'
    )


@_text.register
def _(part: Steps) -> str:
    return ""


@_html.register
def _(part: Commands) -> str:
    rows = "".join(
        f'<div>{command(typed)} <span style="{MUTED}">&nbsp;{esc(does)}</span></div>'
        for typed, does in part.lines
    )
    return f'<div style="{GAP}">{rows}</div>'


@_text.register
def _(part: Commands) -> str:
    return "\n".join(f"{visible(typed)}   ({does})" for typed, does in part.lines)


_html.register(Timeline, lambda part: inside.timeline_html(part, _html))
_text.register(Timeline, lambda part: inside.timeline_text(part, _text))
_html.register(Fold, lambda part: inside.fold_html(part, _html))
_text.register(Fold, inside.fold_text)
_html.register(Table, inside.table_html)
_text.register(Table, inside.table_text)
_html.register(Lines, inside.lines_html)
_text.register(Lines, inside.lines_text)


def _few(part: Steps) -> Sequence[str]:
    if len(part.lines) <= ROWS:
        return part.lines
    return (*part.lines[:ROWS], f"… and {len(part.lines) - ROWS} more: %durable show")


def _cut(values: Sequence[object]) -> str:
    return f"… and {len(values) - ROWS} more" if len(values) > ROWS else ""
