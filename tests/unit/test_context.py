"""What is sent of a history that is too long: its start, its end, and nothing torn apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durable_nb import Call, Message
from durable_nb.core import context
from durable_nb.core.context import Gauge, excerpt, text_tokens, tokens_of
from durable_nb.model.transcript import Transcript
from tests.support.providers import faults

SYSTEM = Message("system", "be brief")
GO = Message("user", "go")


def turn(number: int, *sizes: int) -> list[Message]:
    """A reply with a call for each size, and results that are as long."""
    ids = [f"{number}-{at}" for at in range(len(sizes))]
    reply = Message("assistant", "", tuple(Call("look", {"n": number}, id_) for id_ in ids))
    results = [Message("tool", "r" * s, tool_call_id=i) for i, s in zip(ids, sizes, strict=True)]
    return [reply, *results]


def sent_of(messages: list[Message], limit: int, start: int = 0) -> list[Message]:
    return list(excerpt(Transcript(messages), limit, Gauge(), start=start)[0])


def test_a_history_that_fits_is_sent_as_it_is() -> None:
    history = Transcript([SYSTEM, GO, *turn(1, 30)])
    assert excerpt(history, 10_000, Gauge()) == (history, None)
    assert excerpt(history, 10_000, Gauge(), start=2) == (history, None)


def test_the_oldest_turns_are_left_out_and_counted() -> None:
    history = [SYSTEM, GO, *turn(1, 300), *turn(2, 300), *turn(3, 300)]
    sent, trim = excerpt(Transcript(history), 300, Gauge())
    assert list(sent) == [SYSTEM, GO, *turn(3, 300)]
    assert trim is not None
    assert trim.dropped == 4
    assert trim.start == 6
    assert trim.before == sum(map(tokens_of, history))
    assert trim.after == sum(map(tokens_of, sent)) <= 300
    assert sent.replies == 3  # of the whole: the fourth reply is asked for


def test_a_cut_leaves_room_and_stands_until_that_is_used_up() -> None:
    history = [SYSTEM, GO]
    starts = []
    start = 0
    for number in range(40):
        history += turn(number, 90)
        _, trim = excerpt(Transcript(history), 500, Gauge(), start=start)
        start = trim.start if trim else 0
        starts.append(start)
    assert starts == sorted(starts)
    assert 5 < len(set(starts)) < 25


def test_a_higher_limit_brings_back_what_a_lower_one_left_out() -> None:
    history = [SYSTEM, GO, *(message for number in range(40) for message in turn(number, 90))]
    _, low = excerpt(Transcript(history), 200, Gauge())
    assert low is not None
    for limit in (400, 800, 1600):
        _, anew = excerpt(Transcript(history), limit, Gauge())
        _, raised = excerpt(Transcript(history), limit, Gauge(), start=low.start)
        assert raised == anew
        assert anew is not None
        assert anew.after > limit // 2


def test_results_stay_with_their_calls() -> None:
    history = [SYSTEM, GO, *turn(1, 400, 5, 5), *turn(2, 10)]
    for limit in range(1, 300):
        assert faults(sent_of(history, limit)) == []


def test_the_newest_instruction_is_sent_and_the_one_before_it_is_not() -> None:
    follow_up = Message("user", "and now?")
    history = [SYSTEM, GO, *turn(1, 300), Message("assistant", "done"), follow_up, *turn(2, 300)]
    assert sent_of(history, 150) == [SYSTEM, follow_up, *turn(2, 300)]
    assert sent_of(history[:-2], 20) == [SYSTEM, follow_up]


def test_what_is_asked_now_is_sent_though_it_is_too_long() -> None:
    history = [SYSTEM, GO, *turn(1, 30), *turn(2, 3000)]
    sent, trim = excerpt(Transcript(history), 100, Gauge())
    assert list(sent) == [SYSTEM, GO, *turn(2, 3000)]
    assert trim is not None
    assert trim.after > 100


@given(
    st.lists(
        st.one_of(
            st.lists(st.integers(0, 200), min_size=1, max_size=3), st.just("say"), st.just("ask")
        ),
        max_size=12,
    ),
    st.integers(1, 600),
)
def test_what_is_sent_is_always_a_whole_conversation(plan, limit: int) -> None:
    """Whatever comes when: valid for the providers, within the limit unless nothing else could be
    left out, and no later cut takes back what an earlier one left out."""
    history, start = [SYSTEM, GO], 0
    for number, step in enumerate(plan):
        if step == "say":
            history += [Message("assistant", "so"), Message("user", "go on")]
        elif step == "ask":
            history.append(Message("user", f"prompt {number}"))
        else:
            history += turn(number, *step)
        transcript = Transcript(history)
        sent, trim = excerpt(transcript, limit, Gauge(), start=start)
        assert faults(sent) == []
        newest = [message for message in history if message.role == "user"][-1]
        assert newest in list(sent)
        assert sent[0] == SYSTEM
        if trim is None:
            assert list(sent) == history
            continue
        assert trim.start >= start
        assert trim.after == sum(map(tokens_of, sent))
        assert trim.dropped == len(history) - len(sent)
        if trim.after > limit:
            assert trim.start == max(at for at, each in enumerate(history) if each.role != "tool")
        start = trim.start


def test_a_gauge_gives_the_length_of_any_end() -> None:
    transcript, gauge = Transcript([GO, Message("assistant", "done")]), Gauge()
    assert gauge.tokens(transcript, 2) == 0
    assert gauge.tokens(transcript, 1) == tokens_of(transcript[1])


def test_each_message_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []
    count = context.tokens_of
    monkeypatch.setattr(context, "tokens_of", lambda each: measured.append(each) or count(each))
    gauge, start, transcript = Gauge(), 0, Transcript([SYSTEM, GO])
    for number in range(50):
        transcript = transcript.plus(turn(number, 50))
        _, trim = excerpt(transcript, 300, gauge, start=start)
        start = trim.start if trim else 0
    assert measured == list(transcript)


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 4), ("abc", 5), ("abcd", 6), ("é" * 3, 6), ("\ud800", 5)]
)
def test_a_text_is_estimated_at_three_bytes_a_token(text: str, tokens: int) -> None:
    assert text_tokens(text) == tokens


def test_what_a_provider_needs_back_counts() -> None:
    plain, signed = Message("assistant", "ok"), Message("assistant", "ok", extra={"s": "x" * 300})
    assert tokens_of(signed) > tokens_of(plain) + 100
    assert tokens_of(Message("assistant", "", (Call("look", "{broken"),))) > tokens_of(plain)
