"""The judge of transcripts (`tests.support.providers`) refuses what OpenAI and Anthropic refuse."""

from __future__ import annotations

import pytest

from durable_nb import Call, Message
from tests.support.providers import faults

USER = Message("user", "go")
TWO = Message("assistant", "", (Call("a", {}, "1"), Call("b", {}, "2")))
ONE_AGAIN = Message("assistant", "", (Call("a", {}, "1"),))
DONE = Message("assistant", "done")


def result(call_id: str, content: str = "ok") -> Message:
    return Message("tool", content, tool_call_id=call_id)


@pytest.mark.parametrize(
    ("why", "messages"),
    [
        ("no result at the end", [USER, TWO, result("1")]),
        ("speaks while", [USER, TWO, result("1"), DONE]),
        ("speaks while", [USER, TWO, Message("user", "and?"), result("1"), result("2")]),
        ("not open", [USER, TWO, result("1"), result("1"), result("2"), DONE]),
        ("not open", [USER, result("1"), DONE]),
        ("not one call's own", [USER, ONE_AGAIN, result("1"), ONE_AGAIN, result("1"), DONE]),
        ("without an id", [USER, Message("assistant", "", (Call("a"),)), result(""), DONE]),
        ("not the user", [DONE]),
        ("not the user", []),
        ("system speaks", [USER, Message("system", "be brief"), DONE]),
        ("empty message", [Message("user", ""), DONE]),
        ("empty message", [USER, Message("assistant"), DONE]),
    ],
)
def test_a_transcript_that_providers_refuse_is_refused(why: str, messages: list[Message]) -> None:
    assert why in " ".join(faults(messages))


def test_a_valid_transcript_is_valid() -> None:
    system = Message("system", "be brief")
    assert faults([system, USER, TWO, result("2", ""), result("1"), Message("assistant")]) == []
    assert faults([USER, TWO, result("1")], in_flight=True) == []
