"""`tree_hash`: one text that two directories share if the same files are in them."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator

from durable_nb.model.errors import InvalidInput
from durable_nb.workspace.footprint import is_of_a_store, look_in

_PIECE = 1_048_576


def tree_hash(directory: str | os.PathLike[str]) -> str:
    """64 hex digits over names, contents, executable bits, links as text and empty directories.

    Times, owners and other bits do not count, nor do `.git`, a store's files and a directory that
    holds nothing else than those of a store. Files are read in pieces; links are not followed.
    Raises `InvalidInput` for what is not a directory.
    """
    root = os.path.abspath(directory)
    if not os.path.isdir(root):
        raise InvalidInput(f"{root} is not a directory; name the one whose files are compared")
    total = hashlib.sha256()
    for record in sorted(_records(root)):
        total.update(b"".join(_framed(part) for part in record))
    return total.hexdigest()


def _records(root: str) -> Iterator[tuple[bytes, bytes, bytes]]:
    """(path, kind, content) of everything that counts below a directory, in any order."""
    folders = [""]
    while folders:
        inside = folders.pop()
        names = os.listdir(os.path.join(root, inside))
        look = look_in(os.path.join(root, inside))
        kept = [name for name in names if not is_of_a_store(name, look)]
        if inside and (kept or not names):
            yield os.fsencode(inside), b"directory", b""
        for name in kept:
            path = os.path.join(inside, name)
            mode = os.lstat(os.path.join(root, path)).st_mode
            if name == ".git":
                continue
            if stat.S_ISDIR(mode):
                folders.append(path)
            else:
                yield os.fsencode(path), *_leaf(os.path.join(root, path), mode)


def _leaf(path: str, mode: int) -> tuple[bytes, bytes]:
    """The kind and the content of what is not a directory."""
    if stat.S_ISLNK(mode):
        return b"link", os.fsencode(os.readlink(path))
    if not stat.S_ISREG(mode):
        return b"special", str(stat.S_IFMT(mode)).encode()
    return b"program" if mode & stat.S_IXUSR else b"file", _content(path)


def _content(path: str) -> bytes:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.digest()


def _framed(part: bytes) -> bytes:
    """With its length in front, so that no two lists of parts look the same."""
    return len(part).to_bytes(8, "big") + part
