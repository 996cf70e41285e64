"""Values as JSON that comes back the same: same type at every depth, floats bit for bit (DESIGN R9).

Plain JSON stands for itself. Everything else is an object with one key that starts with `$`:
`{"$tuple": [1, 2]}`. What has no such form is refused with `NotStorable`; nothing is guessed.
"""

from __future__ import annotations

import hashlib
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from pydantic_core import from_json, to_json

from durable_nb.model.errors import NotStorable

Json = Any  # a tree of what the JSON standard knows; this file and codec.py are where it is seen

Place: TypeAlias = str | tuple[Any, str, object]  # a path, as text or as (path, format, key)

DEPTH = 100  # levels of JSON; deeper is refused when written, since readers refuse it at 200
_LONG = 2**63  # integers outside of this are not read exactly by every database


def freeze(value: object, path: Place = "value", depth: int = 0) -> Json:
    """The JSON form of `value`, sharing nothing with it that can change.

    Raises `NotStorable` naming the place in `value` that has no exact form; `path` is what `value`
    itself is called there.
    """
    if value is None or value is True or value is False:
        return value
    form = _FREEZE.get(type(value)) or _late(value)
    if form is None:
        raise NotStorable(
            f"{_text(path)} is of type {_type_name(value)}, which has no exact stored form; "
            "use plain data (text, numbers, lists, dicts, dates, Decimal, UUID, bytes)"
        )
    if depth > DEPTH:
        raise NotStorable(f"{_text(path)} is more than {DEPTH} levels of JSON deep; flatten it")
    return form(value, path, depth + 1)


def thaw(stored: Json) -> Any:
    """The value that `freeze` was given."""
    kind = type(stored)
    if kind is list:
        return [thaw(item) for item in stored]
    if kind is not dict:
        return stored
    if len(stored) == 1:
        ((tag, inner),) = stored.items()
        if tag.startswith("$"):
            return (_THAW.get(tag) or _LATE[tag]().thaw)(inner)
    return {key: thaw(item) for key, item in stored.items()}


class Extension(NamedTuple):
    """How values of one more type are stored: `freeze(value, path)` and `thaw(json)`."""

    freeze: Callable[[Any, str], Json]
    thaw: Callable[[Json], Any]


def extend(tag: str, type_name: str, load: Callable[[], Extension]) -> None:
    """Store values of the type `module.name` under `tag`; `load` is called on first need."""
    _TAGS[type_name] = tag
    _LATE[tag] = load


def dumps(frozen: Json) -> str:
    """A frozen value as JSON text."""
    return to_json(frozen).decode()


def loads(text: str | bytes) -> Json:
    """The frozen value in JSON text."""
    return from_json(text, cache_strings="keys")


def digest(value: object) -> str:
    """32 hex digits that equal values share, whatever the order of their keys."""
    return hashlib.blake2b(dumps(_sorted(freeze(value))).encode(), digest_size=16).hexdigest()


def _sorted(frozen: Json) -> Json:
    if isinstance(frozen, list):
        return [_sorted(item) for item in frozen]
    if isinstance(frozen, dict):
        if set(frozen) == {"$dict"}:
            return {"$dict": sorted(_sorted(frozen["$dict"]), key=dumps)}
        return {key: _sorted(frozen[key]) for key in sorted(frozen)}
    return frozen


def _freeze_text(value: str, path: Place, depth: int) -> Json:
    if value.isascii() and "\0" not in value:
        return value
    if "\0" not in value:
        try:
            value.encode()
            return value
        except UnicodeEncodeError:
            pass  # a lone surrogate: tagged below, like NUL
    return {"$text": b64encode(value.encode("utf-8", "surrogatepass")).decode()}


def _freeze_int(value: int, path: Place, depth: int) -> Json:
    return value if -_LONG <= value < _LONG else {"$int": format(value, "x")}


def _freeze_float(value: float, path: Place, depth: int) -> Json:
    finite = value - value == 0
    return value if finite else {"$float": struct.pack(">d", value).hex()}


def _freeze_list(value: list[object], path: Place, depth: int) -> Json:
    return [freeze(item, (path, "[{!r}]", at), depth) for at, item in enumerate(value)]


