"""Entries as text, and back. Every version ever written stays readable (DESIGN sections 2 and 7).

A stored entry is columns that databases select by (kind, turn, tool) and a JSON body that names its
version. Its checksum covers all of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from durable_nb.model.entries import Answer, End, Entry, Pause, Reentry, Row, ToolCall, Turn
from durable_nb.model.errors import StoreCorrupt
from durable_nb.model.messages import Call, Message, Usage
from durable_nb.model.values import Json, dumps, freeze, loads, thaw

VERSION = 1
KINDS: dict[type, str] = {
    Turn: "turn",
    ToolCall: "tool_call",
    Pause: "pause",
    Answer: "answer",
    Reentry: "reentry",
    End: "end",
}


@dataclass(frozen=True, slots=True)
class Stored:
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
    if s.checksum != _checksum(s.number, s.frame, s.kind, s.turn, s.tool, s.at, s.writer, s.body):
        raise StoreCorrupt(
            f"entry {s.number} of run {execution_id!r} is not what was written: its checksum "
            "differs. Nothing was run; restore the store from a copy"
        )
    body = loads(s.body)
    if body["v"] != VERSION:
        raise StoreCorrupt(
            f"entry {s.number} of run {execution_id!r} has version {body['v']}; this "
            f"durable_nb reads up to {VERSION}: upgrade it"
        )
    return Row(s.number, s.at, s.writer, _ENTRY[s.kind](s.turn, s.tool, body), s.frame)


def _checksum(*columns: object) -> int:
    return zlib.crc32("\x1f".join(map(str, columns)).encode())


def _body(entry: Entry) -> dict[str, Json]:
    match entry:
        case Turn():
            return _said(entry)
        case ToolCall():
            arguments = freeze(entry.arguments, "arguments")
            return {
                "call_id": freeze(entry.call_id, "call_id"),
                "arguments": arguments,
                **_said(entry),
            }
        case Pause():
            return {
                "reason": freeze(entry.reason, "reason"),
                "context": freeze(entry.context, "context"),
                "digest": entry.digest,
                "position": entry.position,
                "on_reject": entry.on_reject,
            }
        case Answer():
            return {
                "pause": entry.pause,
                "approved": entry.approved,
                "by": freeze(entry.by, "by"),
                "reason": freeze(entry.reason, "reason"),
                "metadata": freeze(entry.metadata, "metadata"),
                "edited": freeze(entry.edited, "edited"),
                "source": entry.source,
                "shown": entry.shown,
                "ran": entry.ran,
            }
        case Reentry():
            return {"of": entry.of, "by": freeze(entry.by, "by")}
        case End():
            output, error = freeze(entry.output, "output"), freeze(entry.error, "error")
            return {"status": entry.status, "output": output, "error": error, **_said(entry)}


def _said(entry: Turn | ToolCall | End) -> dict[str, Json]:
    said: dict[str, Json] = {}
    if entry.messages:
        said["messages"] = [message_json(message) for message in entry.messages]
    if entry.usage != Usage():
        said["usage"] = [entry.usage.input_tokens, entry.usage.output_tokens]
    return said


def message_json(message: Message) -> Json:
    """The stored form of a message: what is empty is left out."""
    form: dict[str, Json] = {"role": message.role}
    if message.content:
        form["content"] = freeze(message.content, f"a {message.role} message's content")
    if message.tool_calls:
        form["tool_calls"] = [
            {
                "id": freeze(call.id, "a call's id"),
                "tool": freeze(call.tool, "a call's tool"),
                "arguments": freeze(call.arguments, f"arguments of {call.tool}"),
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
    calls = tuple(
        Call(thaw(call["tool"]), thaw(call["arguments"]), thaw(call["id"]))
        for call in form.get("tool_calls", ())
    )
    tool_call_id, extra = thaw(form.get("tool_call_id")), thaw(form.get("extra", {}))
    return Message(form["role"], thaw(form.get("content", "")), calls, tool_call_id, extra)


def _messages(body: Json) -> tuple[Message, ...]:
    return tuple(map(message_from, body.get("messages", ())))


def _usage(body: Json) -> Usage:
    return Usage(*body.get("usage", ()))


def _turn(turn: int, tool: Any, body: Json) -> Entry:
    return Turn(turn, _messages(body), _usage(body))


def _tool_call(turn: int, tool: Any, body: Json) -> Entry:
    arguments = thaw(body["arguments"])
    return ToolCall(turn, tool, thaw(body["call_id"]), arguments, _messages(body), _usage(body))


def _pause(turn: int, tool: Any, body: Json) -> Entry:
    reason, context = thaw(body["reason"]), thaw(body["context"])
    return Pause(turn, tool, reason, context, body["digest"], body["position"], body["on_reject"])


def _answer(turn: int, tool: Any, body: Json) -> Entry:
    return Answer(
        turn,
        tool,
        pause=body["pause"],
        approved=body["approved"],
        by=thaw(body["by"]),
        reason=thaw(body["reason"]),
        metadata=thaw(body["metadata"]),
        edited=thaw(body["edited"]),
        source=body["source"],
        shown=body["shown"],
        ran=body["ran"],
    )


def _reentry(turn: int, tool: Any, body: Json) -> Entry:
    return Reentry(turn, tool, body["of"], thaw(body["by"]))


def _end(turn: int, tool: Any, body: Json) -> Entry:
    output, error = thaw(body["output"]), thaw(body["error"])
    return End(turn, body["status"], output, error, _messages(body), _usage(body))


_ENTRY: dict[str, Callable[[int, Any, Json], Entry]] = {
    "turn": _turn,
    "tool_call": _tool_call,
    "pause": _pause,
    "answer": _answer,
    "reentry": _reentry,
    "end": _end,
}
