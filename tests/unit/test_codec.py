"""Entries as rows, and back; and the stored samples of every version there ever was."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from durable_nb import Call, Message, NotStorable, StoreCorrupt, Usage
from durable_nb.model.codec import KINDS, Stored, decode, encode, message_from, message_json
from durable_nb.model.entries import Answer, End, Pause, Reentry, Row, ToolCall, Turn
from durable_nb.model.messages import Asked, Trim

SAMPLES = sorted(Path(__file__).with_name("samples").glob("*.json"))
ASKED = Message(
    "assistant", "I will.", (Call("refund", {"n": (1, 2)}, "c1"), Call("x", "[1", "c2"))
)
SAID = (
    Message("system", "be brief"),
    Message("user", "a\0b 🎉"),
    ASKED,
    Message("tool", "", tool_call_id="c1", extra={"when": {1: b"x"}}),
)
ENTRIES = [
    Turn(0, SAID),
    Turn(3),
    ToolCall(1, "refund", "c1", {"n": (1, 2), "$odd": None}, (ASKED,), Usage(7, 3)),
    Pause(1, "refund", "why", {"parts": {1, 2}}, "d" * 32, position=2, on_reject="skip"),
    Answer(1, "refund", pause=4, approved=False, by="ann", reason="no\0pe", metadata={"a": (1,)}),
    Answer(1, "refund", pause=4, approved=True, by="ann", edited={"n": 1}, shown="s", ran="r"),
    Reentry(1, None, of=1, by="bob"),
    Reentry(1, "refund", of=2, by="bob"),
    End(2, "completed", "done", messages=(Message("assistant", "done"),), usage=Usage(1, 2)),
    Turn(4, (), Usage(7, 3, 2, 0.25), Asked("gpt-5", ("503: try later",), Trim(4, 900, 600, 6))),
    Turn(5, (), Usage(0, 0, 0, 0.0), Asked(retries=("\ud800",))),
    End(2, "failed", error="ValueError: \ud800"),
    End(2, "cancelled"),
]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: type(entry).__name__)
def test_an_entry_comes_back_as_it_was_written(entry) -> None:
    row = Row(7, at=123, writer=2**61, entry=entry, frame="3")
    stored = encode(row)
    assert decode(stored, "r1") == row
    assert decode(stored, "r1").entry == entry
    assert (stored.kind, stored.turn) == (KINDS[type(entry)], entry.turn)
    assert stored.tool == getattr(entry, "tool", None)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_row_of_any_version_ever_written_stays_readable(sample: Path) -> None:
    held = json.loads(sample.read_text())
    row = decode(Stored(**held["stored"]), "r1")
    assert type(row.entry).__name__ == held["entry"]
    assert {name: repr(getattr(row.entry, name)) for name in held["fields"]} == held["fields"]
    assert (row.number, row.at, row.writer, row.frame) == tuple(held["row"])


def test_every_kind_has_a_sample() -> None:
    assert {sample.stem.rsplit("-", 1)[0] for sample in SAMPLES} == set(KINDS.values())


STORED = encode(Row(7, at=123, writer=9, entry=ENTRIES[2], frame=""))


@pytest.mark.parametrize(
    "changed",
    [
        {"number": 8},
        {"frame": "1"},
        {"kind": "turn"},
        {"turn": 2},
        {"tool": "refunds"},
        {"tool": None},
        {"at": 124},
        {"writer": 10},
        {"checksum": STORED.checksum + 1},
        {"body": STORED.body.replace("refund", "refunD")},
        {"body": STORED.body[:-1]},
        {"body": ""},
    ],
)
def test_a_changed_row_is_corrupt_and_named(changed: dict[str, object]) -> None:
    with pytest.raises(StoreCorrupt, match=r"entry \d of run 'r1'.*checksum"):
        decode(STORED._replace(**changed), "r1")  # type: ignore[arg-type]


def test_a_row_of_a_newer_version_asks_for_an_upgrade() -> None:
    newer = STORED._replace(body=STORED.body.replace('"v":1', '"v":2'))
    columns = (getattr(newer, name) for name in Stored._fields if name not in ("checksum", "body"))
    checksum = zlib.crc32("\x1f".join(map(str, (*columns, newer.body))).encode())
    with pytest.raises(StoreCorrupt, match=r"entry 7 of run 'r1' was written by a newer.*upgrade"):
        decode(newer._replace(checksum=checksum), "r1")


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        (Turn(0, (Message("user", object()),)), "a user message's content"),  # type: ignore[arg-type]
        (Turn(0, (Message("user", "x", extra={"k": object()}),)), r"extra\['k'\]"),
        (
            Turn(0, (Message("assistant", "", (Call("t", {"a": object()}, "1"),)),)),
            r"arguments of t\['a'\]",
        ),
        (ToolCall(0, "t", "1", {"a": object()}), r"arguments\['a'\]"),
        (Pause(0, "t", "why", [object()], "d"), r"context\[0\]"),
        (Answer(0, "t", 1, True, "ann", metadata={"a": object()}), r"metadata\['a'\]"),
        (Answer(0, "t", 1, True, "ann", edited={"a": object()}), r"edited\['a'\]"),
    ],
)
def test_what_cannot_be_stored_is_named(entry, path: str) -> None:
    with pytest.raises(NotStorable, match=path):
        encode(Row(1, 1, 1, entry))


def test_a_message_stores_what_is_there_and_nothing_else() -> None:
    assert message_json(Message("assistant")) == {"role": "assistant"}
    assert message_from({"role": "assistant"}) == Message("assistant")
    for message in SAID:
        assert message_from(message_json(message)) == message
