"""What is said of the times that a model was asked."""

from __future__ import annotations

import pytest

from durable_nb.core.calls import ModelCall, call_notes, calls_text, came_of, dollars, spent
from durable_nb.model.messages import Asked, Trim, Usage


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        (Usage(), ""),
        (Usage(1), "1 token"),
        (Usage(1180, 24), "1,204 tokens"),
        (Usage(1180, 24, 900, 0.0031), "1,204 tokens, $0.0031"),
        (Usage(5, cost=0.0), "5 tokens, $0.00"),
    ],
)
def test_what_was_spent_is_said_as_far_as_it_is_known(usage: Usage, said: str) -> None:
    assert spent(usage) == said


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        (0, "$0.00"),
        (12, "$12.00"),
        (1234.5, "$1,234.50"),
        (0.5, "$0.50"),
        (0.0031, "$0.0031"),
        (0.00000123, "$0.0000012"),
        (1e-30, "$0.000000000000"),
    ],
)
def test_small_amounts_have_two_digits(cost: float, said: str) -> None:
    assert dollars(cost) == said


def test_calls_are_counted_with_those_that_brought_nothing() -> None:
    calls = [
        ModelCall(number, number, 1, outcome)
        for number, outcome in enumerate(("lost", "failed", "lost", "answered", "in flight"), 1)
    ]
    assert calls_text(calls) == "5 model calls, 2 lost, 1 failed"
    assert calls_text(calls[3:4]) == "1 model call"
    assert calls_text([]) == "0 model calls"


def test_a_call_says_what_it_cost_or_that_it_was_in_vain() -> None:
    assert came_of(ModelCall(1, 1, 1, "lost")) == "↯ asked in vain: no reply is on disk"
    assert came_of(ModelCall(1, 1, 1, "answered", Usage(1))) == "1 token"
    assert came_of(ModelCall(1, 1, 1, "failed")) == ""
    guess = ModelCall(1, 1, 1, "answered", Usage(1200, 4), kept={"usage": "estimated"})
    assert came_of(guess) == "≈1,204 tokens"


def test_a_call_says_what_went_wrong_before_and_what_was_not_sent() -> None:
    asked = Asked("m", ("503 Unavailable; waited 0.5 s", "429"), Trim(14, 12_000, 9_000, 15))
    assert list(call_notes(ModelCall(1, 1, 1, "answered", Usage(), asked))) == [
        "↻ asked 3 times: 503 Unavailable; waited 0.5 s, then 429",
        "▾ 12,000 tokens of history, 9,000 sent: 14 older messages left out",
    ]
    assert list(call_notes(ModelCall(1, 1, 1, "answered"))) == []
    cut = ModelCall(1, 1, 1, "answered", kept={"finish_reason": "length"})
    assert list(call_notes(cut)) == ["✂ the answer was cut: length"]
    one = Asked(trim=Trim(1, 2, 1, 1))
    assert list(call_notes(ModelCall(1, 1, 1, "answered", Usage(), one))) == [
        "▾ 2 tokens of history, 1 sent: 1 older message left out"
    ]
