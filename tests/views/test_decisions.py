"""Who decided what, what `@idempotent` functions did, and what differs between two steps."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime

import pandas as pd
import pytest

from durable_nb import (
    Agent,
    Checkpointer,
    InvalidInput,
    MemoryCheckpointer,
    Resume,
    ScriptedModel,
    UnknownExecution,
    call,
    idempotent,
    interrupt,
    views,
)
from durable_nb.core.compare import compare, point
from durable_nb.model.entries import Answer
from durable_nb.model.values import dumps, freeze
from tests.views.runs import a_run_of_every_status


def gate_bot(store: Checkpointer, prompt: str = "be brief") -> Agent:
    def gate(x: int) -> str:
        """Ask."""
        return str(interrupt("sure?", {"x": x}).approved)

    llm = ScriptedModel([call("gate", x=2), "Done.", "More."])
    return Agent("bot", llm, [gate], system_prompt=prompt, checkpointer=store)


def test_a_decision_says_who_what_why_and_how_long_it_was_waited_for(store: Checkpointer) -> None:
    gate_bot(store).run("go", execution_id="a")
    decision = Resume(
        approved=True, by="ann", reason="in stock", edited={"x": 3}, metadata={"ticket": 7}
    )
    gate_bot(store, "be long").resume("a", resume_value=decision)
    (row,) = views.decisions("a", store=store).itertuples()
    pause, answer = store.list("a")[2:4]
    assert (row.number, row.pause, row.node_id, row.tool) == (4, 3, "turn:0/tool:gate", "gate")
    assert (row.reason, row.approved, row.outcome) == ("sure?", True, "approved")
    assert (row.by, row.source, row.note) == ("ann", "human", "in stock")
    assert json.loads(row.edited) == {"x": 3}
    assert json.loads(row.changed) == ["prompt"]
    assert json.loads(row.metadata) == {"ticket": 7}
    assert (row.shown, row.ran) == (answer.entry.shown, answer.entry.ran)
    assert row.shown != row.ran
    assert row.decided_at == answer.created_at
    assert row.waited == (answer.created_at - pause.created_at).total_seconds()


def test_every_answer_of_the_store_is_one_decision_in_frame_and_table(store: Checkpointer) -> None:
    a_run_of_every_status(store)
    gate_bot(store).run("go", execution_id="a")
    gate_bot(store).fork("a", at=3, execution_id="b")
    for execution_id in ("a", "b"):
        gate_bot(store).resume(execution_id, resume_value=Resume(approved=False, by="bob"))
    frame = views.decisions(store=store)
    pd.testing.assert_frame_equal(frame, views.sql("from decisions", store=store))
    answers = [
        (run.execution_id, row.number, row.entry.by, row.entry.approved, row.entry.pause)
        for run in reversed(store.runs())
        for row in store.list(run.execution_id)
        if isinstance(row.entry, Answer)
    ]
    columns = frame.execution_id, frame.number, frame.by, frame.approved, frame.pause
    assert sorted(zip(*columns, strict=True)) == sorted(answers)
    assert frame.reason.notna().all()
    for execution_id in ("approved", "b", "waits"):
        alone = frame[frame.execution_id == execution_id].reset_index(drop=True)
        pd.testing.assert_frame_equal(views.decisions(execution_id, store=store), alone)


def effects_bot(store: Checkpointer, die: list[BaseException]) -> Agent:
    @idempotent(key_fn=lambda order: f"pay-{order}")
    def charge(order: str) -> dict[str, object]:
        if order == "7" and die:
            raise die.pop()
        return {"paid": order, "at": datetime(2026, 1, 2, tzinfo=UTC)}

    def pay() -> str:
        """Pay for two."""
        return str([charge("5"), charge("7")])

    return Agent("bot", ScriptedModel([call("pay"), "Done."]), [pay], checkpointer=store)


def test_a_key_is_kept_with_its_value_or_in_doubt(store: Checkpointer) -> None:
    agent = effects_bot(store, [KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        agent.run("go", execution_id="a")
    before = views.idempotency("a", store=store)
    assert before.function.str.endswith("charge").all()
    assert list(before.status) == ["kept", "in doubt"]
    assert list(before.attempts) == [1, 1]
    assert before.value.isna().tolist() == before.kept_at.isna().tolist() == [False, True]
    agent.resume("a")
    after = views.idempotency("a", store=store)
    assert list(after.status) == ["kept", "kept"]
    assert list(after.attempts) == [1, 2]
    paid = {"paid": "7", "at": datetime(2026, 1, 2, tzinfo=UTC)}
    assert json.loads(after.value[1]) == json.loads(dumps(freeze(paid, "value")))
    for shown, known in zip(after.itertuples(), store.effects("a"), strict=True):
        assert (shown.function, shown.key, shown.attempts) == (
            *(known.function, known.key, known.attempts),
        )
        assert (shown.begun_at, shown.kept_at) == (known.begun_at, known.kept_at)


def test_the_keys_of_all_runs_are_those_of_each_and_deleted_ones_are_gone(
    store: Checkpointer,
) -> None:
    for execution_id in ("a", "b"):
        effects_bot(store, []).run("go", execution_id=execution_id)
    bare = gate_bot(store)
    bare.run("go", execution_id="none")
    frame = views.idempotency(store=store)
    pd.testing.assert_frame_equal(frame, views.sql("from idempotency", store=store))
    each = [views.idempotency(id_, store=store) for id_ in ("a", "b")]
    pd.testing.assert_frame_equal(frame, pd.concat(each, ignore_index=True))
    assert views.idempotency("none", store=store).empty
    store.delete_execution("a")
    assert set(views.idempotency(store=store).execution_id) == {"b"}


def test_a_call_is_in_flight_while_it_runs_also_for_who_has_just_looked() -> None:
    store, working, go_on = MemoryCheckpointer(), threading.Event(), threading.Event()

    @idempotent
    def charge() -> str:
        working.set()
        assert go_on.wait(60)
        return "paid"

    def pay() -> str:
        """Pay."""
        return charge()

    agent = Agent("bot", ScriptedModel([call("pay"), "Done."]), [pay], checkpointer=store)
    views.idempotency(store=store)
    owner = threading.Thread(target=agent.run, args=("go",), kwargs={"execution_id": "a"})
    owner.start()
    assert working.wait(60)
    assert list(views.idempotency(store=store).status) == ["in flight"]
    go_on.set()
    owner.join(60)
    assert list(views.idempotency(store=store).status) == ["kept"]


def test_a_mark_without_a_new_entry_is_news(store: Checkpointer, elsewhere: Checkpointer) -> None:
    seen: list[list[str]] = []

    @idempotent
    def charge(n: int) -> int:
        return n

    def pay() -> str:
        """Pay twice, and look after each."""
        for n in (1, 2):
            charge(n)
            seen.append(list(views.sql("from idempotency", store=elsewhere).status))
        return "paid"

    Agent("bot", ScriptedModel([call("pay"), "Done."]), [pay], checkpointer=store).run("go")
    assert seen == [["kept"], ["kept", "kept"]]


def test_a_difference_is_a_row_with_what_was_and_what_is(store: Checkpointer) -> None:
    gate_bot(store).run("go", execution_id="a")
    gate_bot(store).resume("a", resume_value=Resume(approved=True, by="ann", edited={"x": 3}))
    frame = views.diff("a", 3, "run_end", store=store)
    assert list(frame.columns) == ["key", "how", "before", "after"]
    log = store.load("a")
    found = compare(point(log, 3), point(log, "run_end"))
    assert list(frame.key) == [change.key for change in found]
    assert list(frame.before.fillna("-")) == [change.before or "-" for change in found]
    known = frame.set_index("key")
    assert tuple(known.loc["status", ["how", "before", "after"]]) == (
        *("changed", "paused", "completed"),
    )
    assert views.diff("a", 2, 2, store=store).empty
    assert dict(views.diff("a", 2, 2, store=store).dtypes) == dict(frame.dtypes)


def test_a_step_that_is_not_there_is_an_error_that_names_it(store: Checkpointer) -> None:
    gate_bot(store).run("go", execution_id="a")
    with pytest.raises(InvalidInput, match="99"):
        views.diff("a", 1, 99, store=store)
    with pytest.raises(UnknownExecution, match="nope"):
        views.diff("nope", 1, 2, store=store)
    with pytest.raises(UnknownExecution, match="nope"):
        views.picture("nope", store=store)


def test_sessions_are_the_stores_own_list(store: Checkpointer) -> None:
    a_run_of_every_status(store)
    agent = gate_bot(store)
    agent.run("go", execution_id="talk")
    agent.resume("talk", resume_value=Resume(approved=True))
    agent.resume("talk", prompt="and more?")
    frame = views.sessions(store=store)
    for shown, listed in zip(frame.itertuples(), store.sessions(), strict=True):
        for column in (
            *("session", "newest", "status", "agent", "prompt", "runs"),
            *("created_at", "updated_at"),
        ):
            assert getattr(shown, column) == getattr(listed, column), column
    assert (frame.newest[0], frame.runs[0]) == ("talk-2", 2)
