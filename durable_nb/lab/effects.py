"""What a run did to a directory, as lines that can be counted and compared."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from durable_nb.workspace.footprint import is_of_a_store, look_in

COMMITS = "commits of "
"""How an effect on a repository begins."""

_MOST = 1_048_576  # bytes of a file that are read as lines


def copied(source: Path | None, to: Path) -> None:
    """A copy of a directory without the files of stores, which nothing here may open; an empty
    directory where there is no source."""
    if source is None:
        to.mkdir()
    else:
        shutil.copytree(source, to, symlinks=True, ignore=_of_stores)


def changed(before: Path | None, after: Path) -> list[str]:
    """What is new in a directory since it was a copy of another one: lines of text, commits, and
    files that are other, or gone."""
    was = {} if before is None else dict(_files(before))
    now = dict(_files(after))
    lines = [f"{path}: gone" for path in sorted(was.keys() - now.keys())]
    for path, file in sorted(now.items()):
        if path not in was or _stamp(was[path]) != _stamp(file):
            lines += _news(path, was.get(path), file)
    return lines


def came(before: object, after: object) -> list[str]:
    """What has come between two answers of a user's callable: the new items of a list, the growth
    of a number. Any other answer stands for itself."""
    match before, after:
        case [list() | tuple(), list() | tuple()]:
            new = Counter(map(str, after)) - Counter(map(str, before))
            return sorted(new.elements())
        case [int(), int()]:
            return ["one more"] * (after - before)
        case _:
            return [str(after)]


def _news(path: str, was: Path | None, now: Path) -> Iterable[str]:
    text, before = _lines(now), [] if was is None else _lines(was)
    if text is None or before is None:
        return [f"{path}: {_digest(now)}"]
    before_git, is_of_git, _ = path.partition(".git/")
    name = f"{COMMITS}{before_git.rstrip('/') or '.'}" if is_of_git else path
    new = (Counter(text) - Counter(before)).elements()
    lost = (Counter(before) - Counter(text)).elements()
    found = [f"{name}: {line}" for line in new] + [f"{name}: no longer {line}" for line in lost]
    return found or [f"{path}: other"]


def _lines(path: Path) -> list[str] | None:
    """The lines of a file of text; None for what is not one."""
    if path.is_symlink():
        return [f"-> {os.readlink(path)}"]
    if not path.is_file() or path.stat().st_size > _MOST:
        return None
    try:
        lines = path.read_text("utf-8").splitlines()
    except UnicodeDecodeError:
        return None
    return [line.rpartition("\t")[2] for line in lines] if ".git" in path.parts else lines


def _digest(path: Path) -> str:
    if not path.is_file():
        return "not a file"
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{path.stat().st_size} bytes, {digest[:8]}"


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    """What counts below a directory. Of a repository that is the list of what was committed to
    `HEAD`: an object's name covers the time at which it was made."""
    for folder, folders, files in os.walk(root):
        look = look_in(folder)
        for name in (*files, *(each for each in folders if os.path.islink(Path(folder, each)))):
            if not is_of_a_store(name, look):
                path = Path(folder, name)
                yield path.relative_to(root).as_posix(), path
        if ".git" in folders:
            folders.remove(".git")
            log = Path(folder, ".git", "logs", "HEAD")
            if log.is_file():
                yield log.relative_to(root).as_posix(), log


def _stamp(path: Path) -> tuple[int, int, int]:
    status = path.lstat()
    return status.st_mode, status.st_size, status.st_mtime_ns


def _of_stores(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if is_of_a_store(name, look_in(folder))]
