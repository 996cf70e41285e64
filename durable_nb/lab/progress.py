"""How far a long experiment is: one display in a notebook, one line in a terminal, else nothing."""

from __future__ import annotations

import builtins
import shutil
import sys
from collections.abc import Callable
from html import escape
from typing import Any

_WIDTH = 24


class Progress:
    """Shown while the block lasts. What is left to read afterwards is one line."""

    def __init__(self, title: str) -> None:
        self._title, self._note = title, ""
        self._done, self._all = 0, 0
        self._show = _screen()

    def __enter__(self) -> Progress:
        self._show(self)
        return self

    def __exit__(self, *raised: object) -> None:
        if raised[0] is not None:
            self._note = "interrupted; no child is left"
            self._show(self)
        if self._show is _write_over:
            sys.stderr.write("\n")

    def begin(self, steps: int, note: str) -> None:
        """There are so many steps; `note` is what is to be known about them."""
        self._all, self._note = steps, note
        self._show(self)

    def step(self) -> None:
        """One more is done."""
        self._done += 1
        self._show(self)

    def __str__(self) -> str:
        if not self._all:
            said = f"{self._title}: the run without a kill"
        else:
            filled = _WIDTH * self._done // self._all
            bar = "█" * filled + "░" * (_WIDTH - filled)
            said = f"{self._title}: {bar} {self._done}/{self._all} kills"
        return f"{said} · {self._note}" if self._note else said

    __repr__ = __str__

    def _repr_html_(self) -> str:
        style = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px"
        return f'<div role="status" style="{style}">{escape(str(self))}</div>'


def _screen() -> Callable[[Progress], object]:
    """What shows a progress here. IPython puts `display` among the builtins where it runs."""
    shell: Any = getattr(builtins, "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is not None:
        return _Display(vars(builtins)["display"]).show
    if sys.stderr.isatty():
        return _write_over
    return lambda progress: None


def _write_over(progress: Progress) -> None:
    room = shutil.get_terminal_size().columns - 1
    sys.stderr.write(f"\r\x1b[2K{str(progress)[:room]}")
    sys.stderr.flush()


class _Display:
    """One output of the cell, updated in place."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None

    def show(self, progress: Progress) -> None:
        if self._handle is None:
            self._handle = self._display(progress, display_id=True)
        else:
            self._handle.update(progress)
