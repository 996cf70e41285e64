"""What a store promises that can be copied to a plane (`durable_nb.stores.replicated`)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from durable_nb import (
    Checkpointer,
    ExecutionExists,
    MemoryCheckpointer,
    Message,
    PostgresCheckpointer,
    ReplicatedCheckpointer,
    Resume,
    RunIsLive,
    SQLiteCheckpointer,
    UnknownExecution,
    call,
    idempotent,
    interrupt,
)
from durable_nb.model.codec import Stored
from durable_nb.model.entries import End
from durable_nb.stores.replicated import Quarantined, Remembered, Replica
from tests.contract.suite import (
    CALLED,
    OPENING,
    PAUSED,
    REENTRY,
    a_run,
    answer,
    paused,
    started,
    statuses,
)
from tests.support.agents import bot
from tests.support.stores import STORES

KINDS = [kind for kind in STORES if kind != "memory"]
pytestmark = pytest.mark.parametrize("opened", KINDS, indirect=True)

BEFORE = {  # there was an outbox
    SQLiteCheckpointer: "pragma user_version = 1",
    PostgresCheckpointer: "delete from migrations where version = 3",
}
PAID = Message("tool", "paid", tool_call_id="c1")
DONE = End(1, "completed", "done", messages=(PAID, Message("assistant", "done")))

Opened = Callable[[], Checkpointer]


@pytest.fixture
def other(tmp_path) -> SQLiteCheckpointer:
    """A store of another machine."""
    store = SQLiteCheckpointer(tmp_path / "other.sqlite3")
    yield store
    store.close()


def execute(store: Checkpointer, *statements: str) -> None:
    """Do harm to a store."""
    store.outbox._write(lambda write: [write(statement) for statement in statements])


def numbers(rows: list[Replica]) -> list[tuple[str, int]]:
    return [(run.execution_id, row.number) for run, row, _ in rows if isinstance(row, Stored)]


def waiting(store: Checkpointer, limit: int = 100) -> list[Replica]:
    return list(store.outbox.waiting(limit=limit))


def all_of(store: Checkpointer) -> list[Replica]:
    """Everything that waits, acknowledged part by part."""
    found = []
    while rows := waiting(store):
        found += rows
        store.outbox.acknowledge(rows)
    return found


def charging(store: Checkpointer) -> str:
    """A run that is completed, with one effect: its id."""
    lease = started(store, "charged")
    store.append(lease, CALLED, at=11)
    store.begin(lease, "k", "shop.charge", at=12)
    store.keep(lease, "k", {"paid": 20}, at=13)
    store.append(lease, DONE, at=14)
    store.release(lease)
    return "charged"


def test_it_is_apart_from_what_an_agent_needs(store: Checkpointer) -> None:
    assert isinstance(store, ReplicatedCheckpointer)
    assert not isinstance(MemoryCheckpointer(), ReplicatedCheckpointer)


def test_the_rows_of_a_paused_run_wait_until_they_are_acknowledged(
    store: Checkpointer, elsewhere: Checkpointer
) -> None:
    paused(store)
    assert (store.outbox.count(), store.outbox.count("r1")) == (3, 3)
    store.outbox.acknowledge(waiting(elsewhere))
    assert (elsewhere.outbox.count(), store.outbox.count("r1"), waiting(store)) == (0, 0, [])
    store.release(store.claim("r1", answer(), after=3, at=13, writer=2)[0])
    assert numbers(waiting(elsewhere)) == [("r1", 4)]


def test_they_wait_in_the_order_in_which_they_were_written(store: Checkpointer) -> None:
    one, two = started(store, "a", 1), started(store, "b", 2)
    store.append(two, CALLED, at=1)
    store.append(one, CALLED, at=0)
    written = [("a", 1), ("b", 1), ("b", 2), ("a", 2)]
    assert numbers(waiting(store)) == written
    assert numbers(waiting(store, limit=2)) == written[:2]
    store.outbox.acknowledge(waiting(store, limit=3))
    assert numbers(waiting(store)) == written[3:]


def test_a_row_that_was_left_out_is_found_after_all_others_were_marked(
    store: Checkpointer, elsewhere: Checkpointer
) -> None:
    paused(store)
    rows = waiting(store)
    store.outbox.acknowledge([rows[0], rows[2]])
    assert numbers(waiting(store)) == [("r1", 2)]
    elsewhere.outbox.acknowledge([rows[1]])
    assert waiting(store) == []


def test_a_row_that_was_refused_waits_no_more_and_its_reason_is_kept(
    store: Checkpointer, elsewhere: Checkpointer
) -> None:
    charging(store)
    first, *_ = waiting(store)
    store.outbox.quarantine(first, "422: too odd")
    store.outbox.acknowledge(waiting(store))
    (effect,) = waiting(store)
    store.outbox.quarantine(effect, "413: too large")
    assert waiting(elsewhere) == []
    assert elsewhere.outbox.quarantined() == [
        Quarantined("charged", 1, None, "422: too odd"),
        Quarantined("charged", 2, "k", "413: too large"),
    ]


def test_of_two_couriers_the_one_that_was_acknowledged_is_right(store: Checkpointer) -> None:
    started(store)
    rows = waiting(store)
    for _ in range(2):
        store.outbox.quarantine(rows[0], "400: no")
        store.outbox.acknowledge(rows)
    store.outbox.quarantine(rows[0], "400: no")
    assert store.outbox.quarantined() == []


def test_what_an_effect_left_waits_after_the_entry_that_it_began_at(store: Checkpointer) -> None:
    lease = started(store)
    store.outbox.acknowledge(waiting(store))
    store.append(lease, CALLED, at=11)
    store.begin(lease, "k", "shop.charge", at=12)
    assert numbers(waiting(store)) == [("r1", 2)]
    store.outbox.acknowledge(waiting(store))
    begun = waiting(store)
    assert [each.row for each in begun] == [Remembered("k", "shop.charge", 2, 1, 12, None, None)]
    store.keep(lease, "k", None, at=13)
    store.outbox.acknowledge(begun)
    kept = Remembered("k", "shop.charge", 2, 1, 12, 13, "null")
    assert [each.row for each in waiting(store)] == [kept]
    assert store.outbox.count("r1") == 1
    store.outbox.acknowledge(waiting(store))
    assert (waiting(store), store.outbox.count()) == ([], 0)


def test_effects_leave_also_while_new_entries_keep_coming(store: Checkpointer) -> None:
    """A run that pauses and is restored elsewhere would repeat those that never left."""
    charging(store)
    store.outbox.acknowledge(waiting(store))
    started(store, "next")
    *entries, effect = waiting(store)
    assert numbers(entries) == [("next", 1)]
    assert (effect.run.execution_id, effect.row.key) == ("charged", "k")
    assert len(waiting(store, limit=1)) == 1


def test_marks_go_with_the_rows_that_are_forgotten(store: Checkpointer) -> None:
    charging(store)
    old = all_of(store)
    store.prune(0)
    assert len(all_of(store)) == 0
    started(store, "charged", writer=99)
    store.outbox.acknowledge(old)
    assert numbers(waiting(store)) == [("charged", 1)]
    all_of(store)
    store.release(store.create(a_run("new"), OPENING, at=1, writer=98))
    assert numbers(waiting(store)) == [("new", 1)]


def test_a_run_that_was_copied_is_the_same_run(
    store: Checkpointer, other: SQLiteCheckpointer
) -> None:
    run = a_run("c", workdir="/data", tags=("a", "b"), definition='{"x": 1}', fingerprint="f")
    lease = store.create(run, OPENING, at=10, writer=77)
    store.append(lease, CALLED, at=11)
    store.begin(lease, "k", "shop.charge", at=12)
    store.keep(lease, "k", {"paid": 20}, at=13)
    store.append(lease, PAUSED, at=14)
    store.release(lease)
    later = replace(answer(), fingerprint="g", changed=("tool refund",))
    store.release(store.claim("c", later, after=3, at=15, writer=78, definition='{"x": 2}')[0])
    for source, target in ((store, other), (other, store)):
        rows = source.outbox.copy("c")
        if target is store:
            store.delete_execution("c")
        for _ in range(2):
            target.outbox.take_in(rows)
        assert target.load("c") == source.load("c")
        assert target.load("c").definition == '{"x": 2}'
        assert target.effects("c") == source.effects("c")
        assert target.outbox.count() == 0


def test_a_copy_is_gone_on_with_and_comes_back(
    store: Checkpointer, other: SQLiteCheckpointer
) -> None:
    paused(store)
    other.outbox.take_in(store.outbox.copy("r1"))
    lease, _ = other.claim("r1", answer(), after=3, at=20, writer=5)
    other.append(lease, DONE, at=21)
    other.release(lease)
    store.outbox.take_in(other.outbox.copy("r1"))
    assert statuses(store) == {"r1": "completed"}
    assert store.load("r1").rows == other.load("r1").rows
    other.outbox.take_in(store.outbox.copy("r1")[:2])
    assert statuses(other) == {"r1": "completed"}


def test_a_run_that_went_on_in_two_places_is_refused_whole(
    store: Checkpointer, other: SQLiteCheckpointer
) -> None:
    paused(store)
    charging(other)
    other.outbox.take_in(store.outbox.copy("r1"))
    for each, writer in ((store, 5), (other, 6)):
        each.release(each.claim("r1", answer(), after=3, at=20, writer=writer)[0])
    before = store.load("r1")
    with pytest.raises(ExecutionExists, match="entry 4 is another one"):
        store.outbox.take_in([*other.outbox.copy("charged"), *other.outbox.copy("r1")])
    assert store.load("r1") == before
    with pytest.raises(UnknownExecution):
        store.load("charged")


def test_another_run_of_the_same_id_is_refused(
    store: Checkpointer, other: SQLiteCheckpointer
) -> None:
    paused(store)
    other.create(replace(a_run(), agent="another"), OPENING, at=10, writer=1)
    with pytest.raises(ExecutionExists, match="begun otherwise"):
        store.outbox.take_in(other.outbox.copy("r1"))


def test_a_run_that_is_driven_here_is_not_gone_on_with(
    store: Checkpointer, other: SQLiteCheckpointer
) -> None:
    lease = started(store)
    other.outbox.take_in(store.outbox.copy("r1"))
    other.release(other.claim("r1", REENTRY, after=1, at=11, writer=6)[0])
    with pytest.raises(RunIsLive, match="went on elsewhere"):
        store.outbox.take_in(other.outbox.copy("r1"))
    assert store.append(lease, CALLED, at=12).number == 2


def test_rows_come_in_any_order_and_an_effect_never_goes_back(
    store: Checkpointer, other: SQLiteCheckpointer
) -> None:
    lease = started(store)
    states = []
    for at in (11, 12):
        store.begin(lease, "k", "shop.charge", at=at)
        states += store.outbox.copy("r1")[1:]
    store.keep(lease, "k", 7, at=13)
    opening, kept = store.outbox.copy("r1")
    other.outbox.take_in([states[1], opening])
    assert other.effects("r1")[0].attempts == 2
    other.outbox.take_in([states[0]])
    assert (other.effects("r1")[0].attempts, other.outbox.count()) == (2, 0)
    other.outbox.take_in([kept])
    other.outbox.take_in(states)
    assert other.effects("r1") == store.effects("r1")


def test_of_many_who_bring_the_same_rows_all_are_content(
    store: Checkpointer, other: SQLiteCheckpointer
) -> None:
    charging(other)
    rows, errors = other.outbox.copy("charged"), []

    def bring() -> None:
        try:
            store.outbox.take_in(rows)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=bring) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert store.load("charged").rows == other.load("charged").rows


def test_a_copied_run_is_resumed_and_repeats_no_effect(
    store: Checkpointer, other: SQLiteCheckpointer, effects
) -> None:
    @idempotent
    def charge(order: str) -> str:
        effects.add(order)
        return "paid"

    def refund(order: str) -> str:
        paid = charge(order)
        interrupt("check", {"order": order})
        return paid

    script = [call("refund", order="1042"), "done"]
    assert bot(store, script, refund).run("go", execution_id="r1").status == "paused"
    other.outbox.take_in(store.outbox.copy("r1"))
    yes = Resume(approved=True)
    assert bot(other, script, refund).resume("r1", resume_value=yes).status == "completed"
    assert effects.lines == ["1042"]


def test_a_damaged_row_waits_like_any_other(store: Checkpointer) -> None:
    paused(store)
    store.release(store.claim("r1", REENTRY, after=3, at=13, writer=2)[0])
    execute(store, "update entries set body = 'x' where number = 4")
    rows = waiting(store)
    assert numbers(rows) == [("r1", 1), ("r1", 2), ("r1", 3), ("r1", 4)]
    store.outbox.quarantine(rows[3], "422: damaged")
    assert [each.number for each in store.outbox.quarantined()] == [4]
    execute(store, "delete from outbox", "delete from entries")


def test_a_store_of_an_older_version_gets_an_outbox_in_which_all_waits(
    store: Checkpointer, opened: Opened
) -> None:
    charging(store)
    paused(store)
    execute(store, "drop table outbox", "drop table outbox_effects", BEFORE[type(store)])
    later = opened()
    assert later.outbox.count() == 7
    assert len(all_of(later)) == 7
    assert later.load("charged") == store.load("charged")
