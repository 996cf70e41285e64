"""Pieces of HTML that are safe wherever a notebook is read: pure functions.

Only inline styles that survive a sanitiser; colours are rules and tints over whatever theme is
there, and text keeps the theme's own colour. `$` and `\\` stand in elements of their own, so that
no typesetter takes what a model wrote for mathematics.
"""

from __future__ import annotations

from html import escape

from durable_nb.core.text import visible
from durable_nb.notebook.words import head

TONES = {
    "amber": ("#c27c0e", "rgba(194,124,14,0.10)"),
    "green": ("#2e8b57", "rgba(46,139,87,0.10)"),
    "slate": ("#7a828e", "rgba(122,130,142,0.10)"),
    "blue": ("#3b7dd8", "rgba(59,125,216,0.10)"),
    "red": ("#d0453b", "rgba(208,69,59,0.10)"),
}
MOST = 20_000  # characters of one text that a saved notebook carries

MONO = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:12px"
CODE = f"{MONO};background:none;padding:0;color:inherit"
PRE = "margin:0;padding:0;background:none;border:0;color:inherit;white-space:pre-wrap;overflow-wrap:anywhere"
GAP = "margin-top:8px"
MUTED = "opacity:0.7"


def esc(said: str) -> str:
    safe = escape(visible(said))
    return safe.replace("\\", "<span>\\</span>").replace("$", "<span>$</span>")


def code(said: str) -> str:
    return f'<code style="{CODE}">{esc(said)}</code>'


def command(said: str) -> str:
    """A line to type, which one click selects whole."""
    return f'<code style="{CODE};user-select:all">{esc(said)}</code>'


def folded(said: str, most: int, face: str = "") -> str:
    """Text as written; beyond `most` characters, its head, and the rest behind a fold."""
    style = f"{PRE};{'font-family:inherit;font-size:13px' if face else MONO}"
    if len(said) <= most:
        return f'<pre style="{style}">{esc(said)}</pre>'
    return (
        f'<pre style="{style}">{esc(said[:most])}…</pre>'
        f'<details><summary style="{MUTED};cursor:pointer">{len(said):,} characters</summary>'
        f'<pre style="{style}">{esc(head(said, MOST))}</pre></details>'
    )


def alert(why: str, *, indent: str = "0") -> str:
    """What is wrong, as HTML that a screen reader reads out when it appears."""
    if not why:
        return ""
    colour = TONES["red"][0]
    return f'<div role="alert" style="color:{colour};margin-left:{indent}">✗ {esc(why)}</div>'
