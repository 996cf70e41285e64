"""A portrait as escaped HTML and as plain text: pure functions.

Only inline styles that survive a sanitiser; colours are rules and tints over whatever theme is
there, and text keeps the theme's own colour. `$` and `\\` stand in elements of their own, so that
no typesetter takes what a model wrote for mathematics.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from html import escape

from durable_nb.core.text import visible
from durable_nb.notebook.parts import Block, Commands, Fields, Part, Say, Steps
from durable_nb.notebook.portrait import Live, Portrait
from durable_nb.notebook.words import duration, head, tail

TONES = {
    "amber": ("#c27c0e", "rgba(194,124,14,0.10)"),
    "green": ("#2e8b57", "rgba(46,139,87,0.10)"),
    "slate": ("#7a828e", "rgba(122,130,142,0.10)"),
    "blue": ("#3b7dd8", "rgba(59,125,216,0.10)"),
    "red": ("#d0453b", "rgba(208,69,59,0.10)"),
}
SHORT = 300  # characters of one value that show at once
LONG = 2_000  # of a model's answer
MOST = 20_000  # that a saved notebook carries
ROWS = 40  # of a context, and of a folded timeline
HEARD, LINES = 400, 8  # of the end of a reply that comes: characters, and lines of them

_MONO = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:12px"
_CODE = f"{_MONO};background:none;padding:0;color:inherit"
_PRE = "margin:0;padding:0;background:none;border:0;color:inherit;white-space:pre-wrap;overflow-wrap:anywhere"
_GAP = "margin-top:8px"
_MUTED = "opacity:0.7"


def bundle(card: Portrait) -> dict[str, str]:
    """The card in both forms, as a display takes them."""
    return {"text/html": html(card), "text/plain": text(card)}


def html(card: Portrait) -> str:
    rule, tint = TONES[card.tone]
    facts = "".join(f" <span>· {_esc(fact)}</span>" for fact in card.facts)
    top = (
        f'<div><span style="color:{rule}">{card.glyph}</span> <b>{_esc(card.headline)}</b> &nbsp;'
        f'{_code(card.execution_id)} <span style="{_MUTED}">{facts}</span></div>'
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
    block = f'<div style="white-space:pre-wrap;overflow-wrap:anywhere">{_esc(said)}</div>'
    top = f'<div style="{_MUTED}">{_esc(took)}</div>'
    return {
        "text/html": f'<div style="{style}">{top}{block if said else ""}</div>',
        "text/plain": f"{visible(took)}\n{said}".rstrip("\n"),
    }


@singledispatch
def _html(part: Part) -> str:
    raise NotImplementedError(part)


@singledispatch
def _text(part: Part) -> str:
    raise NotImplementedError(part)


@_html.register
def _(part: Say) -> str:
    before, code, after = head(part.text, LONG).partition(part.code or "\0")
    said = _esc(before) + (_code(code) if part.code and code else _esc(code)) + _esc(after)
    return f'<div style="{_GAP}">{said}</div>'


@_text.register
def _(part: Say) -> str:
    return visible(head(part.text, LONG))


@_html.register
def _(part: Fields) -> str:
    left = f"padding:0 16px 0 0;text-align:left;vertical-align:top;border:0;color:inherit;{_MONO};{_MUTED}"
    right = f"padding:0;text-align:left;vertical-align:top;border:0;color:inherit;{_MONO}"
    rows = "".join(
        f'<tr style="background:none"><td style="{left}">{_esc(head(name, SHORT))}</td>'
        f'<td style="{right}">{_folded(value, SHORT)}</td></tr>'
        for name, value in part.values[:ROWS]
    )
    table = (
        f'<table style="border-collapse:collapse;margin:0;border:0;color:inherit">{rows}</table>'
    )
    return f'<div style="{_GAP}"><b>{_esc(head(part.title, SHORT))}</b>{table}{_esc(_cut(part.values))}</div>'


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
    whole = f'<div style="{_MUTED}">all of it: {_code(part.all_of_it)}</div>' if rest else ""
    return f'<div style="{_GAP}">{_folded(part.text, LONG, face="inherit")}{whole}</div>'


@_text.register
def _(part: Block) -> str:
    more = f"\nall of it: {part.all_of_it}" if len(part.text) > LONG and part.all_of_it else ""
    return visible(head(part.text, LONG) + more)


@_html.register
def _(part: Steps) -> str:
    count = f"{len(part.lines)} step{'' if len(part.lines) == 1 else 's'}"
    lines = _esc("\n".join(_few(part)))
    return (
        f'<details style="{_GAP}"{" open" if part.opened else ""}>'
        f'<summary style="{_MUTED};cursor:pointer">{count}</summary>'
        f'<pre style="{_PRE};{_MONO};overflow-wrap:normal;white-space:pre;overflow-x:auto;'
        f'margin-top:4px">{lines}</pre></details>'
    )


@_text.register
def _(part: Steps) -> str:
    return visible("\n".join(_few(part))) if part.opened else ""


@_html.register
def _(part: Commands) -> str:
    rows = "".join(
        f'<div>{_code(typed)} <span style="{_MUTED}">&nbsp;{_esc(does)}</span></div>'
        for typed, does in part.lines
    )
    return f'<div style="{_GAP}">{rows}</div>'


@_text.register
def _(part: Commands) -> str:
    return "\n".join(f"{visible(typed)}   ({does})" for typed, does in part.lines)


def _esc(said: str) -> str:
    safe = escape(visible(said))
    return safe.replace("\\", "<span>\\</span>").replace("$", "<span>$</span>")


def _code(said: str) -> str:
    return f'<code style="{_CODE}">{_esc(said)}</code>'


def _folded(said: str, most: int, face: str = "") -> str:
    """Text as written; beyond `most` characters, its head, and the rest behind a fold."""
    style = f"{_PRE};{'font-family:inherit;font-size:13px' if face else _MONO}"
    if len(said) <= most:
        return f'<pre style="{style}">{_esc(said)}</pre>'
    return (
        f'<pre style="{style}">{_esc(said[:most])}…</pre>'
        f'<details><summary style="{_MUTED};cursor:pointer">{len(said):,} characters</summary>'
        f'<pre style="{style}">{_esc(head(said, MOST))}</pre></details>'
    )


def _few(part: Steps) -> Sequence[str]:
    if part.opened or len(part.lines) <= ROWS:
        return part.lines
    return (*part.lines[:ROWS], f"… and {len(part.lines) - ROWS} more: %durable show")


def _cut(values: Sequence[object]) -> str:
    return f"… and {len(values) - ROWS} more" if len(values) > ROWS else ""
