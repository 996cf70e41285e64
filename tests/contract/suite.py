"""What every store promises (`durable_nb.stores.protocol`), as a class that anybody can run over theirs.

Inherit from `CheckpointerContract` in a test module that has two fixtures: `store`, an empty store,
and `elsewhere`, the same store as another process sees it (it may be the same object).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from durable_nb import (
    Call,
    Checkpointer,
    ExecutionExists,
    Message,
    NotStorable,
    RunIsLive,
    StaleLog,
    StoreUnusable,
    UnknownExecution,
    Usage,
)
from durable_nb.core.nodes import listing
from durable_nb.model.entries import Answer, End, Pause, Reentry, Run, ToolCall, Turn
from durable_nb.model.values import digest
from durable_nb.stores.protocol import Begun, Kept, Lease, Unknown

OPENING = Turn(0, (Message("system", "be brief"), Message("user", "Refund order 1042")))
ASKED = Message("assistant", "", (Call("refund", {"order": "1042", "amount": 20}, "c1"),))
CALLED = ToolCall(0, "refund", "c1", {"order": "1042", "amount": 20}, (ASKED,), Usage(7, 3))
CONTEXT = {"amount": 20, "when": datetime(2026, 1, 2, tzinfo=UTC), "parts": (1, {2})}
PAUSED = Pause(0, "refund", "manager_approval", CONTEXT, digest(CONTEXT))
REENTRY = Reentry(0, None, of=1, by="ann")
DONE = End(1, "completed", "done", messages=(Message("assistant", "done"),))
WEIRD_IDS = (
    "it's",
    'a"b',
    "a/b",
    "../../etc/passwd",
    "%00",
    "名前",
    "a;drop table runs",
    " ",
    "x" * 512,
)


def a_run(execution_id: str = "r1", **fields: object) -> Run:
    return Run(execution_id, "bot", "Refund order 1042", 5, execution_id, **fields)  # type: ignore[arg-type]


def started(store: Checkpointer, execution_id: str = "r1", writer: int = 1) -> Lease:
    return store.create(a_run(execution_id), OPENING, at=10, writer=writer)


def paused(store: Checkpointer, execution_id: str = "r1", writer: int = 1) -> Lease:
    """A run that waits for a person, its lease released."""
    lease = started(store, execution_id, writer)
    store.append(lease, CALLED, at=11)
    store.append(lease, PAUSED, at=12)
    store.release(lease)
    return lease


def answer(by: str = "ann") -> Answer:
    return Answer(0, "refund", pause=3, approved=True, by=by)


def statuses(store: Checkpointer) -> dict[str, str]:
    return {run.execution_id: run.status for run in store.runs()}


def at_once(count: int, work: Callable[[int], object]) -> list[object]:
    """What `count` threads, released together, return or raise."""
    ready = threading.Barrier(count)

    def one(index: int) -> object:
        ready.wait()
        try:
            return work(index)
        except Exception as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


class LogContract:
    """The log of one run: what goes in comes out, in order, and only once."""

    def test_what_was_written_is_loaded_as_it_was(self, store, elsewhere) -> None:
        run = a_run(workdir="/data", tags=("a", "b"), definition='{"x": 1}', fingerprint="f")
        lease = store.create(run, OPENING, at=10, writer=77)
        rows = [store.append(lease, entry, at=11) for entry in (CALLED, PAUSED)]
        log = elsewhere.load("r1")
        assert log.run == run
        assert [row.entry for row in log.rows] == [OPENING, CALLED, PAUSED]
        assert list(log.rows[1:]) == rows
        assert [(row.number, row.at, row.writer, row.frame) for row in log.rows] == [
            (1, 10, 77, ""),
            (2, 11, 77, ""),
            (3, 11, 77, ""),
        ]
        assert log.rows[2].entry.context == CONTEXT

    def test_numbers_of_a_run_go_on_from_its_base(self, store) -> None:
        lease = store.create(a_run(base=40), OPENING, at=1, writer=1)
        store.append(lease, CALLED, at=1)
        assert [row.number for row in store.load("r1").rows] == [41, 42]
        assert store.runs()[0].steps == 2

    def test_order_is_by_number_when_the_clock_stands_still_or_goes_back(self, store) -> None:
        lease = started(store)
        for at in (10, 10, 9, -5):
            store.append(lease, Turn(1), at=at)
        assert [row.number for row in store.load("r1").rows] == [1, 2, 3, 4, 5]
        assert [row.number for row in store.list("r1")] == [1, 2, 3, 4, 5]
        assert store.get_last("r1").number == 5

    def test_a_run_is_never_begun_twice(self, store, elsewhere) -> None:
        started(store)
        with pytest.raises(ExecutionExists, match=r"'r1'.*resume"):
            elsewhere.create(a_run(), Turn(0, (Message("user", "other"),)), at=99, writer=2)
        assert [row.entry for row in store.load("r1").rows] == [OPENING]
        assert statuses(store) == {"r1": "running"}

    def test_of_eight_who_begin_one_run_one_does(self, store) -> None:
        outcomes = at_once(8, lambda writer: started(store, writer=writer + 1))
        assert Counter(type(each) for each in outcomes) == {Lease: 1, ExecutionExists: 7}
        assert len(store.load("r1").rows) == 1

    @pytest.mark.parametrize("execution_id", WEIRD_IDS)
    def test_an_id_is_data(self, store, elsewhere, execution_id: str) -> None:
        lease = paused(store, execution_id)
        store.claim(execution_id, answer(), after=3, at=13, writer=2)
        assert elsewhere.load(execution_id).run.execution_id == execution_id
        assert [run.execution_id for run in elsewhere.runs()] == [execution_id]
        assert lease.execution_id == execution_id

    @pytest.mark.parametrize(
        "execution_id",
        ["", "nope", "r1'--", "%", "*", "../r1", "x" * 10_240, "\0", "r1\0", "\ud800"],
    )
    def test_an_id_that_nobody_has_is_unknown(self, store, execution_id: str) -> None:
        paused(store)
        for ask in (store.load, store.list, store.get_last):
            with pytest.raises(UnknownExecution, match="no run"):
                ask(execution_id)
        with pytest.raises(UnknownExecution, match="no run"):
            store.claim(execution_id, answer(), after=3, at=1, writer=2)
        assert statuses(store) == {"r1": "paused"}

    def test_an_empty_store_has_no_runs_and_no_pauses(self, store) -> None:
        assert list(store.runs()) == []
        assert list(store.list_pending_interrupts()) == []
        with pytest.raises(UnknownExecution):
            store.load("r1")

    def test_what_cannot_be_stored_is_refused_and_changes_nothing(self, store) -> None:
        with pytest.raises(NotStorable, match="content"):
            store.create(a_run(), Turn(0, (Message("user", object()),)), at=1, writer=1)  # type: ignore[arg-type]
        assert list(store.runs()) == []
        lease = started(store)
        with pytest.raises(NotStorable, match=r"arguments\['x'\]"):
            store.append(lease, ToolCall(0, "t", "c", {"x": object()}), at=1)
        assert len(store.load("r1").rows) == 1
        store.append(lease, CALLED, at=1)
        assert len(store.load("r1").rows) == 2


class ClaimContract:
    """Who drives: a claim is an append that won, and it lasts while its process lives."""

    def test_a_claim_makes_a_driver(self, store, elsewhere) -> None:
        paused(store)
        lease, row = elsewhere.claim("r1", answer(), after=3, at=13, writer=2)
        assert (row.number, row.writer, row.entry) == (4, 2, answer())
        assert store.load("r1").live
        assert elsewhere.append(lease, Turn(1), at=14).number == 5

    def test_of_eight_who_answer_one_pause_one_wins(self, store, elsewhere) -> None:
        paused(store)
        outcomes = at_once(
            8,
            lambda n: (store, elsewhere)[n % 2].claim(
                "r1", answer(f"p{n}"), after=3, at=13, writer=n + 2
            ),
        )
        kinds = Counter(type(each) for each in outcomes)
        assert kinds == {tuple: 1, StaleLog: 7}
        assert len(store.load("r1").rows) == 4

    def test_a_claim_after_an_older_entry_is_stale(self, store) -> None:
        paused(store)
        for after in (0, 1, 2, 4):
            with pytest.raises(StaleLog, match="'r1'"):
                store.claim("r1", answer(), after=after, at=13, writer=2)
        assert len(store.load("r1").rows) == 3

    def test_a_run_that_is_driven_cannot_be_claimed(self, store, elsewhere) -> None:
        lease = started(store)
        with pytest.raises(RunIsLive, match="'r1'"):
            elsewhere.claim("r1", REENTRY, after=1, at=11, writer=2)
        assert len(elsewhere.load("r1").rows) == 1
        store.append(lease, CALLED, at=12)

    def test_a_refused_claim_does_not_look_like_a_driver(self, store, elsewhere) -> None:
        lease = started(store)
        with pytest.raises(RunIsLive):
            elsewhere.claim("r1", REENTRY, after=1, at=11, writer=2)
        store.release(lease)
        assert not elsewhere.load("r1").live
        assert statuses(elsewhere) == {"r1": "crashed"}

    def test_a_released_run_is_free(self, store, elsewhere) -> None:
        lease = started(store)
        assert elsewhere.load("r1").live
        store.release(lease)
        store.release(lease)
        assert not elsewhere.load("r1").live
        elsewhere.claim("r1", REENTRY, after=1, at=11, writer=2)
        assert store.load("r1").live

    def test_an_owner_that_was_taken_over_writes_nothing_more(self, store, elsewhere) -> None:
        stopped = started(store)
        store.begin(stopped, "k", "f", at=10)
        taken, _ = elsewhere.claim("r1", REENTRY, after=1, at=11, writer=2, take_over=True)
        for write in (
            lambda: store.append(stopped, CALLED, at=12),
            lambda: store.begin(stopped, "k2", "f", at=12),
            lambda: store.keep(stopped, "k", 1, at=12),
        ):
            with pytest.raises(StaleLog, match="'r1'"):
                write()
        assert len(store.load("r1").rows) == 2
        assert isinstance(store.effect(taken, "k"), Begun)
        assert isinstance(store.effect(taken, "k2"), Unknown)
        elsewhere.append(taken, CALLED, at=13)

    def test_an_owner_that_was_taken_over_no_longer_counts_as_living(
        self, store, elsewhere
    ) -> None:
        started(store)
        taken, _ = elsewhere.claim("r1", REENTRY, after=1, at=11, writer=2, take_over=True)
        elsewhere.release(taken)
        assert not store.load("r1").live
        assert statuses(store) == {"r1": "crashed"}

    def test_a_take_over_of_a_run_that_moved_on_is_stale(self, store, elsewhere) -> None:
        lease = started(store)
        store.append(lease, CALLED, at=11)
        with pytest.raises(StaleLog):
            elsewhere.claim("r1", REENTRY, after=1, at=12, writer=2, take_over=True)
        store.append(lease, PAUSED, at=13)

    def test_runs_are_held_apart(self, store, elsewhere) -> None:
        first, second = started(store, "a", 5), started(store, "b", 6)
        store.release(first)
        assert statuses(elsewhere) == {"a": "crashed", "b": "running"}
        store.release(second)
        assert statuses(elsewhere) == {"a": "crashed", "b": "crashed"}


class EffectContract:
    """What `@idempotent` functions did."""

    def test_an_effect_is_unknown_then_begun_then_kept(self, store, elsewhere) -> None:
        lease = started(store)
        assert store.effect(lease, "k") == Unknown()
        store.begin(lease, "k", "shop.charge", at=42)
        assert (type(begun := elsewhere.effect(lease, "k")), begun.at) == (Begun, 42)
        store.keep(lease, "k", {"ok": [1, 2.5, None]}, at=43)
        assert elsewhere.effect(lease, "k") == Kept({"ok": [1, 2.5, None]})

    def test_a_kept_none_is_a_result(self, store) -> None:
        lease = started(store)
        store.begin(lease, "k", "f", at=1)
        store.keep(lease, "k", None, at=2)
        assert store.effect(lease, "k") == Kept(None)

    def test_an_effect_is_begun_again_after_a_failure(self, store) -> None:
        lease = started(store)
        store.begin(lease, "k", "f", at=1)
        store.begin(lease, "k", "f", at=9)
        assert (type(begun := store.effect(lease, "k")), begun.at) == (Begun, 9)

    def test_effects_are_listed_by_when_they_began_last(self, store) -> None:
        lease = started(store)
        for key, at in (("k1", 1), ("k2", 2), ("k1", 3)):
            store.begin(lease, key, "f", at=at)
        assert [effect.key for effect in store.effects(lease.execution_id)] == ["k2", "k1"]

    def test_a_kept_result_is_never_lost(self, store) -> None:
        lease = started(store)
        store.begin(lease, "k", "f", at=1)
        store.keep(lease, "k", 7, at=2)
        store.begin(lease, "k", "f", at=3)
        assert store.effect(lease, "k") == Kept(7)

    def test_keys_and_runs_are_apart(self, store) -> None:
        one, two = started(store, "a", 1), started(store, "b", 2)
        for lease in (one, two):
            store.begin(lease, "k", "f", at=1)
        store.keep(one, "k", 1, at=2)
        assert isinstance(store.effect(two, "k"), Begun)
        assert store.effect(one, "K") == Unknown()

    def test_an_effect_outlives_its_driver(self, store, elsewhere) -> None:
        lease = started(store)
        store.begin(lease, "k", "f", at=1)
        store.keep(lease, "k", 7, at=2)
        store.release(lease)
        next_lease, _ = elsewhere.claim("r1", REENTRY, after=1, at=3, writer=2)
        assert elsewhere.effect(next_lease, "k") == Kept(7)


class ListingContract:
    """What people are shown."""

    def test_runs_are_newest_first_whatever_the_clock_says(self, store) -> None:
        for created, execution_id in ((30, "a"), (10, "b"), (20, "c")):
            run = Run(execution_id, "bot", "p", created, execution_id)
            store.create(run, OPENING, at=created, writer=created)
        assert [run.execution_id for run in store.runs()] == ["c", "b", "a"]

    def test_a_run_shows_where_it_stands(self, store) -> None:
        run = a_run("done", tags=("x", "y"), workdir="/data")
        store.append(store.create(run, OPENING, at=1_000_000, writer=1), DONE, at=2_500_000)
        (status,) = store.runs()
        assert (status.execution_id, status.agent, status.status) == ("done", "bot", "completed")
        assert (status.session, status.prompt, status.steps) == ("done", "Refund order 1042", 2)
        assert (status.tags, status.workdir) == (("x", "y"), "/data")
        assert status.created_at == datetime(1970, 1, 1, 0, 0, 0, 5, tzinfo=UTC)
        assert status.updated_at == datetime(1970, 1, 1, 0, 0, 2, 500_000, tzinfo=UTC)

    def test_each_status_is_told_from_the_others(self, store) -> None:
        paused(store, "paused", 1)
        started(store, "running", 2)
        store.release(started(store, "crashed", 3))
        for writer, ending in enumerate(("completed", "failed", "cancelled"), start=4):
            lease = started(store, ending, writer)
            store.append(lease, End(1, ending), at=11)  # type: ignore[arg-type]
            store.release(lease)
        assert all(status == name for name, status in statuses(store).items())
        assert len(statuses(store)) == 6

    def test_rows_list_as_users_know_them(self, store) -> None:
        lease = started(store)
        store.append(lease, CALLED, at=11)
        store.append(lease, Turn(1, (Message("tool", "ok", tool_call_id="c1"),)), at=12)
        store.append(lease, End(2, "completed", "ok", messages=DONE.messages), at=13)
        assert listing(store.list("r1")) == (
            "#0 turn:0              llm_call   completed\n"
            "#0 turn:0/tool:refund  tool_call  completed\n"
            "#1 turn:1              llm_call   completed\n"
            "#2 run_end             run_end    completed"
        )
        assert str(store.get_last("r1")) == "#2 run_end  run_end  completed"
        assert store.list("r1")[1].state_snapshot["usage"] == Usage(7, 3)

    def test_a_pause_is_pending_until_it_is_answered(self, store, elsewhere) -> None:
        paused(store)
        (pending,) = elsewhere.list_pending_interrupts()
        assert (pending.execution_id, pending.number, pending.reason) == ("r1", 3, PAUSED.reason)
        assert pending.context == CONTEXT
        assert (pending.agent, pending.tool, pending.arguments) == (
            "bot",
            "refund",
            CALLED.arguments,
        )
        assert pending.node_id == "turn:0/tool:refund"
        assert pending.agent_path == "agent:bot/tool:refund"
        store.claim("r1", answer(), after=3, at=13, writer=2)
        assert list(elsewhere.list_pending_interrupts()) == []

    def test_a_second_pause_of_a_step_is_pending_after_the_first(self, store) -> None:
        paused(store)
        lease, _ = store.claim("r1", answer(), after=3, at=13, writer=2)
        second = Pause(0, "refund", "vp_approval", None, digest(None), position=1)
        store.append(lease, second, at=14)
        assert [(p.number, p.reason) for p in store.list_pending_interrupts()] == [
            (5, "vp_approval")
        ]

    def test_pauses_are_listed_oldest_first_and_only_open_ones(self, store) -> None:
        for writer, execution_id in enumerate("abc", start=1):
            paused(store, execution_id, writer)
        store.claim("b", answer(), after=3, at=13, writer=9)
        assert [p.execution_id for p in store.list_pending_interrupts()] == ["a", "c"]
        lease, _ = store.claim("a", answer(), after=3, at=13, writer=10)
        store.append(lease, End(1, "cancelled"), at=14)
        assert [p.execution_id for p in store.list_pending_interrupts()] == ["c"]


class ThreadContract:
    """Any method from any thread."""

    def test_many_threads_write_runs_of_their_own(self, store) -> None:
        def one(index: int) -> None:
            lease = started(store, f"r{index}", index + 1)
            for at in range(10):
                store.append(lease, Turn(at + 1), at=at)
            store.release(lease)

        assert at_once(8, one) == [None] * 8
        assert {run.steps for run in store.runs()} == {11}

    def test_a_lease_may_pass_from_thread_to_thread(self, store) -> None:
        lease = started(store)
        for number in range(2, 6):
            with ThreadPoolExecutor(1) as pool:
                assert pool.submit(store.append, lease, Turn(1), at=1).result().number == number

    def test_readers_and_a_writer_do_not_disturb_one_another(self, store, elsewhere) -> None:
        lease = started(store)

        def work(index: int) -> object:
            if index == 0:
                return [store.append(lease, Turn(at + 1), at=at).number for at in range(40)]
            seen = [len(elsewhere.load("r1").rows) for _ in range(15)]
            assert {run.status for run in elsewhere.runs()} == {"running"}
            return seen == sorted(seen)

        assert at_once(4, work) == [list(range(2, 42)), True, True, True]


class ClosingContract:
    """The end of a store object."""

    def test_a_closed_store_says_so_and_closes_again(self, store) -> None:
        lease = paused(store)
        store.close()
        store.close()
        for ask in (
            store.runs,
            store.list_pending_interrupts,
            lambda: store.load("r1"),
            lambda: store.list("r1"),
            lambda: store.get_last("r1"),
            lambda: started(store, "r2", 2),
            lambda: store.claim("r1", answer(), after=3, at=1, writer=3),
            lambda: store.append(lease, Turn(1), at=1),
            lambda: store.effect(lease, "k"),
            lambda: store.begin(lease, "k", "f", at=1),
            lambda: store.keep(lease, "k", 1, at=1),
        ):
            with pytest.raises(StoreUnusable, match="closed"):
                ask()
        store.release(lease)


class CheckpointerContract(
    LogContract, ClaimContract, EffectContract, ListingContract, ThreadContract, ClosingContract
):
    """All of it."""
