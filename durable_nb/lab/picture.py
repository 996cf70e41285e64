"""A crash matrix as a heat map: HTML that needs no kernel, and a text twin. Pure.

A verdict is a word as well as a colour; the colours are tints over whatever theme is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from durable_nb.core.text import aligned, visible
from durable_nb.lab.points import WHENS

_TINTS = {
    "exact": "rgba(46,139,87,0.18)",
    "repeated": "rgba(194,124,14,0.30)",
    "lost": "rgba(208,69,59,0.35)",
    "diverged": "rgba(140,80,190,0.28)",
    "stuck": "rgba(122,130,142,0.40)",
}
_STEPS = {"hitl_pause": " (the pause)", "resume": " (the answer)"}
_CELL = "padding:3px 10px;text-align:left;border:1px solid rgba(122,130,142,0.35)"
_MONO = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:12px"


class Square(NamedTuple):
    """One kill: at which row, when, and what came of it."""

    number: int
    node: str
    step: str
    when: str
    verdict: str
    what: str
    wrap: str

    @property
    def name(self) -> str:
        """The node, and what row of it is meant where it has several."""
        return self.node + _STEPS.get(self.step, "")


class Problem(NamedTuple):
    """Kills of one step that went alike, and not as they should."""

    name: str
    whens: tuple[str, ...]
    verdict: str
    what: str
    wrap: str

    def __str__(self) -> str:
        return f"{self.verdict}: killed {' or '.join(self.whens)} {self.name}, {self.what}"


def problems(squares: Sequence[Square]) -> list[Problem]:
    """What is not exact, the moments of one step that went alike together."""
    found: dict[tuple[int, str, str, str, str], list[str]] = {}
    for square in squares:
        if square.verdict not in ("", "exact"):
            alike = square.number, square.name, square.verdict, square.what, square.wrap
            found.setdefault(alike, []).append(square.when)
    return [
        Problem(name, tuple(whens), verdict, what, wrap)
        for (_, name, verdict, what, wrap), whens in found.items()
    ]


def text(title: str, squares: Sequence[Square], notes: Iterable[str]) -> str:
    """The map as aligned lines, and under it what is wrong and what to wrap."""
    grid = [("", *WHENS)] + [
        (name, *(_word(cells.get(when)) for when in WHENS)) for name, cells in _grid(squares)
    ]
    lines = [title, *aligned(grid)]
    for problem in problems(squares):
        lines.append(str(problem))
        lines += [f"    {problem.wrap}"] if problem.wrap else []
    return visible("\n".join([*lines, *notes]))


def html(title: str, squares: Sequence[Square], notes: Iterable[str]) -> str:
    """The map as a table that any viewer of notebooks shows."""
    head = "".join(f'<th scope="col" style="{_CELL}">{when}</th>' for when in WHENS)
    body = "".join(
        f'<tr><th scope="row" style="{_CELL};font-weight:normal;{_MONO}">{_esc(name)}</th>'
        f"{''.join(_square(cells.get(when)) for when in WHENS)}</tr>"
        for name, cells in _grid(squares)
    )
    said = "".join(_problem(problem) for problem in problems(squares))
    told = "".join(f'<div style="opacity:0.7">{_esc(note)}</div>' for note in notes)
    return (
        f'<div><div style="font-weight:600">{_esc(title)}</div>'
        f'<table style="border-collapse:collapse;margin:6px 0;font-size:13px"><tr><td></td>{head}</tr>{body}'
        f"</table>{said}{told}</div>"
    )


def _grid(squares: Sequence[Square]) -> list[tuple[str, dict[str, Square]]]:
    """The rows of the map: a name, and the kills by their moments."""
    rows: dict[int, tuple[str, dict[str, Square]]] = {}
    for square in squares:
        rows.setdefault(square.number, (square.name, {}))[1][square.when] = square
    return list(rows.values())


def _word(square: Square | None) -> str:
    return "-" if square is None else square.verdict or "?"


def _square(square: Square | None) -> str:
    tint = "transparent" if square is None else _TINTS.get(square.verdict, "transparent")
    title = "" if square is None else f' title="{_esc(square.what)}"'
    return f'<td style="{_CELL};background:{tint}"{title}>{_word(square)}</td>'


def _problem(problem: Problem) -> str:
    wrap = f'<div style="{_MONO};margin-left:16px">{_esc(problem.wrap)}</div>'
    return f"<div>{_esc(str(problem))}</div>{wrap if problem.wrap else ''}"


def _esc(said: str) -> str:
    r"""Text that stays text: no markup, and no `$` or `\` that a typesetter takes for mathematics."""
    return escape(visible(said)).replace("\\", "&#92;").replace("$", "&#36;")
