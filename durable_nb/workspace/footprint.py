"""Which files of a directory are a store's: told by their names alone, since opening one in the
process that uses the store loses commits (DESIGN section 6).

A SQLite store keeps a `-locks` beside its file: an empty file, or a folder of locks.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import TypeAlias

_LOCKS = "-locks"
SUFFIXES = ("", "-wal", "-shm", "-journal", _LOCKS)

Look: TypeAlias = Callable[[str], os.stat_result | None]


def is_of_a_store(name: str, look: Look) -> bool:
    """Whether `name` is a store's file; `look` gives the status of a name beside it, or None."""
    stems = (name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix))
    return any(stem and _is_store(stem, look) for stem in stems)


def look_in(folder: int | str) -> Look:
    """A look into a directory, given by its descriptor or its path. Links are not followed."""

    def look(name: str) -> os.stat_result | None:
        try:
            if isinstance(folder, int):
                return os.stat(name, dir_fd=folder, follow_symlinks=False)
            return os.stat(os.path.join(folder, name), follow_symlinks=False)
        except OSError:  # not there, or not to be seen
            return None

    return look


def identities(stores: tuple[str, ...]) -> frozenset[tuple[int, int]]:
    """The files of these stores as (device, inode), by which a hard link is known too."""
    look = look_in("")
    found = (look(store + suffix) for store in stores for suffix in SUFFIXES)
    return frozenset((status.st_dev, status.st_ino) for status in found if status is not None)


def _is_store(stem: str, look: Look) -> bool:
    locks = look(stem + _LOCKS)
    if locks is None or (file := look(stem)) is None:
        return False
    empty = stat.S_ISREG(locks.st_mode) and not locks.st_size
    return stat.S_ISREG(file.st_mode) and (empty or stat.S_ISDIR(locks.st_mode))
