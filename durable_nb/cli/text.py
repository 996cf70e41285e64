"""Text for a terminal: pure functions from what a store says to lines."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from durable_nb.core.text import aligned, literal, visible


def line(text: object, most: int) -> str:
    """The text as one line of at most `most` characters."""
    flat = visible(str(text)).replace("\n", "\\n").replace("\t", "\\t")
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def local(moment: datetime) -> str:
    """A moment where the reader is: `2026-11-30 17:04:57 CET`."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M:%S %Z}"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns of one-line cells under their names. No cell is cut: ids are there to be copied."""
    names = [name.upper() for name in head]
    return "\n".join(aligned([line(cell, 10_000) for cell in row] for row in (names, *rows)))


def facts(pairs: Mapping[str, object]) -> str:
    """Names and their values, one a line; a value of several lines stays under its own."""
    width = max(map(len, pairs), default=0)
    indent = "\n" + " " * (width + 2)
    return "\n".join(
        f"{line(name, 10_000).ljust(width)}  {visible(str(value)).replace(chr(10), indent)}".rstrip()
        for name, value in pairs.items()
    )


def frozen(value: object) -> str:
    """A frozen context as a table: a dict by its keys, anything else as one value."""
    if isinstance(value, Mapping) and value:
        return facts({str(key): literal(item) for key, item in value.items()})
    return literal(value)


def command(*words: str) -> str:
    """A command to type, quoted for a shell."""
    return shlex.join(["durable-nb", *words])
