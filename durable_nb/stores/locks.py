"""Who drives a run: one byte of a side file, locked while a claim lasts (DESIGN section 7).

The byte's offset is the claim's `writer`, a number drawn for it alone and stored in each of its
rows, so a newer claim makes an older byte mean nothing. The kernel drops the lock when the process
dies. Elsewhere than on Linux a locked file a claim does the same.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from durable_nb.stores import refusals

if TYPE_CHECKING:
    from filelock import FileLock

_FLOCK = "hhqqi4x"  # struct flock: type, whence, start, length, pid
_END = 2**63 - 1


class Locks(Protocol):
    def hold(self, writer: int) -> None:
        """Lock a claim for this process. It was drawn just now, so nobody else can hold it."""

    def drop(self, writer: int) -> None:
        """Let go of a claim; fine if it is not held."""

    def held(self) -> set[int]:
        """The claims that living processes hold, this one's included."""

    def close(self) -> None: ...


class ByteLocks:
    """Open-file-description locks: probed without being taken, and safe with any number of
    descriptors of the file in the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._guard = threading.Lock()
        self._holder = self._prober = -1
        _living.add(self)

    def hold(self, writer: int) -> None:
        with self._guard:
            self._open()
            _fcntl(self._holder, "F_OFD_SETLK", "F_WRLCK", writer, 1)

    def drop(self, writer: int) -> None:
        with self._guard:
            if self._holder >= 0:
                _fcntl(self._holder, "F_OFD_SETLK", "F_UNLCK", writer, 1)

    def held(self) -> set[int]:
        found: set[int] = set()
        with self._guard:
            if self._prober < 0 and not self._path.exists():
                return found
            self._open()
            unasked = [(0, _END)]
            while unasked:  # the kernel names any one lock of a range: ask again on both sides
                start, stop = unasked.pop()
                kind, at, length = _fcntl(
                    self._prober, "F_OFD_GETLK", "F_WRLCK", start, stop - start
                )
                if kind == "F_WRLCK":
                    found.update(range(at, at + length))
                    ranges = (start, at), (at + length, stop)
                    unasked += [(low, high) for low, high in ranges if low < high]
        return found

    def close(self) -> None:
        with self._guard:
            for descriptor in (self._holder, self._prober):
                if descriptor >= 0:
                    os.close(descriptor)
            self._holder = self._prober = -1

    def _open(self) -> None:
        if self._holder < 0:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self._holder = os.open(self._path, flags, 0o666)
            self._prober = os.open(self._path, flags, 0o666)
        elif not _same_file(self._path, self._holder):
            raise refusals.unusable(
                self._path, "was deleted while in use", "restart every process that uses the store"
            )

    def forget(self) -> None:
        """In a forked child: the descriptors go, the parent's locks stay."""
        self._guard = threading.Lock()
        self.close()


class FileLocks:
    """A locked file a claim. Probing takes a lock for a moment, so a claim can look held for that
    long; callers ask again. A forked child holds none of its parent's."""

    def __init__(self, path: Path) -> None:
        self._folder = path
        self._pid = os.getpid()
        self._held: dict[int, FileLock] = {}

    def hold(self, writer: int) -> None:
        from filelock import FileLock

        self._folder.mkdir(exist_ok=True)
        lock = FileLock(self._folder / str(writer), thread_local=False)
        lock.acquire(timeout=10, poll_interval=0.001)  # only somebody who looks can be in the way
        self._mine()[writer] = lock

    def drop(self, writer: int) -> None:
        if writer in self._mine():
            self._mine().pop(writer).release()
            (self._folder / str(writer)).unlink(missing_ok=True)

    def held(self) -> set[int]:
        mine = set(self._mine())
        others = [path for path in self._folder.glob("*") if int(path.name) not in mine]
        return mine | {int(path.name) for path in others if not self._free(path)}

    def close(self) -> None:
        for writer in list(self._mine()):
            self.drop(writer)

    def _mine(self) -> dict[int, FileLock]:
        if self._pid != os.getpid():
            self._pid, self._held = os.getpid(), {}
        return self._held

    def _free(self, path: Path) -> bool:
        from filelock import FileLock, Timeout

        try:
            with FileLock(path, thread_local=False).acquire(timeout=0):
                path.unlink(missing_ok=True)
                return True
        except Timeout:
            return False


def locks_for(path: Path) -> Locks:
    """The locks of a store, in a side file (or folder) of their own."""
    side = side_of(path)
    return ByteLocks(side) if sys.platform == "linux" else FileLocks(side)


def side_of(path: Path) -> Path:
    """Where a store's locks are: one place, whatever links lead to the store."""
    return Path(os.path.realpath(path) + "-locks")


def _fcntl(
    descriptor: int, command: str, kind: str, start: int, length: int
) -> tuple[str, int, int]:
    import fcntl

    code = getattr(fcntl, command)
    flock = struct.pack(_FLOCK, getattr(fcntl, kind), os.SEEK_SET, start, length, 0)
    found, _, at, span, _ = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, code, flock))
    return ("F_UNLCK" if found == fcntl.F_UNLCK else "F_WRLCK"), at, span


def _same_file(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


_living: weakref.WeakSet[ByteLocks] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for locks in list(_living):
        locks.forget()


with contextlib.suppress(AttributeError):  # a platform without fork
    os.register_at_fork(after_in_child=_after_fork_in_child)
