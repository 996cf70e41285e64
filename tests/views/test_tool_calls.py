"""`tool_calls()` has a row for every call that a model asked for, and says what became of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta

import pandas as pd
import pytest

from durable_nb import (
    Agent,
    Checkpointer,
    MemoryCheckpointer,
    Resume,
    ScriptedModel,
    UnknownExecution,
    call,
    interrupt,
    tool,
    views,
)
from durable_nb.model.entries import Log, ToolCall
from tests.views.runs import Counting, a_run_of_every_status


class World:
    """What the tools do to their process: `deaths` is how often `pay` dies before it is paid."""

    def __init__(self, deaths: int = 0) -> None:
        self.deaths = deaths


def bot(store: Checkpointer, *script: object, world: World | None = None, **options: str) -> Agent:
    def look(x: int) -> str:
        """Look."""
        return f"saw {x}"

    def gate(x: int) -> str:
        """Ask."""
        return "gone" if interrupt("sure?", {"x": x}).approved else "kept"

    def breaks() -> str:
        """Fail."""
        raise OSError("no such order")

    @tool(name="pay", **options)
    def pay(order: str) -> str:
        """Pay."""
        if world and world.deaths:
            world.deaths -= 1
            raise KeyboardInterrupt
        return f"paid {order}"

    return Agent("bot", ScriptedModel(list(script)), [look, gate, breaks, pay], checkpointer=store)


def outcomes(frame: pd.DataFrame) -> list[tuple[str, str]]:
    return list(zip(frame.tool, frame.outcome, strict=True))


def calls_of(store: Checkpointer, execution_id: str) -> pd.DataFrame:
    """The run's calls, which the table has as the frame has them."""
    frame = views.tool_calls(execution_id, store=store)
    table = views.sql("from tool_calls", store=store)
    table = table[table.execution_id == execution_id].reset_index(drop=True)
    pd.testing.assert_frame_equal(frame, table)
    return frame


def test_a_call_says_what_it_was_asked_and_what_it_gave(store: Checkpointer) -> None:
    bot(store, call("look", x=1), "Done.").run("go", execution_id="a")
    (row,) = calls_of(store, "a").itertuples()
    rows = store.list("a")
    assert (row.number, row.turn, row.node_id, row.tool) == (2, 0, "turn:0/tool:look", "look")
    assert row.call_id == rows[1].entry.call_id
    assert json.loads(row.arguments) == {"x": 1}
    assert (row.result, row.outcome, row.attempts) == ("saw 1", "done", 1)
    assert row.started_at == rows[1].created_at
    assert row.duration == (rows[2].created_at - rows[1].created_at).total_seconds()
    assert row.agent_path == rows[1].agent_path
    assert pd.isna(row.edited)


def test_what_a_tool_raises_and_what_cannot_run_are_errors(store: Checkpointer) -> None:
    wrong = [call("look", x="one"), call("nobody", y=1), call("breaks")]
    bot(store, wrong, "Done.").run("go", execution_id="a")
    frame = calls_of(store, "a")
    assert outcomes(frame) == [("look", "error"), ("nobody", "error"), ("breaks", "error")]
    assert list(frame.attempts) == [0, 0, 1]
    assert list(frame.number) == [2, 2, 2]
    assert frame.result[2] == "Error: OSError: no such order"
    assert frame.started_at.isna().tolist() == [True, True, False]


def test_a_reply_of_which_no_call_can_run_is_there_with_its_turn(store: Checkpointer) -> None:
    bot(store, "Hm.", call("nobody"), "Done.").run("go", execution_id="first")
    bot(store, call("nobody"), call("look", x=1), "Done.").run("go", execution_id="a")
    frame = calls_of(store, "a")
    assert list(zip(frame.turn, frame.tool, frame.outcome, strict=True)) == [
        (0, "nobody", "error"),
        (1, "look", "done"),
    ]


def test_a_call_that_waits_is_paused_and_its_siblings_do_not_run(store: Checkpointer) -> None:
    agent = bot(store, [call("look", x=1), call("gate", x=2), call("look", x=3)], "Done.")
    agent.run("go", execution_id="a")
    waiting = calls_of(store, "a")
    assert outcomes(waiting) == [("look", "done"), ("gate", "paused"), ("look", "not run")]
    assert waiting.number.isna().tolist() == [False, False, True]
    agent.resume("a", resume_value=Resume(approved=False, by="ann", reason="too much"))
    frame = calls_of(store, "a")
    assert outcomes(frame) == [("look", "done"), ("gate", "refused"), ("look", "not run")]
    assert frame.result[1] == "[rejected by ann: too much]\nkept"
    assert frame.result[2].startswith("[not run: gate waited")
    assert pd.isna(frame.duration[2])


