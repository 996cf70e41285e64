"""Where in a tool's code it acts upon the world: files, processes, connections.

CPython says so itself, by audit events; so nothing has to be wrapped to be found.
"""

from __future__ import annotations

import linecache
import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from durable_nb.model.entries import Entry

_US = str(Path(__file__).parents[1])
_REMEMBERED = str(Path(_US, "runtime", "idempotent.py"))
_OUR_OWN = (f"{_US}/stores/", f"{_US}/runtime/", "<frozen importlib")
_NOT_THE_USERS = (
    _US + os.sep,
    "<frozen ",
    "<string>",  # what the lab's own server was started with
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
)
_CHANGES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EVENTS = frozenset(
    {
        *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink"),
        *("os.truncate", "os.chmod", "os.system", "os.exec", "os.posix_spawn"),
        *("subprocess.Popen", "socket.connect", "socket.sendto", "sqlite3.connect"),
    }
)
_CELL = re.compile(r"ipykernel_\d+|<ipython-input-")


@dataclass(frozen=True, slots=True)
class Place:
    """A line of somebody's code, and the function that it is in."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        if _CELL.search(self.file):
            return f"line {self.line} of its cell"
        return f"{Path(self.file).name}:{self.line}"

    @property
    def source(self) -> str:
        """The line as it is written, where it can be read."""
        return linecache.getline(self.file, self.line).strip()


@dataclass(frozen=True, slots=True)
class Act:
    """Something that a tool did, at its entry `number`: CPython's name of the `event`, and the
    `target` that it did it to.

    `place` is None where no line of the user's own was on the way. `is_wrapped`: within a function
    that is `@idempotent`.
    """

    number: int
    tool: str
    event: str
    target: str
    place: Place | None
    is_wrapped: bool


class Watch:
    """Notes what the tools of a run do in this process, from now on and for good."""

    def __init__(self) -> None:
        self.acts: list[Act] = []
        self._number, self._tool = 0, ""
        sys.addaudithook(self._hear)

    def wrote(self, entry: Entry, number: int) -> None:
        """The entry is on disk; what follows is its step."""
        self._number, self._tool = number, getattr(entry, "tool", None) or ""

    def let_go(self) -> None:
        """The process no longer drives the run."""
        self._tool = ""

    def _hear(self, event: str, given: tuple[Any, ...]) -> None:
        if not self._tool or not _is_change(event, given):
            return
        frames = list(_frames(sys._getframe(1)))
        if not frames[0].f_code.co_filename.startswith(_OUR_OWN):
            wrapped = any(frame.f_code.co_filename == _REMEMBERED for frame in frames)
            what = event, _target(event, given)
            self.acts.append(Act(self._number, self._tool, *what, _place(frames), wrapped))


def _is_change(event: str, given: tuple[Any, ...]) -> bool:
    if event != "open":
        return event in _EVENTS
    path, _, flags = given
    is_file = isinstance(path, str | bytes | os.PathLike) and path != os.devnull
    return is_file and isinstance(flags, int) and bool(flags & _CHANGES)


def _target(event: str, given: tuple[Any, ...]) -> str:
    """What was acted upon, in short: a path, an address, a command."""
    if event.startswith("socket."):
        return " ".join(map(str, given[1:]))
    first = given[0]
    return os.fsdecode(first) if isinstance(first, bytes | os.PathLike) else str(first)


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _place(frames: list[FrameType]) -> Place | None:
    """The innermost line that belongs to neither Python, nor a library, nor us."""
    for frame in frames:
        code = frame.f_code
        if not code.co_filename.startswith(_NOT_THE_USERS):
            return Place(code.co_filename, frame.f_lineno, code.co_name)
    return None
