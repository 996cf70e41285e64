"""Entries as text, and back. Every version ever written stays readable (DESIGN sections 2 and 7).

A stored entry is columns that databases select by (kind, turn, tool) and a JSON body with the rest
of the entry's fields, those at their defaults left out. A checksum covers all of it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, astuple, fields
from typing import Any, NamedTuple

from durable_nb.model.entries import Answer, End, Entry, Pause, Reentry, Row, ToolCall, Turn
from durable_nb.model.errors import StoreCorrupt
from durable_nb.model.messages import Asked, Call, Message, Trim, Usage
from durable_nb.model.values import Json, dumps, freeze, loads, thaw

VERSION = 1
KINDS: Mapping[type, str] = {
    Turn: "turn",
    ToolCall: "tool_call",
    Pause: "pause",
    Answer: "answer",
    Reentry: "reentry",
    End: "end",
}
_CLASSES: Mapping[str, Callable[..., Entry]] = {kind: entry for entry, kind in KINDS.items()}
_COLUMNS = ("turn", "tool")


class Stored(NamedTuple):
    """A row as a database holds it."""

    number: int
    frame: str
    kind: str
    turn: int
    tool: str | None
    at: int
    writer: int
    checksum: int
    body: str


def encode(row: Row) -> Stored:
    """The stored form of a row. Raises `NotStorable` naming the value that has none."""
    entry = row.entry
    kind, tool = KINDS[type(entry)], getattr(entry, "tool", None)
    body = dumps({"v": VERSION, **_body(entry)})
    checksum = _checksum(row.number, row.frame, kind, entry.turn, tool, row.at, row.writer, body)
    return Stored(row.number, row.frame, kind, entry.turn, tool, row.at, row.writer, checksum, body)


def decode(stored: Stored, execution_id: str) -> Row:
    """The row that was encoded. Raises `StoreCorrupt` naming run and entry if it is another one."""
    s = stored
    if not is_intact(s):
        raise StoreCorrupt(
            f"entry {s.number} of run {execution_id!r} is not what was written: its checksum "
            "differs. Nothing was run; restore the store from a copy"
        )
    body = loads(s.body)
    if body.pop("v") != VERSION:
        raise StoreCorrupt(
            f"entry {s.number} of run {execution_id!r} was written by a newer durable_nb; this "
            f"one reads entries up to version {VERSION}: upgrade it"
        )
    columns = {"turn": s.turn, "tool": s.tool} if s.kind not in _WITHOUT_TOOL else {"turn": s.turn}
    rest = {name: _THAW.get(name, thaw)(form) for name, form in body.items()}
    return Row(s.number, s.at, s.writer, _CLASSES[s.kind](**columns, **rest), s.frame)


def is_intact(s: Stored) -> bool:
    """Whether its checksum says that it is what was written. Of what version, it does not say."""
    columns = s.number, s.frame, s.kind, s.turn, s.tool, s.at, s.writer, s.body
    return s.kind in _CLASSES and s.checksum == _checksum(*columns)


def fingerprint_in(stored: Stored) -> str:
    """The fingerprint of an agent that an answer or a reentry bears, or `""`."""
    return str(thaw(loads(stored.body).get("fingerprint", "")))


def message_json(message: Message) -> Json:
    """The stored form of a message: what is empty is left out."""
    form: dict[str, Json] = {"role": message.role}
    if message.content:
        form["content"] = freeze(message.content, ("", "a {} message's content", message.role))
    if message.tool_calls:
        form["tool_calls"] = [
            {
                "id": freeze(call.id, "a call's id"),
                "tool": freeze(call.tool, "a call's tool"),
                "arguments": freeze(call.arguments, ("", "arguments of {}", call.tool)),
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        form["tool_call_id"] = freeze(message.tool_call_id, "tool_call_id")
    if message.extra:
        form["extra"] = freeze(message.extra, "extra")
    return form


def message_from(form: Json) -> Message:
    """The message in its stored form."""
    calls = form.get("tool_calls")
    return Message(
        form["role"],
        _text(form.get("content", "")),
        () if calls is None else tuple(map(_call_from, calls)),
        _text(form.get("tool_call_id")),
        thaw(form["extra"]) if "extra" in form else {},
    )


def _call_from(form: Json) -> Call:
    return Call(_text(form["tool"]), thaw(form["arguments"]), _text(form["id"]))


def _text(form: Json) -> Any:
    """What most texts are: themselves."""
    return form if type(form) is str else thaw(form)


def _checksum(*columns: object) -> int:
    return zlib.crc32("\x1f".join(map(str, columns)).encode())


def _body(entry: Entry) -> dict[str, Json]:
    body: dict[str, Json] = {}
    for name, default in _FIELDS[type(entry)]:
        value = getattr(entry, name)
        if value != default or type(value) is not type(default):
            body[name] = _FREEZE.get(name, freeze)(value, name)
    return body


def _freeze_messages(messages: tuple[Message, ...], _name: str) -> Json:
    return [message_json(message) for message in messages]


def _freeze_usage(usage: Usage, name: str) -> Json:
    tokens = [usage.input_tokens, usage.output_tokens]
    if usage.cached_tokens or usage.cost is not None:
        tokens += [usage.cached_tokens, freeze(usage.cost, name)]
    return tokens


def _freeze_asked(asked: Asked, name: str) -> Json:
    form: dict[str, Json] = {}
    if asked.model:
        form["model"] = freeze(asked.model, name)
    if asked.retries:
        form["retries"] = freeze(list(asked.retries), name)
    if asked.trim is not None:
        form["trim"] = list(astuple(asked.trim))
    return form


def _asked_from(form: Json) -> Asked:
    trim = form.get("trim")
    return Asked(
        thaw(form.get("model", "")),
        tuple(thaw(form.get("retries", []))),
        None if trim is None else Trim(*trim),
    )


def _freeze_names(names: tuple[str, ...], name: str) -> Json:
    return freeze(list(names), name)


_REQUIRED = object()
_FIELDS: Mapping[type, tuple[tuple[str, object], ...]] = {
    kind: tuple(
        (field.name, _REQUIRED if field.default is MISSING else field.default)
        for field in fields(kind)
        if field.name not in _COLUMNS
    )
    for kind in KINDS
}
_WITHOUT_TOOL = ("turn", "end")
_FREEZE: Mapping[str, Callable[[Any, str], Json]] = {
    "messages": _freeze_messages,
    "usage": _freeze_usage,
    "asked": _freeze_asked,
    "changed": _freeze_names,
}
_THAW: Mapping[str, Callable[[Json], Any]] = {
    "messages": lambda forms: tuple(map(message_from, forms)),
    "usage": lambda parts: Usage(*parts[:3], *map(thaw, parts[3:])),
    "asked": _asked_from,
    "changed": tuple,
}
