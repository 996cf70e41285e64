"""`usage()` has a row for every time that the model was asked, and counts nothing twice."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pandas as pd
import pytest

from durable_nb import (
    Agent,
    BudgetExceeded,
    Checkpointer,
    MemoryCheckpointer,
    Message,
    Reply,
    Resume,
    TurnLimit,
    UnknownExecution,
    call,
    interrupt,
    views,
)
from durable_nb.core.calls import model_calls
from durable_nb.model.entries import End, Run, Turn
from durable_nb.model.messages import Asked, Trim, Usage
from tests.views.runs import Counting, a_run_of_every_status

PRICE = 0.25  # so that sums are exact
PLAN = [call("look", x=1), call("gate", x=2), call("look", x=3), "Done."]


class Priced:
    """Plays PLAN: reply n costs n + 1 tokens of output. `deaths` are raised when it is asked for
    the n-th time in its life, counted from 1."""

    def __init__(self, deaths: dict[int, BaseException] | None = None) -> None:
        self.deaths = deaths or {}
        self.asked = 0

    def complete(self, messages: Sequence[Message], tools: object) -> Reply:
        self.asked += 1
        if death := self.deaths.pop(self.asked, None):
            raise death
        at = sum(message.role == "assistant" for message in messages) % len(PLAN)
        said = PLAN[at]
        message = (
            Message("assistant", said)
            if isinstance(said, str)
            else Message("assistant", tool_calls=(said,))
        )
        return Reply(message, Usage(10, at + 1, 5, PRICE), "priced-1", ("503 Unavailable",) * at)


def bot(store: Checkpointer, llm: Priced, **limits: float) -> Agent:
    def look(x: int) -> str:
        """Look."""
        return str(x)

    def gate(x: int) -> str:
        """Ask."""
        return str(interrupt("sure?").approved)

    return Agent("bot", llm, [look, gate], checkpointer=store, **limits)


def driven(agent: Agent, execution_id: str) -> Usage:
    """The run from its start to its end, whatever happens on the way: what its result says."""
    died = KeyboardInterrupt, OSError
    with suppress(*died):
        agent.run("go", execution_id=execution_id)
    for _ in range(10):
        waits = agent.checkpointer.get_last(execution_id).step_type == "hitl_pause"
        with suppress(*died):
            yes = Resume(approved=True) if waits else None
            result = agent.resume(execution_id, resume_value=yes)
            if result.status == "completed":
                return result.usage
    raise AssertionError("it never ended")


def total(frame: pd.DataFrame) -> Usage:
    tokens = frame[["input_tokens", "output_tokens", "cached_tokens"]].sum()
    return Usage(*map(int, tokens), float(frame.cost.sum()))


def kinds(frame: pd.DataFrame) -> list[tuple[int, int, str]]:
    return list(zip(frame.turn, frame.attempt, frame.outcome, strict=True))


ANSWERED = [(turn, 1, "answered") for turn in range(len(PLAN))]


@pytest.mark.parametrize("death", [KeyboardInterrupt(), OSError("503")], ids=["crash", "failure"])
@pytest.mark.parametrize("at", range(1, len(PLAN) + 1))
def test_wherever_it_dies_the_sum_is_the_results_and_the_wasted_call_is_a_row(
    store: Checkpointer, at: int, death: BaseException
) -> None:
    usage = driven(bot(store, Priced({at: death})), "a")
    frame = views.usage("a", store=store)
    assert usage == total(frame) == Usage(40, 10, 20, 4 * PRICE)
    wasted = "lost" if isinstance(death, KeyboardInterrupt) else "failed"
    turn = at - 1
    calls = [*ANSWERED[:turn], (turn, 1, wasted), (turn, 2, "answered"), *ANSWERED[at:]]
    assert kinds(frame) == calls
    lost = frame.iloc[turn]
    assert pd.isna(lost.output_tokens)
    assert pd.isna(lost.retries)
    assert lost.error == "OSError: 503" if wasted == "failed" else pd.isna(lost.error)


def test_a_run_that_dies_at_one_turn_again_and_again_counts_its_attempts(
    store: Checkpointer,
) -> None:
    llm = Priced({1: KeyboardInterrupt(), 2: OSError("503"), 3: KeyboardInterrupt()})
    assert driven(bot(store, llm), "a") == total(views.usage("a", store=store))
    frame = views.usage("a", store=store)
    assert len(frame) == llm.asked
    assert kinds(frame)[:4] == [
        (0, 1, "lost"),
        (0, 2, "failed"),
        (0, 3, "lost"),
        (0, 4, "answered"),
    ]
    steps = views.steps("a", store=store)
    turns = list(steps.number[steps.step_type == "llm_call"])
    assert list(frame.number) == [1, 1, 1, *turns]


@pytest.mark.parametrize("execution_id", ["nope", "", 3, "\ud800"])
def test_the_calls_of_an_unknown_run_are_an_error_that_names_it(
    store: Checkpointer, execution_id: str
) -> None:
    a_run_of_every_status(store)
    with pytest.raises(UnknownExecution) as refused:
        views.usage(execution_id, store=store)
    assert repr(execution_id) in str(refused.value)


def test_what_a_reply_was_come_by_is_beside_what_it_cost(store: Checkpointer) -> None:
    driven(bot(store, Priced()), "a")
    frame = views.usage("a", store=store)
    assert set(frame.model) == {"priced-1"}
    assert list(frame.retries) == [0, 1, 2, 3]
    assert json.loads(frame.retried_after[2]) == ["503 Unavailable"] * 2
    assert pd.isna(frame.retried_after[0])
    steps = views.steps("a", store=store)
    asked = steps[steps.step_type == "llm_call"]
    assert list(frame.number) == list(asked.number)
    assert list(frame.asked_at) == list(asked.created_at)
    assert list(frame.node_id) == list(asked.node_id)


def test_forks_and_follow_ups_have_their_own_calls_alone(store: Checkpointer) -> None:
    agent = bot(store, Priced())
    driven(agent, "a")
    at_turn = agent.fork("a", at="turn:3", execution_id="at-turn")
    at_tool = agent.fork("a", at="turn:2/tool:look", execution_id="at-tool")
    agent.llm.deaths[agent.llm.asked + 1] = KeyboardInterrupt()
    with suppress(KeyboardInterrupt):
        agent.fork("a", at="turn:3", execution_id="died")
    died = agent.resume("died")
    for result in (at_turn, at_tool, died):
        frame = views.usage(result.execution_id, store=store)
        assert total(frame) == result.usage == Usage(10, 4, 5, PRICE)
    assert kinds(views.usage("at-turn", store=store)) == [(3, 1, "answered")]
    assert kinds(views.usage("died", store=store)) == [(3, 1, "lost"), (3, 2, "answered")]
    follow_up = agent.resume("a", prompt="and again")
    assert follow_up.execution_id == "a-2"
    frame = views.usage("a-2", store=store)
    assert total(frame) == follow_up.usage
    assert len(frame) == sum(
        step == "llm_call" for step in views.steps("a-2", store=store).step_type
    )
    assert len(views.usage(store=store)) == agent.llm.asked


def test_a_replay_from_the_store_asks_nothing_and_adds_nothing(store: Checkpointer) -> None:
    agent = bot(store, Priced())
    driven(agent, "a")
    before = views.usage(store=store)
    other = bot(store, Priced())
    with pytest.raises(Exception, match="completed"):
        other.resume("a")
    pd.testing.assert_frame_equal(before, views.usage(store=store))


def test_a_call_is_in_flight_while_it_is_awaited_and_lost_when_another_took_over() -> None:
    store = MemoryCheckpointer()
    asked, go_on = threading.Event(), threading.Event()

    class Stopped(Priced):
        def complete(self, messages: Sequence[Message], tools: object) -> Reply:
            asked.set()
            assert go_on.wait(60)
            return super().complete(messages, tools)

    def stopped() -> None:
        with suppress(Exception):
            bot(store, Stopped()).run("go", execution_id="a")

    owner = threading.Thread(target=stopped)
    owner.start()
    assert asked.wait(60)
    assert kinds(views.usage("a", store=store)) == [(0, 1, "in flight")]
    assert kinds(views.usage(store=store)) == [(0, 1, "in flight")]
    assert [each.outcome for each in model_calls(store.load("a"))] == ["in flight"]
    result = bot(store, Priced()).resume("a", take_over=True)
    go_on.set()
    owner.join(60)
    frame = views.usage("a", store=store)
    assert kinds(frame)[:2] == [(0, 1, "lost"), (0, 2, "answered")]
    assert total(frame) == result.usage


def test_a_run_that_died_has_lost_its_call_before_anybody_resumes_it(store: Checkpointer) -> None:
    agent = bot(store, Priced({1: KeyboardInterrupt()}))
    with pytest.raises(KeyboardInterrupt):
        agent.run("go", execution_id="a")
    assert kinds(views.usage("a", store=store)) == [(0, 1, "lost")]
    assert kinds(views.sql("from usage", store=store)) == [(0, 1, "lost")]
    assert [each.outcome for each in model_calls(store.load("a"))] == ["lost"]


@pytest.mark.parametrize(
    ("limits", "error"), [({"max_turns": 1}, TurnLimit), ({"max_tokens": 5}, BudgetExceeded)]
)
def test_a_limit_that_keeps_a_run_from_asking_is_no_call(
    store: Checkpointer, limits: dict[str, int], error: type[Exception]
) -> None:
    agent = bot(store, Priced(), **limits)
    with pytest.raises(error):
        agent.run("go", execution_id="a")
    with pytest.raises(error):
        agent.resume("a")
    assert kinds(views.usage("a", store=store)) == [(0, 1, "answered")]
    assert len(model_calls(store.load("a"))) == agent.llm.asked == 1


def test_a_call_that_was_cancelled_is_lost(store: Checkpointer) -> None:
    with pytest.raises(KeyboardInterrupt):
        bot(store, Priced({1: KeyboardInterrupt()})).run("go", execution_id="a")
    store.cancel("a", by="ann")
    assert kinds(views.usage("a", store=store)) == [(0, 1, "lost")]


def test_a_trim_says_what_there_was_and_what_was_sent(store: Checkpointer) -> None:
    trim = Trim(14, 12_000, 9_000, 15)
    lease = store.create(
        Run("a", "bot", "go", 1, "a"), Turn(0, (Message("user", "go"),)), at=1, writer=7
    )
    said = (Message("assistant", "Done."),)
    end = End(1, "completed", "Done.", None, said, Usage(9_000, 3), Asked("m", (), trim))
    store.append(lease, end, at=2)
    store.release(lease)
    row = views.usage("a", store=store).iloc[0]
    assert (row.trim_before, row.trim_after, row.dropped) == (12_000, 9_000, 14)
    assert pd.isna(row.cost)


def test_what_nobody_counted_is_not_zero(store: Checkpointer) -> None:
    a_run_of_every_status(store)
    frame = views.usage("small", store=store)
    assert frame[["input_tokens", "output_tokens", "cached_tokens"]].isna().all(axis=None)
    assert frame[["cost", "model", "trim_before", "dropped"]].isna().all(axis=None)


def every_run(store: Checkpointer) -> Iterator[str]:
    a_run_of_every_status(store)
    agent = bot(store, Priced({2: KeyboardInterrupt(), 3: OSError("503")}))
    driven(agent, "died")
    agent.fork("died", at="turn:2", execution_id="fork")
    yield from (run.execution_id for run in store.runs())


def test_sql_and_cards_count_the_same_calls(store: Checkpointer) -> None:
    for execution_id in every_run(store):
        frame = views.usage(execution_id, store=store)
        calls = model_calls(store.load(execution_id))
        assert list(frame.number) == [each.number for each in calls]
        assert list(frame.attempt) == [each.attempt for each in calls]
        assert list(frame.outcome) == [each.outcome for each in calls]
        assert frame.output_tokens.sum() == sum(each.usage.output_tokens for each in calls)
        assert frame.cost.sum() == sum(each.usage.cost or 0 for each in calls)


def test_one_runs_calls_are_read_alone() -> None:
    store = MemoryCheckpointer()
    a_run_of_every_status(store)
    counting = Counting(store)
    views.usage("small", store=counting)
    assert (counting.entries, counting.lists) == (4, 0)
