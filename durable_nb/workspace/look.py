"""Listing and searching the files below a place. Links are shown and never followed; `.git` and a
store's files are passed over. Only the standard library: a child imports this too."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import islice
from typing import BinaryIO, NamedTuple

from durable_nb.workspace.footprint import identities, is_of_a_store, look_in
from durable_nb.workspace.place import Place, Spot, refuse_path

MAX_LISTED = 1_000  # names in one answer
MAX_FOUND = 200  # lines in one answer
_WIDTH = 300  # characters of a line that is shown
_PIECE = 65_536  # bytes of a line that are searched at once


class Entry(NamedTuple):
    """One name below a place, good until the next one is asked for."""

    spot: Spot
    status: os.stat_result


def listing(place: Place, path: str, pattern: str) -> str:
    """The names below a directory that match a glob, sorted, with sizes."""
    lines = [_line(entry) for entry in islice(_matching(place, path, pattern), MAX_LISTED + 1)]
    if len(lines) > MAX_LISTED:
        lines[-1] = f"[cut here: more than {MAX_LISTED:,} names; narrow the pattern or the path]"
    return "\n".join(lines) or "[nothing there matches]"


def search(place: Place, expression: str, path: str, pattern: str) -> str:
    """The lines that a regular expression matches, as `path:line: text`."""
    try:
        wanted = re.compile(expression)
    except re.error as error:
        raise ValueError(f"{expression!r} is not a regular expression: {error}") from error
    files = (
        entry.spot
        for entry in _candidates(place, path, pattern)
        if stat.S_ISREG(entry.status.st_mode)
    )
    found = (line for spot in files for line in _found(spot, wanted))
    lines = list(islice(found, MAX_FOUND + 1))
    if len(lines) > MAX_FOUND:
        lines[-1] = f"[cut here: more than {MAX_FOUND:,} lines match; narrow the search]"
    return "\n".join(lines) or "[no line matches]"


def _candidates(place: Place, path: str, pattern: str) -> Iterator[Entry]:
    """The one file that a path names, or what matches below it."""
    with place.reach(path) as spot:
        status = spot.status()
        if status is not None and stat.S_ISREG(status.st_mode):
            yield Entry(spot, status)
            return
    yield from _matching(place, path, pattern)


def _matching(place: Place, path: str, pattern: str) -> Iterator[Entry]:
    refuse_path(pattern, "pattern")
    globs = _globs(pattern)
    with place.reach(path) as spot:
        status = spot.status()
        if status is None:
            raise FileNotFoundError(f"there is no directory {path!r}")
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(f"{path!r} is not a directory; the tool read shows a file")
        prefix = [name for name in path.split("/") if name not in ("", ".")]
        for entry in _below(spot, identities(place.stores)):
            below = entry.spot.path.split("/")
            if _matches(below, globs):
                spot_there = replace(entry.spot, path="/".join([*prefix, *below]))
                yield Entry(spot_there, entry.status)


def _below(spot: Spot, protected: frozenset[tuple[int, int]]) -> Iterator[Entry]:
    """Everything below a directory in the order of names; `path` is relative to it."""
    for top, folders, files, folder in os.fwalk(spot.name, dir_fd=spot.folder):
        inside = os.path.relpath(top, spot.name)
        look = look_in(folder)
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted([*folders, *files]):
            status = look(name)
            if status is None or name == ".git" or is_of_a_store(name, look):
                continue
            if (status.st_dev, status.st_ino) not in protected:
                yield Entry(Spot(folder, name, os.path.normpath(f"{inside}/{name}")), status)


def _globs(pattern: str) -> list[str]:
    globs: list[str] = []
    for each in pattern.split("/"):
        if each not in ("", ".") and [each] != globs[-1:] * (each == "**"):
            globs.append(each)
    return globs


def _matches(names: Sequence[str], globs: Sequence[str]) -> bool:
    """Whether a path matches: `**` stands for any number of directories, `*` stays within a name."""
    match globs:
        case []:
            return not names
        case ["**", *rest]:
            return any(_matches(names[at:], rest) for at in range(len(names) + 1))
        case [glob, *rest]:
            return bool(names) and fnmatchcase(names[0], glob) and _matches(names[1:], rest)
    raise AssertionError("a list is empty or has a first item")


def _line(entry: Entry) -> str:
    spot, status = entry
    if stat.S_ISDIR(status.st_mode):
        return f"{spot.path}/"
    if stat.S_ISLNK(status.st_mode):
        return f"{spot.path} -> {os.readlink(spot.name, dir_fd=spot.folder)}"
    return f"{spot.path}  ({status.st_size:,} bytes)"


def _found(spot: Spot, wanted: re.Pattern[str]) -> Iterator[str]:
    """The matching lines of a text file, or that it cannot be read."""
    try:
        with spot.open() as file:
            yield from _matches_in(file, spot.path, wanted)
    except OSError as error:
        yield f"{spot.path}: cannot be read ({error})"


def _matches_in(file: BinaryIO, path: str, wanted: re.Pattern[str]) -> Iterator[str]:
    """A line is searched in pieces if it is very long; a file is text as far as it has no NUL."""
    number = 1
    while (piece := file.readline(_PIECE)) and b"\0" not in piece:
        text = _text(piece)
        if wanted.search(text):
            yield f"{path}:{number}: {text[:_WIDTH]}{'…' * (len(text) > _WIDTH)}"
        number += piece.endswith(b"\n")


def _text(line: bytes) -> str:
    try:
        return line.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        return line.decode("latin-1").rstrip("\r\n")
