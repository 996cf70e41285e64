"""What others wrote, as text that cannot be anything but text: for cards, terminals and errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest

# Control characters but tab and newline; what is invisible, breaks lines or changes the direction
# of writing. The joiners of Persian or of emoji (U+200C, U+200D) stay.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    r"""The text with what a screen would act on, or could not show, spelled out: `\x1b[31m`."""
    return _UNSEEN.sub(lambda found: ascii(found.group())[1:-1], text)


def literal(value: object) -> str:
    """A value as JSON or Python would write it; what is long has several lines."""
    if isinstance(value, dict | list | str):
        try:
            indent = 2 if len(repr(value)) > 80 else None
            return visible(json.dumps(value, ensure_ascii=False, indent=indent))
        except (TypeError, ValueError):
            return visible(repr(value))  # a tuple, a Decimal, a key that is not text
    return visible(repr(value))


def readable(value: object) -> str:
    """A value for people: text of several lines as it is, since somebody has to read it."""
    return visible(value) if isinstance(value, str) and "\n" in value else literal(value)


def aligned(table: Iterable[Sequence[str]]) -> list[str]:
    """A line a row, with the columns under each other."""
    rows = list(table)
    widths = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
