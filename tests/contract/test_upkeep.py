"""R5, R8, R3: cancelled, pruned and deleted runs; pauses that expire; code that changed."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from durable_nb import (
    AlreadyResumed,
    Checkpointer,
    InvalidInput,
    MissingTool,
    Resume,
    RunIsLive,
    RunPaused,
    RunResult,
    StaleLog,
    UnknownExecution,
    call,
    idempotent,
    interrupt,
    tool,
)
from durable_nb.model.entries import Answer
from durable_nb.runtime.ports import Ports
from tests.support.agents import bot, told

YES = Resume(True, by="ann")


def ask() -> str:
    """Ask."""
    decision = interrupt("why", expires_in=60)
    return f"{decision.approved} by {decision.by}"


ASK = [call("ask"), "done"]


class Clock:
    """Microseconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        return self.now


# --- cancel ---------------------------------------------------------------------------------------


def test_a_paused_run_is_cancelled_and_waits_no_more(store: Checkpointer):
    agent = bot(store, ASK, ask)
    agent.run("go", execution_id="r1")
    store.cancel("r1", by="ann")
    last = store.get_last("r1")
    assert (last.status, last.entry.error, last.node_index) == ("cancelled", "cancelled by ann", 1)
    assert not store.list_pending_interrupts()
    with pytest.raises(AlreadyResumed, match="cancelled by ann at "):
        agent.resume("r1", resume_value=YES)
    with pytest.raises(AlreadyResumed, match="nothing to cancel"):
        store.cancel("r1")
    with pytest.raises(UnknownExecution):
        store.cancel("nope")


def test_a_live_owner_stops_at_its_next_entry(store: Checkpointer, elsewhere: Checkpointer):
    begun, go_on = threading.Event(), threading.Event()

    def work() -> str:
        begun.set()
        go_on.wait(20)
        return "ok"

    results = []
    agent = bot(store, [call("work"), "done"], work)
    thread = threading.Thread(target=lambda: results.append(agent.run("go", execution_id="r1")))
    thread.start()
    begun.wait(20)
    elsewhere.cancel("r1")
    go_on.set()
    thread.join()
    assert results[0].status == "cancelled"
    assert [row.status for row in store.list("r1")] == ["completed", "completed", "cancelled"]


def test_a_failed_run_can_be_cancelled_for_good(store: Checkpointer):
    with pytest.raises(OSError, match="503"):
        bot(store, [OSError("503"), "done"]).run("go", execution_id="r1")
    store.cancel("r1")
    with pytest.raises(AlreadyResumed):
        bot(store, ["done"]).resume("r1")


# --- prune ----------------------------------------------------------------------------------------


def a_store_of_every_kind(store: Checkpointer) -> None:
    def dies() -> str:
        raise KeyboardInterrupt

    bot(store, ["done", "more"]).run("go", execution_id="completed", tags=("demo", "old"))
    with pytest.raises(OSError, match="503"):
        bot(store, [OSError("503")]).run("go", execution_id="failed", tags=("demo",))
    bot(store, ASK, ask).run("go", execution_id="paused")
    bot(store, ASK, ask).run("go", execution_id="cancelled")
    store.cancel("cancelled")
    with pytest.raises(KeyboardInterrupt):
        bot(store, [call("dies"), "done"], dies).run("go", execution_id="crashed")


def test_only_ended_runs_are_pruned(store: Checkpointer):
    a_store_of_every_kind(store)
    assert list(store.prune(0, dry_run=True)) == ["completed", "failed", "cancelled"]
    assert len(store.runs()) == 5
    assert list(store.prune(timedelta(0))) == ["completed", "failed", "cancelled"]
    assert [run.execution_id for run in store.runs()] == ["crashed", "paused"]
    with pytest.raises(UnknownExecution):
        store.list("completed")
    assert list(store.prune(0)) == []


def test_runs_are_pruned_by_age_tags_and_status(store: Checkpointer):
    a_store_of_every_kind(store)
    assert list(store.prune(3600)) == []
    assert list(store.prune(0, tags=("demo", "old"), dry_run=True)) == ["completed"]
    assert list(store.prune(0, status="failed", dry_run=True)) == ["failed"]
    assert list(store.prune(0, status="paused", dry_run=True)) == []
    assert list(store.prune(0, tags=("demo",))) == ["completed", "failed"]
    for age in (-1, float("nan"), float("inf"), 1e30, "30d", None):
        with pytest.raises(InvalidInput, match="older_than"):
            store.prune(age)
    with pytest.raises(InvalidInput, match="status"):
        store.prune(0, status="finished")
    with pytest.raises(InvalidInput, match="tags"):
        store.prune(0, tags="demo")


