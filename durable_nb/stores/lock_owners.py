"""Which process holds a claim's lock. The kernel does not say so of these locks; Linux shows the
open files of each process, with the locks that were taken through them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from durable_nb.stores.locks import locks_for, side_of

_PROC = Path("/proc")


def owners_of(path: Path) -> dict[int, str]:
    """Who holds each claim of the store at `path`, as `process 4242 (python worker.py)`."""
    locks = locks_for(path)
    try:
        held = locks.held()
    finally:
        locks.close()
    owners = dict.fromkeys(held, "a process that cannot be seen from here")
    if held:
        found = _holders(side_of(path))
        owners.update((byte, who) for byte, who in found if byte in owners)
    return owners


def _holders(side: Path) -> Iterator[tuple[int, str]]:
    """Each locked byte of the file, and the process that locked it."""
    for process in _PROC.glob("[0-9]*"):
        for info in _descriptors(process, side):
            for line in info.splitlines():
                if line.startswith("lock:") and "OFDLCK" in line:
                    first, last = map(int, line.split()[-2:])
                    for byte in range(first, last + 1):
                        yield byte, _name(process)


def _descriptors(process: Path, side: Path) -> Iterator[str]:
    """What the kernel says of each descriptor that the process has of the file."""
    with suppress(OSError):  # another user's process, or gone by now
        for descriptor in (process / "fd").iterdir():
            with suppress(OSError):  # closed by now
                if os.path.samefile(descriptor, side):
                    yield (process / "fdinfo" / descriptor.name).read_text()


def _name(process: Path) -> str:
    words = b""
    with suppress(OSError):  # gone by now
        words = (process / "cmdline").read_bytes()
    command = words.decode("utf-8", "replace").replace("\0", " ").strip()
    return f"process {process.name} ({command[:100]})"
