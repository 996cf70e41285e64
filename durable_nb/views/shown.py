"""Text as tables can hold it: what a log keeps as `$text` in an entry's body is text again."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from typing import Any, TypeGuard

from durable_nb.model.values import Json, dumps, loads

_TAG = '{"$text":'


def shown(rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
    """The rows as people read them: what may be kept as `$text` is in their last column. A lone
    surrogate, which no database holds, shows as `�`."""
    return [row if _TAG not in (row[-1] or "") else _readable(row) for row in rows]


def is_text(value: object) -> TypeGuard[str]:
    """Whether it is text that a database takes: none takes a lone surrogate."""
    return isinstance(value, str) and value == value.encode("utf-8", "replace").decode()


def _readable(row: Sequence[Any]) -> Sequence[Any]:
    return (*row[:-1], dumps(_plain(loads(row[-1]))))


def _plain(stored: Json) -> Json:
    match stored:
        case {"$text": text} if len(stored) == 1:
            units = (
                b64decode(text).decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass")
            )
            return units.decode("utf-16", "replace")
        case dict():
            return {key: _plain(item) for key, item in stored.items()}
        case list():
            return [_plain(item) for item in stored]
        case _:
            return stored
