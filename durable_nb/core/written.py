"""Values as people write them in a command, in a shell or in a cell: pure.

Each raises `ValueError` with a sentence that says what would be right.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import NoReturn

LONG = 80  # characters of what was written that a refusal repeats

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def age(text: str) -> timedelta:
    """`30d`, `12h`, `2w`."""
    try:
        return timedelta(**{_UNITS[text[-1:]]: float(text[:-1])})
    except (KeyError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{_brief(text)} is not an age; write a number and s, m, h, d or w, such as 30d"
        ) from error


def json_value(text: str) -> object:
    """`90`, `"text"`, `{"paid": 9}`. NaN and the infinities are no JSON."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{_brief(text)} is not JSON; text needs quotes of its own, as in '\"text\"'"
        ) from error


def named_json(text: str) -> tuple[str, object]:
    """`amount=90`."""
    name, equals, value = text.partition("=")
    if not (equals and name.isidentifier()):
        raise ValueError(f"{_brief(text)} is not NAME=JSON, such as amount=90")
    return name, json_value(value)


def place(text: str) -> int | str:
    """An entry's number, or a node."""
    return int(text) if text.isascii() and text.isdigit() else text


def _brief(text: str) -> str:
    return repr(text if len(text) <= LONG else f"{text[:LONG]}…")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
