"""What a process and the children that it will lose say to each other: what to do, and a report.

Agents travel by cloudpickle: what was defined in a cell or a script by value, what was imported by
name. Nothing of this is kept.
"""

from __future__ import annotations

import io
import os
import pickle
from collections import ChainMap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import cloudpickle

from durable_nb.model.errors import InvalidInput

Ended: TypeAlias = Literal["killed", "stopped", "done", "error", "late", "gone"]


@dataclass(frozen=True, slots=True)
class Report:
    """How a child came to its end.

    `killed`: at its point. `stopped`: there, and its number is the `value`. `done`: with a `value`. `error`: by the error of that name.
    `late`: it took too long. `gone`: without a word. `code` is what ended its process, -9 for SIGKILL.
    """

    ended: Ended
    value: Any = None
    error: str = ""
    text: str = ""
    code: int = 0


Say: TypeAlias = Callable[[Report], None]


@contextmanager
def by_value(module: ModuleType) -> Iterator[None]:
    """What is packed meanwhile takes along what it has of the module, which nobody can import."""
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


_unpacked: dict[tuple[bytes, str | None], tuple[Any, ...]] = {}


class Work(Protocol):
    """Something for a child to do. What it returns is the value of its report."""

    def __call__(self, say: Say) -> object:
        """Do it. `say` is for a report before an end that nothing comes after."""


def pack(*objects: object, inside: str | None = None) -> bytes:
    """The objects, to be unpacked together. Paths that lead `inside` of a directory lead inside of
    another one there. Raises `InvalidInput` for what cannot leave the process."""
    packed = io.BytesIO()
    try:
        _Pickler(packed, inside).dump(objects)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"{objects[0]!r} cannot be handed to another process: {error}. Let its tools and its "
            "model open files, locks and connections when they are called"
        ) from error
    return packed.getvalue()


def unpack(packed: bytes, inside: str | None = None) -> tuple[Any, ...]:
    """What was packed, in a process that has it to itself. Imports what was packed by name."""
    if (packed, inside) in _unpacked:
        return _unpacked[packed, inside]
    objects: tuple[Any, ...] = _Unpickler(io.BytesIO(packed), inside).load()
    return objects


def unpack_for_children(packed: bytes, inside: str | None = None) -> None:
    """Unpack once for all children of this process: each is forked with a copy of its own."""
    _unpacked[packed, inside] = unpack(packed, inside)


def _in_its_file(code: CodeType) -> tuple[Any, ...]:
    """cloudpickle forgets in which file code was written, which tracebacks and findings name."""
    _, parts = cloudpickle.Pickler.dispatch_table[CodeType](code)
    return _code_of, (os.fsencode(code.co_filename), *parts)


def _code_of(file: bytes, *parts: Any) -> CodeType:
    return CodeType(*parts).replace(co_filename=os.fsdecode(file))


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """Writes each path inside of the directory as what it is relative to it."""

    dispatch_table: ClassVar = ChainMap(
        {CodeType: _in_its_file}, cloudpickle.Pickler.dispatch_table
    )

    def __init__(self, file: io.BytesIO, inside: str | None) -> None:
        super().__init__(file)
        self._inside = inside

    def persistent_id(self, value: object) -> tuple[str, bool] | None:
        if self._inside is None or not isinstance(value, str | Path):
            return None
        text = str(value)
        if text != self._inside and not text.startswith(self._inside + os.sep):
            return None
        return text[len(self._inside) :], isinstance(value, Path)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, inside: str | None) -> None:
        super().__init__(file)
        self._inside = inside

    def persistent_load(self, reference: tuple[str, bool]) -> str | Path:
        rest, is_path = reference
        text = f"{self._inside}{rest}"
        return Path(text) if is_path else text