def test_an_edit_stands_beside_what_was_asked_for(store: Checkpointer) -> None:
    agent = bot(store, call("gate", x=2), "Done.")
    agent.run("go", execution_id="a")
    agent.resume("a", resume_value=Resume(approved=True, edited={"x": 9}))
    (row,) = calls_of(store, "a").itertuples()
    assert (json.loads(row.arguments), json.loads(row.edited)) == ({"x": 2}, {"x": 9})
    assert row.outcome == "done"


def test_what_nobody_decided_in_time_is_refused(store: Checkpointer) -> None:
    def gate() -> str:
        """Ask."""
        return str(interrupt("sure?", expires_in=timedelta(microseconds=1)).approved)

    agent = Agent("bot", ScriptedModel([call("gate"), "Done."]), [gate], checkpointer=store)
    agent.run("go", execution_id="a")
    agent.resume("a")
    assert outcomes(calls_of(store, "a")) == [("gate", "refused")]
    decided = views.decisions("a", store=store).iloc[0]
    assert (decided.source, decided.outcome, decided.by) == ("timeout", "rejected", "timeout")


def test_a_call_that_died_is_in_doubt_until_it_has_run_again(store: Checkpointer) -> None:
    agent = bot(store, call("pay", order="7"), "Done.", world=World(deaths=2))
    for attempts in 1, 2:
        with pytest.raises(KeyboardInterrupt):
            agent.run("go", execution_id="a") if attempts == 1 else agent.resume("a")
        (row,) = calls_of(store, "a").itertuples()
        assert (row.outcome, row.attempts) == ("in doubt", attempts)
        assert pd.isna(row.duration)
    agent.resume("a")
    (row,) = calls_of(store, "a").itertuples()
    assert (row.outcome, row.attempts, row.result) == ("done", 3, "paid 7")


@pytest.mark.parametrize(
    ("answer", "outcome", "status"),
    [
        (Resume.happened("paid"), "done", "completed"),
        (Resume.run_again(), "done", "completed"),
        (Resume.stop(), "in doubt", "cancelled"),
    ],
)
def test_what_a_person_says_of_a_call_in_doubt_is_what_it_became(
    store: Checkpointer, answer: Resume, outcome: str, status: str
) -> None:
    agent = bot(store, call("pay", order="7"), "Done.", world=World(1), on_crash="ask")
    with pytest.raises(KeyboardInterrupt):
        agent.run("go", execution_id="a")
    assert agent.resume("a").status == "paused"
    assert outcomes(calls_of(store, "a")) == [("pay", "in doubt")]
    assert agent.resume("a", resume_value=answer).status == status
    assert outcomes(calls_of(store, "a")) == [("pay", outcome)]


def test_a_call_that_is_not_run_again_stays_in_doubt(store: Checkpointer) -> None:
    agent = bot(store, call("pay", order="7"), "Done.", world=World(1), on_crash="fail")
    with pytest.raises(KeyboardInterrupt):
        agent.run("go", execution_id="a")
    agent.resume("a")
    (row,) = calls_of(store, "a").itertuples()
    assert row.outcome == "in doubt"
    assert row.result.startswith("[in doubt: ")


def test_a_call_is_in_flight_while_its_tool_works() -> None:
    store, working, go_on = MemoryCheckpointer(), threading.Event(), threading.Event()

    def works() -> str:
        """Take a while."""
        working.set()
        assert go_on.wait(60)
        return "done"

    agent = Agent("bot", ScriptedModel([call("works"), "Done."]), [works], checkpointer=store)
    owner = threading.Thread(target=agent.run, args=("go",), kwargs={"execution_id": "a"})
    owner.start()
    assert working.wait(60)
    assert outcomes(calls_of(store, "a")) == [("works", "in flight")]
    go_on.set()
    owner.join(60)
    assert outcomes(calls_of(store, "a")) == [("works", "done")]


def test_a_cancelled_run_says_which_calls_never_ran(store: Checkpointer) -> None:
    agent = bot(store, [call("gate", x=1), call("look", x=2)], "Done.")
    agent.run("go", execution_id="a")
    store.cancel("a", by="ann")
    assert outcomes(calls_of(store, "a")) == [("gate", "not run"), ("look", "not run")]
    agent.resume("a", prompt="and now?")
    assert outcomes(calls_of(store, "a")) == [("gate", "not run"), ("look", "not run")]
    assert outcomes(calls_of(store, "a-2")) == []


