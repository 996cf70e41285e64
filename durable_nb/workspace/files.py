"""Reading, writing and editing one file of a place. What is refused is said in a sentence that the
model reads; memory is bounded whatever the file's size."""

from __future__ import annotations

import codecs
import hashlib
import os
import secrets
from typing import BinaryIO, NamedTuple

from durable_nb.model.values import digest
from durable_nb.runtime.idempotent import idempotent
from durable_nb.runtime.scope import scope
from durable_nb.workspace.place import Place, Spot

MAX_READ = 50_000  # bytes of one answer
MAX_EDIT = 10_000_000  # bytes of a file that is edited
_PIECE = 65_536


class Excerpt(NamedTuple):
    """Whole lines of a file as bytes, and in words what was left out of them."""

    data: bytes
    cut: str


def read(place: Place, path: str, start: int, lines: int) -> str:
    with place.reach(path) as spot, spot.open() as file:
        size = os.fstat(file.fileno()).st_size
        _refuse_binary(path, file, size)
        _skip(file, path, start)
        excerpt = _excerpt(file, start, lines)
    text, note = _decoded(excerpt.data, cut=bool(excerpt.cut))
    if excerpt.cut:
        note = f"{note}\n[{excerpt.cut}; the file has {size:,} bytes]"
    return text + note or "[the file is empty]"


def write(place: Place, path: str, content: str) -> str:
    data = _encoded(content, "utf-8")
    with place.reach(path, make_folders=True) as spot:
        if spot.name == ".":
            raise IsADirectoryError(f"{path!r} is a directory; name a file in it")
        spot.replace(data, _part_name(path))
    return f"{path} now holds {len(data):,} bytes"


def edit(place: Place, path: str, old: str, new: str) -> str:
    """Replace the one place where `old` stands.

    In a run, the digests of the file before and after are on disk before the file changes. A pass
    that follows a death compares: the file as before is changed now, the file as after has been.
    """
    if not old or old == new:
        raise ValueError("old is the text to replace, not empty and not the same as new")
    with place.reach(path) as spot:
        spot.discard(_part_name(path))
        before = _whole(spot)
        inner = scope()
        plan = plan_edit(inner.current.call_id if inner else "", path, old, new, before)
        if "refused" in plan:
            raise ValueError(plan["refused"])
        done = f"{path}: replaced the text at line {plan['line']}"
        if (now := _digest(before)) == plan["before"]:
            spot.replace(_edited(before, old, new), _part_name(path))
            return done
        if now == plan["after"]:
            return f"{done} (in an earlier pass of this call; it was not done a second time)"
    raise ValueError(
        f"{path!r} was changed by someone else after this edit had begun and its process died; "
        "whether the edit was applied is not known. Read the file and edit what is there"
    )


@idempotent(key_fn=lambda call_id, path, old, new, before: [call_id, path, old, new])
def plan_edit(call_id: str, path: str, old: str, new: str, before: bytes) -> dict[str, str]:
    """What an edit will do, kept in the run before it is done: its digests, or why it is refused."""
    text, _ = _text(before)
    if (found := text.count(old)) != 1:
        return {"refused": _no_match(path, found, bool(new) and new in text)}
    try:
        after = _edited(before, old, new)
    except ValueError as error:
        return {"refused": str(error)}
    line = text[: text.index(old)].count("\n") + 1
    return {"before": _digest(before), "after": _digest(after), "line": str(line)}


def _no_match(path: str, found: int, has_new: bool) -> str:
    if found:
        return f"old stands in {path!r} {found} times; give more of the text around the one meant"
    hint = "; new does: it may have been edited before" if has_new else ""
    return f"old does not stand in {path!r} exactly as given{hint}. Read the file and try again"


def _whole(spot: Spot) -> bytes:
    with spot.open() as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_EDIT:
            raise ValueError(
                f"{spot.path!r} has {size:,} bytes; edit takes up to {MAX_EDIT:,}. Use bash"
            )
        _refuse_binary(spot.path, file, size)
        return file.read(MAX_EDIT)


def _edited(data: bytes, old: str, new: str) -> bytes:
    text, encoding = _text(data)
    return _encoded(text.replace(old, new), encoding)


def _text(data: bytes) -> tuple[str, str]:
    """A file's text, and the encoding that gives the same bytes back."""
    try:
        return data.decode(), "utf-8"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "latin-1"


def _encoded(text: str, encoding: str) -> bytes:
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the character {text[error.start]!r} has no form in {encoding}, in which the file "
            "is written; nothing was changed"
        ) from error


def _refuse_binary(path: str, file: BinaryIO, size: int) -> None:
    if b"\0" in file.read(_PIECE):
        raise ValueError(f"{path!r} is not text: a binary file of {size:,} bytes. Use bash")
    file.seek(0)


def _skip(file: BinaryIO, path: str, start: int) -> None:
    """Go to line `start`. Raises `ValueError` if the file ends before it."""
    at = 1
    while at < start:
        if not (piece := file.readline(_PIECE)):
            break
        at += piece.endswith(b"\n")
    if start > 1 and not file.peek(1):  # type: ignore[attr-defined]  # a BufferedReader
        raise ValueError(f"{path!r} has fewer than {start:,} lines")


def _excerpt(file: BinaryIO, start: int, lines: int) -> Excerpt:
    data, at = bytearray(), start
    while at < start + lines and len(data) < MAX_READ:
        if not (piece := file.readline(MAX_READ - len(data))):
            break
        data += piece
        at += piece.endswith(b"\n")
    if not file.read(1):
        return Excerpt(bytes(data), "")
    if data.endswith(b"\n"):
        return Excerpt(bytes(data), f"cut here, go on with start={at}")
    if at > start:  # the answer is full in the middle of a line: that one goes into the next
        return Excerpt(bytes(data[: data.rindex(b"\n") + 1]), f"cut here, go on with start={at}")
    return Excerpt(bytes(data), f"line {at} is cut here, go on with start={at + 1}")


def _decoded(data: bytes, *, cut: bool) -> tuple[str, str]:
    """The text, and a note if it is not UTF-8. A character that was cut in two is left out."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, final=not cut), ""
    except UnicodeDecodeError:
        return data.decode("latin-1"), "\n[not UTF-8: read as Latin-1]"


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _part_name(path: str) -> str:
    """The name under which a file is written before it is renamed: the same in each pass of a
    call, so that the next pass clears up what a death has left."""
    inner = scope()
    if inner is None:
        return f".durable_nb-{secrets.token_hex(8)}"
    current = inner.current
    return f".durable_nb-{digest([current.execution_id, current.call_id, path])[:16]}"