def test_what_a_fork_or_follow_up_needs_stays(store: Checkpointer):
    bot(store, ["one", "two"]).run("go", execution_id="talk")
    bot(store, ["one", "two"]).resume("talk", prompt="more")
    bot(store, ASK, ask).run("go", execution_id="asked")
    bot(store, ASK, ask).resume("asked", resume_value=YES)
    bot(store, ASK, ask).fork("asked", at="turn:0/tool:ask", execution_id="fork")
    assert list(store.prune(0, dry_run=True)) == ["talk", "talk-2"]
    store.cancel("fork")
    assert list(store.prune(0)) == ["talk", "talk-2", "asked", "fork"]
    assert list(store.runs()) == []


def test_pruning_leaves_the_cache_of_a_paused_run(store: Checkpointer, effects):
    @idempotent
    def charge(order: str) -> str:
        effects.add(order)
        return "ok"

    @tool(name="pay")
    def pay(order: str) -> str:
        charge(order)
        return f"{charge(order)} {interrupt('why').approved}"

    script = [call("pay", order="1"), "done"]
    bot(store, ["done"]).run("go", execution_id="old")
    bot(store, script, pay).run("go", execution_id="r1")
    store.prune(0)
    bot(store, script, pay).resume("r1", resume_value=YES)
    assert effects.lines == ["1"]


def test_a_run_is_deleted_whatever_its_status(store: Checkpointer, elsewhere: Checkpointer):
    a_store_of_every_kind(store)
    bot(store, ["done", "more"]).resume("completed", prompt="more")
    with pytest.raises(InvalidInput, match="completed-2"):
        store.delete_execution("completed")
    for execution_id in ("completed-2", "completed", "paused", "crashed", "failed"):
        elsewhere.delete_execution(execution_id)
    assert [run.execution_id for run in store.runs()] == ["cancelled"]
    assert not store.list_pending_interrupts()
    with pytest.raises(UnknownExecution):
        store.delete_execution("paused")
    bot(store, ["again"]).run("go", execution_id="paused")


def test_a_live_run_is_neither_deleted_nor_pruned(store: Checkpointer, elsewhere: Checkpointer):
    def work() -> str:
        with pytest.raises(RunIsLive):
            elsewhere.delete_execution("r1")
        assert list(elsewhere.prune(0)) == []
        return "ok"

    assert bot(store, [call("work"), "done"], work).run("go", execution_id="r1").output == "done"


def test_the_owner_of_a_run_that_was_deleted_elsewhere_writes_nothing(store: Checkpointer):
    def work() -> str:
        store.cancel("r1")
        store.delete_execution("r1")
        return "ok"

    with pytest.raises((StaleLog, UnknownExecution)):
        bot(store, [call("work"), "done"], work).run("go", execution_id="r1")
    assert list(store.runs()) == []


def test_the_owner_of_a_deleted_run_writes_nothing_into_the_next_one(store: Checkpointer):
    inside, looked = threading.Event(), threading.Event()

    @idempotent
    def charge() -> str:
        return "by the deleted run"

    def work() -> str:
        store.cancel("r1")
        store.delete_execution("r1")
        later.start()
        assert inside.wait(30)
        with pytest.raises((StaleLog, UnknownExecution)):
            charge()
        return "of the deleted run"

    def wait() -> str:
        inside.set()
        assert looked.wait(30)
        return "its own"

    def begin() -> None:
        results.append(bot(store, [call("wait"), "done"], wait).run("go", execution_id="r2"))

    results: list[RunResult] = []
    later = threading.Thread(target=begin)
    try:
        with pytest.raises((StaleLog, UnknownExecution)):
            bot(store, [call("work"), "done"], work).run("go", execution_id="r1")
    finally:
        looked.set()
        later.join(30)
    assert told(results[0]) == ["its own"]
    assert not store.effects("r2")


# --- expiry ---------------------------------------------------------------------------------------


def test_an_expired_pause_is_a_no_of_nobodys(store: Checkpointer):
    clock = Clock()
    ports = Ports(clock=clock, user=lambda: "ann")
    bot(store, ASK, ask, ports=ports).run("go", execution_id="r1")
    (waiting,) = store.list_pending_interrupts()
    assert (waiting.expires_at - waiting.created_at) == timedelta(seconds=60)
    clock.now += 60_000_000
    late = bot(store, ASK, ask, ports=ports)
    with pytest.raises(AlreadyResumed, match="expired"):
        late.resume("r1", resume_value=YES)
    with pytest.raises(RunPaused):
        late.resume("r1", prompt="and now?")
    result = late.resume("r1")
    assert result.status == "completed"
    assert told(result) == [
        "[expired: nobody decided by 1970-01-01 00:01:01 UTC]\nFalse by timeout"
    ]
    answer = store.list("r1")[3].entry
    assert (answer.approved, answer.source, answer.by) == (False, "timeout", "timeout")


