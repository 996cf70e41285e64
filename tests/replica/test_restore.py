"""A run goes on on a machine that never saw it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from durable_nb import (
    Checkpointer,
    ExecutionExists,
    PlaneFailed,
    Resume,
    SQLiteCheckpointer,
    UnknownExecution,
    call,
    idempotent,
    interrupt,
    replica,
)
from tests.contract.suite import CALLED, PAUSED, paused, started, statuses
from tests.replica.conftest import ENOUGH, ON_BOTH, Connect, Planes, Site
from tests.replica.faulty import KEY
from tests.support.agents import bot, nodes
from tests.support.ledger import Ledger

pytestmark = ON_BOTH

YES = Resume(approved=True, metadata={"approver": "ann"})
SCRIPT = [call("refund", order="1042"), "done", "and done again"]


@pytest.fixture
def refund(effects: Ledger) -> Callable[[str], str]:
    @idempotent
    def charge(order: str) -> str:
        effects.add(order)
        return "charged"

    def refund(order: str) -> str:
        charged = charge(order)
        interrupt("check", {"order": order})
        return charged

    return refund


def drained(connect: Connect, site: Site, store: Checkpointer) -> Site:
    courier = connect(site, store)
    assert courier.flush(ENOUGH)
    courier.close()
    return site


def test_a_paused_run_is_approved_on_another_machine_and_its_effect_is_not_repeated(
    store: Checkpointer,
    laptop: SQLiteCheckpointer,
    plane: Planes,
    connect: Connect,
    refund: Callable[[str], str],
    effects: Ledger,
) -> None:
    bot(store, SCRIPT, refund).run("go", execution_id="r1")
    site = drained(connect, plane(), store)
    assert replica.restore_from_plane("r1", site.url, store=laptop) == ["r1"]
    assert laptop.outbox.count() == 0
    assert bot(laptop, SCRIPT, refund).resume("r1", resume_value=YES).output == "done"
    assert effects.lines == ["1042"]
    drained(connect, site, laptop)
    replica.restore_from_plane("r1", site.url, store=store)
    assert nodes(store, "r1") == nodes(laptop, "r1")
    assert statuses(store) == {"r1": "completed"}


def test_a_run_that_died_goes_on_elsewhere(
    store: Checkpointer,
    laptop: SQLiteCheckpointer,
    plane: Planes,
    connect: Connect,
    refund: Callable[[str], str],
) -> None:
    agent = bot(store, [call("refund", order="1042"), RuntimeError("no power")], refund)
    agent.run("go", execution_id="r1")
    with pytest.raises(RuntimeError):
        agent.resume("r1", resume_value=YES)
    site = drained(connect, plane(), store)
    replica.restore_from_plane("r1", site.url, store=laptop)
    assert statuses(laptop) == {"r1": "failed"}
    assert bot(laptop, SCRIPT, refund).resume("r1").output == "done"


def test_restoring_again_is_harmless_and_brings_what_is_new(
    store: Checkpointer, laptop: SQLiteCheckpointer, plane: Planes, connect: Connect
) -> None:
    lease = started(store)
    site = drained(connect, plane(), store)
    for _ in range(2):
        replica.restore_from_plane("r1", site.url, store=laptop)
    store.append(lease, CALLED, at=11)
    drained(connect, site, store)
    before = laptop.load("r1").rows
    replica.restore_from_plane("r1", site.url, store=laptop)
    assert laptop.load("r1").rows == store.load("r1").rows
    assert laptop.load("r1").rows[: len(before)] == before


def test_what_a_run_goes_on_from_and_its_conversation_come_along(
    store: Checkpointer,
    laptop: SQLiteCheckpointer,
    plane: Planes,
    connect: Connect,
    refund: Callable[[str], str],
) -> None:
    agent = bot(store, SCRIPT, refund)
    agent.run("go", execution_id="r1")
    agent.resume("r1", resume_value=YES)
    assert agent.resume("r1", prompt="again").execution_id == "r1-2"
    agent.fork("r1", at="turn:0", execution_id="f1")
    bot(store, ["hello"]).run("another", execution_id="other")
    site = drained(connect, plane(), store)
    assert replica.restore_from_plane("f1", site.url, store=laptop) == ["r1", "f1"]
    assert replica.restore_from_plane("r1", site.url, store=laptop) == ["r1", "r1-2"]
    for id_ in ("r1", "r1-2", "f1"):
        assert laptop.load(id_) == store.load(id_)
    assert laptop.session("r1") == ["r1", "r1-2"]
    assert {run.execution_id for run in laptop.runs()} == {"r1", "r1-2", "f1"}


def test_a_run_that_is_here_with_other_rows_is_left_as_it_is(
    store: Checkpointer, laptop: SQLiteCheckpointer, plane: Planes, connect: Connect
) -> None:
    paused(store)
    paused(laptop, writer=7)
    site = drained(connect, plane(), store)
    before = laptop.load("r1")
    with pytest.raises(ExecutionExists, match="entry 1 is another one"):
        replica.restore_from_plane("r1", site.url, store=laptop)
    assert laptop.load("r1") == before


def test_of_two_machines_that_went_on_with_one_run_the_second_is_told(
    store: Checkpointer,
    laptop: SQLiteCheckpointer,
    plane: Planes,
    connect: Connect,
    refund: Callable[[str], str],
) -> None:
    bot(store, SCRIPT, refund).run("go", execution_id="r1")
    site = drained(connect, plane(), store)
    replica.restore_from_plane("r1", site.url, store=laptop)
    for machine in (laptop, store):
        bot(machine, SCRIPT, refund).resume("r1", resume_value=YES)
        drained(connect, site, machine)
    assert laptop.outbox.quarantined() == []
    refused = store.outbox.quarantined()
    assert [row.number for row in refused] == [4, 5, 6]
    assert all("409 Conflict" in row.reason for row in refused)


def test_a_run_of_which_a_row_was_refused_cannot_be_restored_and_that_is_said(
    store: Checkpointer, laptop: SQLiteCheckpointer, plane: Planes, connect: Connect
) -> None:
    paused(store)
    site = drained(connect, plane("picky"), store)
    with pytest.raises(PlaneFailed, match="lacks entry 2 of run 'r1'"):
        replica.restore_from_plane("r1", site.url, store=laptop)
    assert laptop.runs() == []


def test_a_fork_whose_parent_never_reached_the_plane_cannot_be_restored(
    store: Checkpointer, laptop: SQLiteCheckpointer, plane: Planes, connect: Connect
) -> None:
    bot(store, ["hello"]).run("go", execution_id="parent")
    store.outbox.acknowledge(store.outbox.waiting(limit=100))
    bot(store, ["hello"]).fork("parent", execution_id="child")
    site = drained(connect, plane(), store)
    with pytest.raises(UnknownExecution, match="no run 'parent'"):
        replica.restore_from_plane("child", site.url, store=laptop)
    assert laptop.runs() == []


def test_a_parent_of_which_the_plane_lacks_the_end_is_named(
    store: Checkpointer, laptop: SQLiteCheckpointer, plane: Planes, connect: Connect
) -> None:
    bot(store, ["hello"]).run("go", execution_id="parent")
    store.outbox.acknowledge(store.outbox.waiting(limit=100)[1:])
    bot(store, ["hello", "again"]).resume("parent", prompt="go on")
    site = drained(connect, plane(), store)
    with pytest.raises(PlaneFailed, match="lacks entry 2 of run 'parent'"):
        replica.restore_from_plane("parent-2", site.url, store=laptop)
    assert laptop.runs() == []


def test_what_the_plane_does_not_have_or_does_not_give_is_an_error(
    store: Checkpointer, laptop: SQLiteCheckpointer, plane: Planes, connect: Connect
) -> None:
    site = plane(prefix="locked")
    paused(store)
    paused(store, r"\ud800", writer=2)  # not the one that is asked for
    courier = connect(site, store, key=KEY)
    assert courier.flush(ENOUGH)
    for id_ in ("nobody", "", "../r1", "a/b?c=%00", "名前", "\ud800", "x" * 9000):
        with pytest.raises(UnknownExecution, match="has no run"):
            replica.restore_from_plane(id_, site.url, store=laptop, key=KEY)
    with pytest.raises(PlaneFailed, match="401"):
        replica.restore_from_plane("r1", site.url, store=laptop, key="an-old-key")
    with pytest.raises(PlaneFailed, match="no answer"):
        replica.restore_from_plane("r1", "http://127.0.0.1:9", store=laptop)
    with pytest.raises(PlaneFailed, match="gave no run: this is no parcel of rows"):
        replica.restore_from_plane("r1", plane("portal").url, store=laptop)
    with pytest.raises(PlaneFailed, match="404"):
        replica.restore_from_plane("r1", f"{site.url}/else", store=laptop, key=KEY)
    assert laptop.runs() == []
    assert replica.restore_from_plane("r1", site.url, store=laptop, key=KEY) == ["r1"]


def test_a_plane_runs_in_this_process_too(
    store: Checkpointer, laptop: SQLiteCheckpointer, tmp_path: Path
) -> None:
    paused(store)
    with replica.plane.running(tmp_path / "plane.sqlite3") as url:
        with replica.connect(url, store) as courier:
            assert courier.flush(ENOUGH)
        assert replica.restore_from_plane("r1", url, store=laptop) == ["r1"]
    assert laptop.load("r1").rows[-1].entry == PAUSED
