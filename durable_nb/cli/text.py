"""Text for a terminal: pure functions from what a store says to lines."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    r"""The text with what a terminal would act on, or could not show, spelled out: `\x1b[31m`."""
    return _UNSEEN.sub(lambda found: ascii(found.group())[1:-1], text)


def line(text: object, most: int) -> str:
    """The text as one line of at most `most` characters."""
    flat = visible(str(text)).replace("\n", "\\n").replace("\t", "\\t")
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def local(moment: datetime) -> str:
    """A moment where the reader is: `2026-11-30 17:04:57 CET`."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M:%S %Z}"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns of one-line cells under their names. No cell is cut: ids are there to be copied."""
    cells = [
        [line(cell, 10_000) for cell in row] for row in ((name.upper() for name in head), *rows)
    ]
    widths = [max(map(len, column)) for column in zip_longest(*cells, fillvalue="")]
    padded = (map(str.ljust, row, widths) for row in cells)
    return "\n".join("  ".join(row).rstrip() for row in padded)


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


def literal(value: object) -> str:
    """A value as JSON or Python would write it."""
    if isinstance(value, dict | list | str):
        try:
            indent = 2 if len(repr(value)) > 80 and not isinstance(value, str) else None
            return json.dumps(value, ensure_ascii=False, indent=indent)
        except (TypeError, ValueError):
            return repr(value)  # a tuple, a Decimal, a key that is not text
    return repr(value)


def command(*words: str) -> str:
    """A command to type, quoted for a shell."""
    return shlex.join(["durable-nb", *words])