def test_a_fork_enters_its_parents_call_again_with_its_arguments(store: Checkpointer) -> None:
    agent = bot(store, [call("look", x=1), call("look", x=2)], call("look", x=3), "Done.")
    agent.run("go", execution_id="a")
    agent.fork("a", at=3, execution_id="b", edit={"x": 5})
    frame = calls_of(store, "b")
    assert [json.loads(each) for each in frame.arguments] == [{"x": 2}, {"x": 3}]
    assert json.loads(frame.edited[0]) == {"x": 5}
    assert list(frame.result) == ["saw 5", "saw 3"]
    assert frame.call_id[0] == calls_of(store, "a").call_id[1]
    assert list(frame.outcome) == ["done", "done"]


def test_a_fork_of_a_fork_finds_the_call_in_the_run_that_has_it(store: Checkpointer) -> None:
    agent = bot(store, call("look", x=1), call("look", x=2), "Done.")
    agent.run("go", execution_id="a")
    agent.fork("a", at="turn:1/tool:look", execution_id="b")
    agent.fork("b", at=store.list("b")[0].number, execution_id="c", edit={"x": 7})
    agent.fork("c", at="turn:0/tool:look", execution_id="d")
    assert [json.loads(each) for each in calls_of(store, "c").arguments] == [{"x": 2}]
    assert list(calls_of(store, "c").result) == ["saw 7"]
    assert [json.loads(each) for each in calls_of(store, "d").arguments] == [{"x": 1}, {"x": 2}]


def test_a_fork_at_a_pause_waits_with_its_parents_arguments(store: Checkpointer) -> None:
    agent = bot(store, call("gate", x=1), "Done.")
    agent.run("go", execution_id="a")
    agent.fork("a", at=3, execution_id="b")
    (row,) = calls_of(store, "b").itertuples()
    assert (row.outcome, json.loads(row.arguments)) == ("paused", {"x": 1})
    agent.resume("b", resume_value=Resume(approved=True))
    assert outcomes(calls_of(store, "b")) == [("gate", "done")]
    assert outcomes(calls_of(store, "a")) == [("gate", "paused")]


def test_a_fork_at_a_turn_has_no_call_of_its_parents(store: Checkpointer) -> None:
    agent = bot(store, call("look", x=1), "Done.")
    agent.run("go", execution_id="a")
    agent.fork("a", at="turn:1", execution_id="b")
    assert calls_of(store, "b").empty


def eventful(store: Checkpointer) -> Iterator[str]:
    a_run_of_every_status(store)
    script = [call("pay", order="7"), call("gate", x=1)], "Done.", "And more."
    agent = bot(store, *script, world=World(1))
    with suppress(KeyboardInterrupt):
        agent.run("go", execution_id="eventful")
    agent.resume("eventful")
    agent.fork("eventful", at="turn:0/tool:pay", execution_id="fork")
    agent.resume("eventful", resume_value=Resume(approved=True, edited={"x": 3}))
    agent.resume("eventful", prompt="and again")
    yield from (run.execution_id for run in store.runs())


def own_calls(log: Log) -> list[ToolCall]:
    return [row.entry for row in log.own if isinstance(row.entry, ToolCall)]


def test_each_call_of_a_log_is_one_row_with_what_the_log_says(store: Checkpointer) -> None:
    for execution_id in eventful(store):
        log = store.load(execution_id)
        frame = calls_of(store, execution_id)
        assert frame.call_id.is_unique
        begun = {row.call_id: row for row in frame[frame.started_at.notna()].itertuples()}
        for entry in own_calls(log):
            row = begun.pop(entry.call_id)
            assert (row.tool, row.turn) == (entry.tool, entry.turn)
            assert json.loads(row.arguments) == entry.arguments
        assert len(begun) <= (log.run.parent is not None)  # a fork's first call is its parent's
        said = views.messages(execution_id, store=store)
        results = dict(zip(said.tool_call_id, said.content, strict=True))
        for row in frame[frame.result.notna()].itertuples():
            assert results[row.call_id] == row.result


def test_one_runs_calls_are_read_alone() -> None:
    store = MemoryCheckpointer()
    a_run_of_every_status(store)
    counting = Counting(store)
    views.tool_calls("small", store=counting)
    assert (counting.entries, counting.lists) == (4, 0)


@pytest.mark.parametrize("view", [views.tool_calls, views.decisions, views.idempotency])
@pytest.mark.parametrize("execution_id", ["nope", "", 3, "\ud800", "a\0b"])
def test_an_unknown_run_is_an_error_that_names_it(
    store: Checkpointer, view: object, execution_id: object
) -> None:
    a_run_of_every_status(store)
    with pytest.raises(UnknownExecution) as refused:
        view(execution_id, store=store)
    assert repr(execution_id) in str(refused.value)
