"""The inspector's own parts as HTML and as text: pure. `inner` draws a part that stands in one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from durable_nb.core.text import aligned, visible
from durable_nb.notebook.markup import GAP, MONO, MUTED, PRE, TONES, code, command, esc
from durable_nb.notebook.parts import Fold, Lines, Part, Step, Table, Timeline
from durable_nb.notebook.words import head

SHORT = 200  # characters of a cell of a table
LINE = 400  # characters of a changed line
FEW = 16  # changed lines of one text that show at once
MOST = 400  # changed lines of one text, and rows of a table

_INDENT = "  "
_UNDER = "    "
_SUMMARY = f"cursor:pointer;white-space:nowrap;{MONO};line-height:1.6"
_LINE = f"{PRE};white-space:pre;display:inline;{MONO};line-height:1.6"  # keeps its columns anywhere
_SIGNS = {"+ ": "green", "- ": "red"}
_CELL = f"padding:1px 18px 1px 0;text-align:left;vertical-align:top;border:0;color:inherit;{MONO}"


def timeline_html(part: Timeline, inner: Callable[[Part], str]) -> str:
    lines = aligned([[visible(each) for each in step.columns] for step in part.steps])
    drawn = "".join(
        _step_html(step, line, inner) for step, line in zip(part.steps, lines, strict=True)
    )
    return (
        f'<div style="{GAP}"><b>{esc(part.title)}</b>'
        f'<div style="overflow-x:auto;margin-top:2px">{drawn}</div>{_commands(part.more)}</div>'
    )


def timeline_text(part: Timeline, inner: Callable[[Part], str]) -> str:
    lines = aligned([[step.glyph, *map(visible, step.columns)] for step in part.steps])
    said: list[str] = [part.title]
    for step, line in zip(part.steps, lines, strict=True):
        said.append(f"{_INDENT}{line}")
        said += [f"{_INDENT}{_UNDER}{visible(each)}" for each in step.under]
        if step.opened:
            said += _indented(map(inner, step.parts))
    said += [f"{visible(typed)}   ({does})" for typed, does in part.more]
    return "\n".join(said)


def table_html(part: Table) -> str:
    def row(cells: Sequence[str], tag: str, more: str = "") -> str:
        inside = "".join(
            f'<{tag} style="{_CELL}{more}">{esc(head(each, SHORT))}</{tag}>' for each in cells
        )
        return f'<tr style="background:none">{inside}</tr>'

    top = row(part.head, "th", f";font-weight:normal;{MUTED}")
    body = "".join(row(each, "td") for each in part.rows[:MOST])
    return (
        f'<div style="{GAP}"><b>{esc(part.title)}</b><table style="border-collapse:collapse;'
        f'margin:0;border:0;color:inherit">{top}{body}</table>{esc(_cut(part.rows))}</div>'
    )


def table_text(part: Table) -> str:
    cells = [[visible(head(each, SHORT)) for each in row] for row in (part.head, *part.rows[:MOST])]
    lines = [f"{_INDENT}{line}" for line in aligned(cells)]
    return "\n".join(filter(None, (visible(part.title), *lines, _cut(part.rows))))


def fold_html(part: Fold, inner: Callable[[Part], str]) -> str:
    brief = f' <span style="{MUTED}">{esc(part.brief)}</span>' if part.brief else ""
    return (
        f'<details style="{GAP}"><summary style="cursor:pointer"><b>{esc(part.title)}</b>{brief}'
        f'</summary><div style="padding-left:14px">{"".join(map(inner, part.parts))}</div></details>'
    )


def fold_text(part: Fold) -> str:
    return visible(f"{part.title}: {part.brief}" if part.brief else part.title)


def lines_html(part: Lines) -> str:
    few = part.lines if len(part.lines) <= FEW + 1 else part.lines[:FEW]
    rest = part.lines[len(few) : MOST]
    more = (
        f'<details><summary style="{MUTED};cursor:pointer">{len(part.lines) - len(few):,} more '
        f"lines</summary>{_lines_html(rest)}{esc(_cut(part.lines))}</details>"
    )
    title = code(head(part.title, SHORT))
    return f'<div style="{GAP}">{title}{_lines_html(few)}{more if rest else ""}</div>'


def lines_text(part: Lines) -> str:
    lines = [f"{_INDENT}{visible(_short(line))}" for line in part.lines[:FEW]]
    cut = f"{_INDENT}… and {len(part.lines) - FEW:,} more lines" if part.lines[FEW:] else ""
    return "\n".join(filter(None, (visible(head(part.title, SHORT)), *lines, cut)))


def _step_html(step: Step, line: str, inner: Callable[[Part], str]) -> str:
    colour = f"color:{TONES[step.tone][0]}" if step.tone else MUTED
    under = "".join(
        f'<div style="{MUTED};padding-left:30px;white-space:pre-wrap;overflow-wrap:anywhere">'
        f"{esc(each)}</div>"
        for each in step.under
    )
    return (
        f'<details style="margin:0"{" open" if step.opened else ""}><summary style="{_SUMMARY}">'
        f'<span style="{colour}">{step.glyph}</span> <pre style="{_LINE}">{esc(line)}</pre>{under}'
        f"</summary>"
        f'<div style="padding:0 0 10px 30px">{"".join(map(inner, step.parts))}</div></details>'
    )


def _lines_html(lines: Sequence[str]) -> str:
    return f'<div style="overflow-x:auto">{"".join(map(_line_html, lines))}</div>'


def _line_html(line: str) -> str:
    tone = _SIGNS.get(line[:2])
    look = f"background:{TONES[tone][1]};border-left:2px solid {TONES[tone][0]}" if tone else MUTED
    return (
        f'<div style="{MONO};white-space:pre-wrap;overflow-wrap:anywhere;padding-left:6px;{look}">'
        f"{esc(_short(line))}</div>"
    )


def _commands(lines: Sequence[tuple[str, str]]) -> str:
    shown = "".join(
        f'<div>{command(typed)} <span style="{MUTED}">&nbsp;{esc(does)}</span></div>'
        for typed, does in lines
    )
    return f'<div style="margin-top:4px">{shown}</div>' if lines else ""


def _indented(parts: Iterator[str]) -> list[str]:
    return [f"{_INDENT}{_UNDER}{line}" for part in parts for line in part.split("\n") if line]


def _short(line: str) -> str:
    return head(line, LINE)


def _cut(values: Sequence[object]) -> str:
    return f"… and {len(values) - MOST} more" if len(values) > MOST else ""