def test_a_pause_in_time_takes_its_answer(store: Checkpointer):
    clock = Clock()
    ports = Ports(clock=clock)
    agent = bot(store, ASK, ask, ports=ports)
    agent.run("go", execution_id="r1")
    clock.now += 59_000_000
    with pytest.raises(RunPaused):
        agent.resume("r1")
    assert told(agent.resume("r1", resume_value=YES)) == ["True by ann"]


def test_a_sweep_goes_on_with_what_has_expired(store: Checkpointer):
    clock = Clock()
    agent = bot(store, ASK, ask, ports=Ports(clock=clock))
    agent.run("go", execution_id="first")
    clock.now += 30_000_000
    agent.run("go", execution_id="second")
    assert agent.sweep() == []
    clock.now += 30_000_000
    assert [result.execution_id for result in agent.sweep()] == ["first"]
    assert [each.execution_id for each in store.list_pending_interrupts()] == ["second"]


def test_a_run_that_cannot_go_on_does_not_keep_a_sweep_from_the_others(store: Checkpointer):
    clock = Clock()
    ports = Ports(clock=clock)

    def other() -> str:
        return str(interrupt("why", expires_in=60).approved)

    bot(store, [call("other"), "done"], other, ports=ports).run("go", execution_id="first")
    agent = bot(store, ASK, ask, ports=ports)
    agent.run("go", execution_id="second")
    clock.now += 60_000_000
    with pytest.raises(MissingTool, match="other"):
        agent.sweep()
    assert {run.execution_id: run.status for run in store.runs()} == {
        "first": "paused",
        "second": "completed",
    }


# --- code that changed ----------------------------------------------------------------------------


def test_a_resume_records_what_changed_in_the_agent(store: Checkpointer):
    bot(store, ASK, ask).run("go", execution_id="r1")

    @tool(name="ask")
    def changed() -> str:
        return f"now {interrupt('why').approved}"

    def extra() -> str:
        return "new"

    agent = bot(store, ASK, changed, extra, system_prompt="be kind")
    result = agent.resume("r1", resume_value=YES)
    assert told(result) == ["now True"]
    assert store.list("r1")[3].entry.changed == ("prompt", "tool ask", "tool extra")


def test_a_change_is_reported_once(store: Checkpointer):
    def dies() -> str:
        raise KeyboardInterrupt

    script = [call("dies"), "done"]
    with pytest.raises(KeyboardInterrupt):
        bot(store, script, dies).run("go", execution_id="r1")
    for expected in (("prompt",), ()):
        with pytest.raises(KeyboardInterrupt):
            bot(store, script, dies, system_prompt="new").resume("r1")
        assert store.get_last("r1").entry.changed == expected


def test_a_cancellation_finds_a_run_that_has_moved_on(store: Checkpointer, monkeypatch) -> None:
    agent = bot(store, ASK, ask)
    agent.run("go", execution_id="r1")
    load, loads = store.load, []

    def load_then_let_it_move(execution_id: str):
        log = load(execution_id)
        if not loads:
            loads.append(log)
            store.release(
                store.claim(
                    "r1",
                    Answer(0, "ask", pause=3, approved=False, by="ann"),
                    after=3,
                    at=1,
                    writer=7,
                )[0]
            )
        return log

    monkeypatch.setattr(store, "load", load_then_let_it_move)
    store.cancel("r1", by="bob")
    monkeypatch.undo()
    assert [row.step_type for row in store.list("r1")][3:] == ["resume", "run_end"]
    assert store.get_last("r1").status == "cancelled"


def test_a_late_answer_is_told_what_became_of_a_call_in_doubt(store: Checkpointer) -> None:
    @tool(name="pay", on_crash="ask")
    def pay() -> str:
        raise KeyboardInterrupt

    agent = bot(store, [call("pay"), "done"], pay)
    with pytest.raises(KeyboardInterrupt):
        agent.run("go", execution_id="r1")
    agent.resume("r1")
    agent.resume("r1", resume_value=Resume.happened("paid", by="ann"))
    with pytest.raises(AlreadyResumed, match=r"ann answered pause \d \(happened\)"):
        agent.resume("r1", resume_value=Resume.happened("paid", by="bob"))
