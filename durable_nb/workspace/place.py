"""A directory that the file tools cannot leave. Only the standard library: a child imports this too.

A path is walked one name at a time, each opened relative to the directory before it and never
through a link (`O_NOFOLLOW`), so that nothing which changes meanwhile can lead out. A link is read
and walked in the same way: links inside of the directory work, others are refused.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import BinaryIO

from durable_nb.workspace.footprint import identities, is_of_a_store, look_in

_LINKS = 40  # followed in one path, as in Linux
_FOLDER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_RDONLY
_FILE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_RDONLY


@dataclass(frozen=True, slots=True)
class Place:
    """A directory, and the stores in use whose files are not to be touched."""

    root: str
    stores: tuple[str, ...] = ()

    @contextmanager
    def reach(self, path: str, *, make_folders: bool = False) -> Iterator[Spot]:
        """The place that a path names, for as long as the context lasts.

        Raises `PermissionError` for what leads out and for a store's files, `FileNotFoundError`
        for a folder on the way that is not there.
        """
        with ExitStack() as held:
            yield _Walk(self, path, held, make_folders).to_the_end()


@dataclass(frozen=True, slots=True)
class Spot:
    """One name in an open directory. `path` is what the model called it."""

    folder: int
    name: str
    path: str

    def status(self) -> os.stat_result | None:
        return look_in(self.folder)(self.name)

    def open(self) -> BinaryIO:
        """The file, to be read. Raises a sentence for whatever is not a regular file."""
        if (status := self.status()) is None:
            raise FileNotFoundError(
                f"there is no file {self.path!r}; the tool list shows the files"
            )
        self.refuse_unless_file(status)
        descriptor = os.open(self.name, _FILE, dir_fd=self.folder)
        try:
            self.refuse_unless_file(os.fstat(descriptor))  # it may be another one by now
        except OSError:
            os.close(descriptor)
            raise
        return os.fdopen(descriptor, "rb")

    def refuse_unless_file(self, status: os.stat_result) -> None:
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(f"{self.path!r} is a directory; the tool list shows its files")
        if not stat.S_ISREG(status.st_mode):
            raise PermissionError(f"{self.path!r} is not a regular file; the file tools leave it")

    def replace(self, data: bytes, part: str) -> None:
        """Put `data` there at once: the file is the old one or the new one, never a part of it.

        Keeps the mode of a file that was there. `part` is the name of the file that is renamed.
        """
        before = self.status()
        if before is not None:
            self.refuse_unless_file(before)
            if not os.access(self.name, os.W_OK, dir_fd=self.folder):
                raise PermissionError(f"{self.path!r} is read-only; it was left as it is")
        self.discard(part)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            with os.fdopen(os.open(part, flags, 0o666, dir_fd=self.folder), "wb") as file:
                if before is not None:
                    os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        except BaseException:
            self.discard(part)
            raise
        os.fsync(self.folder)

    def discard(self, part: str) -> None:
        """Remove what a process that died may have left half written."""
        with suppress(FileNotFoundError):
            os.unlink(part, dir_fd=self.folder)


def refuse_path(path: str, what: str = "path") -> None:
    """Raise `PermissionError` for text that names something outside, whatever is on the disk."""
    if "\0" in path:
        raise ValueError(f"a {what} has no NUL in it; this one is {path!r}")
    if path.startswith(("/", "~")):
        raise PermissionError(
            f"the {what} {path!r} is absolute; the file tools stay in the working directory: "
            "give one relative to it"
        )
    if ".." in path.split("/"):
        raise PermissionError(
            f"the {what} {path!r} has '..' in it; the file tools stay in the working directory: "
            "give one that goes down from it"
        )


class _Walk:
    """From the root to where a path leads, with every directory on the way held open."""

    def __init__(self, place: Place, path: str, held: ExitStack, make_folders: bool) -> None:
        refuse_path(path)
        self._path, self._held, self._make = path, held, make_folders
        self._protected = identities(place.stores)
        self._names = deque(_names(path))
        self._links = 0
        self._folders = [self._opened(place.root, None)]

    def to_the_end(self) -> Spot:
        last = "."
        while self._names:
            last = "."
            name = self._names.popleft()
            if name == "..":  # of a link: a path with it was refused
                self._go_up()
            elif (target := self._link(name)) is not None:
                self._follow(name, target)
            else:
                self._refuse_store(name)
                if self._names:
                    self._go_down(name)
                else:
                    last = name
        return Spot(self._folders[-1], last, self._path)

    def _go_up(self) -> None:
        self._folders.pop()
        if not self._folders:
            raise PermissionError(f"{self._path!r} leads out of the working directory by a link")

    def _go_down(self, name: str) -> None:
        folder = self._folders[-1]
        if self._make:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
        self._folders.append(self._opened(name, folder))

    def _opened(self, name: str, folder: int | None) -> int:
        flags = _FOLDER if folder is not None else _FOLDER & ~getattr(os, "O_NOFOLLOW", 0)
        try:
            descriptor = os.open(name, flags, dir_fd=folder)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"there is no directory {name!r} ({self._path!r})") from error
        except OSError as error:
            raise NotADirectoryError(f"{name!r} is not a directory ({self._path!r})") from error
        self._held.callback(os.close, descriptor)
        return descriptor

    def _link(self, name: str) -> str | None:
        """Where a name links to; None if it is not a link."""
        try:
            return os.readlink(name, dir_fd=self._folders[-1])
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise

    def _follow(self, name: str, target: str) -> None:
        self._links += 1
        if target.startswith("/"):
            raise PermissionError(
                f"{self._path!r} leads out of the working directory by a link ({name} -> {target})"
            )
        if self._links > _LINKS:
            raise PermissionError(f"{self._path!r} goes through more than {_LINKS} links")
        self._names.extendleft(reversed(_names(target)))

    def _refuse_store(self, name: str) -> None:
        look = look_in(self._folders[-1])
        status = look(name)
        known = status is not None and (status.st_dev, status.st_ino) in self._protected
        if known or is_of_a_store(name, look):
            raise PermissionError(
                f"{self._path!r} belongs to the store of the runs; the file tools leave it alone"
            )


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]
