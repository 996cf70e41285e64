"""The outbox drains: in order, at least once, and whatever the network does."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from durable_nb import (
    AlreadyResumed,
    Checkpointer,
    InvalidInput,
    MemoryCheckpointer,
    PlaneFailed,
    Resume,
    call,
    interrupt,
    replica,
)
from durable_nb.llm.retry import Failure
from durable_nb.replica import courier as couriers
from tests.contract.suite import CALLED, OPENING, a_run, at_once, paused, started
from tests.replica.conftest import ENOUGH, ON_BOTH, Connect, Planes, Site
from tests.replica.faulty import KEY
from tests.support.agents import bot
from tests.support.children import Process
from tests.support.stores import STORES

pytestmark = ON_BOTH


def refund(order: str) -> str:
    return f"refunded {order}" if interrupt("check", {"order": order}).approved else "no"


SCRIPT = [call("refund", order="1042"), "done"]
ROWS = ["r1/1", "r1/2", "r1/3"]


def until(reached: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    give_up = time.monotonic() + ENOUGH
    while not reached():
        assert time.monotonic() < give_up, "it does not come to that"
        time.sleep(0.01)


def test_rows_wait_while_nobody_is_connected_and_none_after_a_plane_has_them(
    store: Checkpointer, plane: Planes, connect: Connect
) -> None:
    site = plane()
    assert bot(store, SCRIPT, refund).run("go", execution_id="r1").status == "paused"
    assert (store.outbox.count("r1"), site.log) == (3, [])
    courier = connect(site, store)
    assert courier.flush(ENOUGH)
    assert (courier.waiting, store.outbox.count("r1"), site.rows()) == (0, 0, {"r1": 3})
    assert site.log == ["POST ok " + " ".join(ROWS)]
    courier.close()
    result = bot(store, SCRIPT, refund).resume("r1", resume_value=Resume(approved=True))
    assert result.status == "completed"
    assert (store.outbox.count("r1"), len(site.log)) == (3, 1)


def test_every_row_of_a_run_that_five_raced_for_waits_and_none_is_sent_without_a_connection(
    store: Checkpointer, plane: Planes
) -> None:
    site = plane()
    bot(store, SCRIPT, refund).run("go", execution_id="r1")
    agents = [bot(store, SCRIPT, refund) for _ in range(5)]
    yes = Resume(approved=True)
    got = at_once(5, lambda racer: agents[racer].resume("r1", resume_value=yes).status)
    assert sorted(map(str, got)).count("completed") == 1
    assert sum(isinstance(each, AlreadyResumed) for each in got) == 4
    assert store.outbox.count("r1") == len(store.list("r1")) == 6
    assert site.log == []
    store.outbox.acknowledge(store.outbox.waiting(limit=100))
    assert store.outbox.count("r1") == 0


def test_a_row_leaves_soon_after_it_is_written(
    store: Checkpointer, plane: Planes, connect: Connect
) -> None:
    site = plane()
    connect(site, store)
    lease = started(store)
    until(lambda: store.outbox.count() == 0)
    store.append(lease, CALLED, at=11)
    until(lambda: store.outbox.count() == 0)
    assert site.log == ["POST ok r1/1", "POST ok r1/2"]


@pytest.mark.parametrize(
    "fault", ["500", "503", "429", "later", "cut", "lost", "portal", "404", "302"]
)
def test_what_goes_by_is_tried_again_and_the_rows_arrive_once(
    fault: str, store: Checkpointer, plane: Planes, connect: Connect
) -> None:
    site = plane(f"{fault}-{fault}-ok")
    paused(store)
    courier = connect(site, store)
    assert courier.flush(ENOUGH)
    assert (courier.status().state, courier.status().quarantined, site.rows()) == (
        "connected",
        0,
        {"r1": 3},
    )
    assert [line.split()[2:] for line in site.log] == [ROWS] * 3


def test_a_plane_that_is_not_there_loses_nothing(
    store: Checkpointer, plane: Planes, connect: Connect
) -> None:
    gone = Site("http://127.0.0.1:9", "gone", Path())
    paused(store)
    courier = connect(gone, store)
    assert not courier.flush(0.3)
    until(lambda: courier.status().state == "retrying")
    assert "ConnectError" in (courier.status().trouble or "")
    courier.close()
    assert (store.outbox.count(), courier.status().state) == (3, "closed")
    site = plane()
    assert connect(site, store).flush(ENOUGH)
    assert site.rows() == {"r1": 3}


def test_each_failure_in_a_row_makes_the_pause_longer_and_chance_has_a_part(
    store: Checkpointer, plane: Planes
) -> None:
    seen: list[tuple[int, str]] = []

    def pause(attempt: int, failure: Failure, chance: float) -> float:
        assert 0 <= chance <= 1
        seen.append((attempt, failure.why[:3]))
        return 0.0

    site = plane("500-503-429-ok-500-ok")
    paused(store)
    address = couriers.Address(site.url, None, 20)
    with couriers.Courier(store.outbox, address, pause=pause) as courier:
        until(lambda: courier.waiting == 0)
        store.release(store.create(a_run("r2"), OPENING, at=1, writer=9))
        until(lambda: courier.waiting == 0)
    assert seen == [(1, "500"), (2, "503"), (3, "429"), (1, "500")]


def test_a_plane_that_never_answers_keeps_no_run_waiting(
    store: Checkpointer, plane: Planes, connect: Connect
) -> None:
    site = plane("never")
    paused(store, "before")
    courier = connect(site, store)
    until(lambda: len(site.log) == 1)
    bot(store, SCRIPT, refund).run("go", execution_id="r1")
    yes = Resume(approved=True)
    assert bot(store, SCRIPT, refund).resume("r1", resume_value=yes).status == "completed"
    assert (courier.waiting, len(site.log)) == (9, 1)
    assert courier.status().state == "connected"


def test_a_row_that_is_refused_is_quarantined_and_later_rows_go_on(
    store: Checkpointer, plane: Planes, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    site = plane("picky")
    for id_ in ("r1", "r2"):
        paused(store, id_, writer=len(id_) + ord(id_[-1]))
    courier = connect(site, store)
    with caplog.at_level(logging.WARNING):
        assert courier.flush(ENOUGH)
    assert (courier.waiting, courier.status().quarantined) == (0, 2)
    assert [row[:2] for row in store.outbox.quarantined()] == [("r1", 2), ("r2", 2)]
    assert all("no, says 422" in row.reason for row in store.outbox.quarantined())
    assert "refused row 2 of run r1" in caplog.text
    assert site.rows()["r2"] == 3  # the newest one is there: steps are counted by number
    store.release(store.create(a_run("r3"), OPENING, at=1, writer=3))
    assert courier.flush(ENOUGH)
    assert "r3" in site.rows()


@pytest.mark.parametrize("status", [400, 409, 413, 422])
def test_each_word_for_a_bad_row_quarantines_it(
    status: int, store: Checkpointer, plane: Planes, connect: Connect
) -> None:
    started(store)
    courier = connect(plane(str(status)), store)
    assert courier.flush(ENOUGH)
    assert [row.number for row in store.outbox.quarantined()] == [1]


def test_a_damaged_row_is_refused_by_the_plane_itself(
    store: Checkpointer, plane: Planes, connect: Connect
) -> None:
    site = plane()
    store.release(store.create(a_run("bad"), OPENING, at=1, writer=5))
    paused(store, "good")
    store.outbox._write(lambda write: write("update entries set body = 'x' where writer = 5"))
    assert connect(site, store).flush(ENOUGH)
    ((run, number, _, reason),) = store.outbox.quarantined()
    assert (run, number) == ("bad", 1)
    assert "checksum differs" in reason
    assert site.rows() == {"good": 3}
    store.outbox._write(lambda write: write("delete from entries where writer = 5"))


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_not_known_stops_the_courier_and_costs_no_row(
    status: int,
    store: Checkpointer,
    plane: Planes,
    connect: Connect,
    caplog: pytest.LogCaptureFixture,
) -> None:
    site = plane(str(status))
    paused(store)
    courier = connect(site, store, key="not-the-right-key")
    with pytest.raises(PlaneFailed, match=f"{status}.*DURABLE_NB_PLANE_KEY"):
        courier.flush(ENOUGH)
    assert courier.status().state == "stopped"
    assert (courier.waiting, courier.status().quarantined, len(site.log)) == (3, 0, 1)
    assert "nothing more is sent" in caplog.text
    told = f"{courier!r} {courier.status()} {courier._plane!r} {caplog.text}"
    assert "not-the-right-key" not in told  # although the plane said it
    assert "to Bearer [key]" in told


def test_a_key_comes_from_the_environment_or_an_argument(
    store: Checkpointer, plane: Planes, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = plane(prefix="locked")
    paused(store)
    with pytest.raises(PlaneFailed, match="401"):
        connect(site, store).flush(ENOUGH)
    assert connect(site, store, key=f"{KEY}\n").flush(ENOUGH)
    with pytest.raises(InvalidInput, match="printable ASCII") as refused:
        connect(site, store, key="clé-secrète")
    assert "secr" not in str(refused.value)
    monkeypatch.setenv("DURABLE_NB_PLANE_KEY", KEY)
    store.release(store.create(a_run("r2"), OPENING, at=1, writer=9))
    assert connect(site, store).flush(ENOUGH)
    assert site.rows() == {"r1": 3, "r2": 1}


def test_neither_age_nor_number_keeps_a_row_from_leaving(
    store: Checkpointer, plane: Planes, connect: Connect
) -> None:
    site = plane()
    rows = [CALLED] * 2 * couriers.BATCH
    store.release(store.create(a_run("old"), OPENING, *rows, at=0, writer=1))
    assert connect(site, store).flush(ENOUGH)
    assert site.rows() == {"old": len(rows) + 1}
    assert len(site.log) == 3
    store.delete_execution("old")  # it is no run that a model could go on with


def killed_before_the_mark(folder: Path, kind: str, url: str) -> None:
    """A process that dies after the plane has answered and before it marks the rows."""
    store = STORES[kind](folder)
    store.outbox.acknowledge = lambda rows: os.kill(os.getpid(), signal.SIGKILL)
    replica.connect(url, store).flush(ENOUGH)


def test_a_courier_killed_between_post_and_mark_sends_again_and_the_plane_has_it_once(
    store: Checkpointer, plane: Planes, connect: Connect, request, tmp_path: Path
) -> None:
    site, kind = plane(), request.node.callspec.params["opened"]
    paused(store)
    child = Process(killed_before_the_mark, tmp_path, kind, site.url)
    assert child.ended() == "signal 9"
    assert (store.outbox.count(), site.rows()) == (3, {"r1": 3})
    assert connect(site, store).flush(ENOUGH)
    assert (store.outbox.count(), site.rows()) == (0, {"r1": 3})
    assert [line.split()[2:] for line in site.log] == [ROWS, ROWS]


def drain(folder: Path, kind: str, url: str) -> None:
    assert replica.connect(url, STORES[kind](folder)).flush(ENOUGH)


def test_two_processes_that_drain_one_store_lose_nothing(
    store: Checkpointer, plane: Planes, connect: Connect, request, tmp_path: Path
) -> None:
    site, kind = plane(), request.node.callspec.params["opened"]
    store.release(store.create(a_run("r0"), OPENING, *[CALLED] * 300, at=1, writer=1))
    children = [Process(drain, tmp_path, kind, site.url) for _ in range(2)]
    for n in range(1, 20):
        store.release(store.create(a_run(f"r{n}"), OPENING, at=1, writer=100 + n))
    assert [child.ended() for child in children] == ["ended 0"] * 2
    assert connect(site, store).flush(ENOUGH)
    assert (store.outbox.count(), store.outbox.quarantined()) == (0, [])
    assert site.rows() == {"r0": 301} | {f"r{n}": 1 for n in range(1, 20)}
    store.delete_execution("r0")


def test_what_cannot_be_connected_is_refused(
    store: Checkpointer, plane: Planes, connect: Connect
) -> None:
    with pytest.raises(InvalidInput, match="has no outbox"):
        replica.connect(plane().url, MemoryCheckpointer())
    for url in ("ftp://host", "127.0.0.1:8800", "", "http://", "http://h/?key=1", None):
        with pytest.raises(InvalidInput, match=r"such as 'http://127.0.0.1:8800'"):
            replica.connect(url, store)
    with pytest.raises(InvalidInput, match="holds a password") as refused:
        replica.connect("http://ann:hush-hush@host", store)
    assert "hush" not in str(refused.value)


def test_a_store_that_is_closed_under_a_courier_is_its_trouble_alone(
    opened: Callable[[], Checkpointer], plane: Planes, connect: Connect
) -> None:
    mine, site = opened(), plane()
    paused(mine)
    courier = connect(site, mine)
    assert courier.flush(ENOUGH)
    mine.close()
    until(lambda: "retrying" in repr(courier))
    courier.close()
    courier.close()
    assert repr(courier) == f"Courier({site.url!r}, closed)"
    assert not courier.flush(ENOUGH)