def _freeze_dict(value: dict[object, object], path: Place, depth: int) -> Json:
    if all(type(key) is str and _plain_key(key) for key in value):
        return {key: freeze(item, (path, "[{!r}]", key), depth) for key, item in value.items()}
    inside = depth + 2
    pairs = [
        [
            freeze(key, (path, " key {!r}", key), inside),
            freeze(item, (path, "[{!r}]", key), inside),
        ]
        for key, item in value.items()
    ]
    return {"$dict": pairs}


def _plain_key(key: str) -> bool:
    return not key.startswith("$") and _freeze_text(key, "", 0) is key


def _freeze_tuple(value: tuple[object, ...], path: Place, depth: int) -> Json:
    return {"$tuple": _freeze_list(list(value), path, depth + 1)}


def _freeze_set(value: set[object], path: Place, depth: int) -> Json:
    items = [freeze(item, (path, " member {!r}", item), depth + 1) for item in value]
    return {f"${type(value).__name__}": sorted(items, key=dumps)}


def _freeze_datetime(value: datetime, path: Place, depth: int) -> Json:
    if value.tzinfo is not None and type(value.tzinfo) is not timezone:
        raise NotStorable(
            f"{_text(path)} has a time zone with rules ({value.tzinfo}), which change; "
            "use .astimezone(timezone.utc)"
        )
    return {"$datetime": [value.isoformat(), value.fold]}


def _freeze_time(value: time, path: Place, depth: int) -> Json:
    if value.tzinfo is not None and type(value.tzinfo) is not timezone:
        raise NotStorable(
            f"{_text(path)} has a time zone with rules ({value.tzinfo}); use a fixed offset"
        )
    return {"$time": [value.isoformat(), value.fold]}


def _thaw_float(bits: str) -> float:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    return float(value)


def _late(value: object) -> Callable[[Any, Place, int], Json] | None:
    tag = _TAGS.get(_type_name(value))
    return (
        None
        if tag is None
        else lambda value, path, _: {tag: _LATE[tag]().freeze(value, _text(path))}
    )


def _text(path: Place) -> str:
    """A path in words: put together only when there is something to complain about."""
    return path if isinstance(path, str) else _text(path[0]) + path[1].format(path[2])


def _type_name(value: object) -> str:
    kind = type(value)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


_TAGS: dict[str, str] = {}
_LATE: dict[str, Callable[[], Extension]] = {}

_FREEZE: dict[type, Callable[[Any, Place, int], Json]] = {
    str: _freeze_text,
    int: _freeze_int,
    float: _freeze_float,
    list: _freeze_list,
    dict: _freeze_dict,
    tuple: _freeze_tuple,
    set: _freeze_set,
    frozenset: _freeze_set,
    datetime: _freeze_datetime,
    time: _freeze_time,
    date: lambda value, path, depth: {"$date": value.isoformat()},
    timedelta: lambda value, path, depth: {
        "$timedelta": [value.days, value.seconds, value.microseconds]
    },
    bytes: lambda value, path, depth: {"$bytes": b64encode(value).decode()},
    Decimal: lambda value, path, depth: {"$decimal": str(value)},
    UUID: lambda value, path, depth: {"$uuid": str(value)},
}

_THAW: dict[str, Callable[[Any], Any]] = {
    "$text": lambda text: b64decode(text).decode("utf-8", "surrogatepass"),
    "$int": lambda digits: int(digits, 16),
    "$float": _thaw_float,
    "$dict": lambda pairs: {thaw(key): thaw(item) for key, item in pairs},
    "$tuple": lambda items: tuple(thaw(item) for item in items),
    "$set": lambda items: {thaw(item) for item in items},
    "$frozenset": lambda items: frozenset(thaw(item) for item in items),
    "$datetime": lambda pair: datetime.fromisoformat(pair[0]).replace(fold=pair[1]),
    "$time": lambda pair: time.fromisoformat(pair[0]).replace(fold=pair[1]),
    "$date": date.fromisoformat,
    "$timedelta": lambda parts: timedelta(*parts),
    "$bytes": b64decode,
    "$decimal": Decimal,
    "$uuid": UUID,
}
