"""Who drives a run when processes race, stop, fork and outlive one another (R2, R3)."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter

import pytest

from durable_nb import RunIsLive, StoreBusy, call
from durable_nb.stores import sqlite_file
from tests.crash.agents import make
from tests.support.agents import bot
from tests.support.children import ROOT

CHARGE = "charge 1042 5000"


def race(start, tmp_path, count: int, agent: str, do: str, **task) -> Counter[str]:
    """How `count` processes fare that are let go at once."""
    (tmp_path / "go").unlink(missing_ok=True)
    (tmp_path / "hold").touch()
    children = [start(agent, do, ready=True, by=f"p{n}", **task) for n in range(count)]
    for child in children:
        child.until_ready()
    (tmp_path / "go").touch()
    return Counter(child.outcome() for child in children)


@pytest.mark.parametrize("pause", [3, None])
def test_of_five_processes_that_approve_one_completes(
    start, store, effects, tmp_path, pause: int | None
) -> None:
    make("gated", store, tmp_path).run("Refund order 1042", execution_id="r1")
    outcome = race(start, tmp_path, 5, "gated", "approve", pause=pause)
    assert outcome == {"completed": 1, "AlreadyResumed": 4}
    assert effects.lines == [CHARGE]


def test_of_five_clicks_on_one_gate_none_passes_the_next(start, store, effects, tmp_path) -> None:
    make("twice_gated", store, tmp_path).run("Refund order 1042", execution_id="r1")
    outcome = race(start, tmp_path, 5, "twice_gated", "approve", pause=3)
    assert outcome == {"paused": 1, "AlreadyResumed": 4}
    assert effects.lines == []
    assert [pause.reason for pause in store.list_pending_interrupts()] == ["vp"]


def test_of_three_processes_that_resume_a_crashed_run_one_drives(
    start, store, effects, tmp_path
) -> None:
    assert start("small", at=2, when="after").outcome() == f"signal {signal.SIGKILL}"
    outcome = race(start, tmp_path, 3, "small", "resume")
    assert outcome["completed"] == 1
    assert outcome["RunIsLive"] + outcome["AlreadyResumed"] == 2
    assert effects.lines == [CHARGE]


def test_eight_processes_may_begin_with_one_new_store(start, store, effects, tmp_path) -> None:
    (tmp_path / "hold").touch()
    children = [start("small", ready=True, id=f"r{n}") for n in range(8)]
    for child in children:
        child.until_ready()
    (tmp_path / "go").touch()
    assert [child.outcome() for child in children] == ["completed"] * 8
    assert len(store.runs()) == 8
    assert effects.lines == [CHARGE] * 8


def test_of_processes_that_begin_one_run_one_does(start, store, effects, tmp_path) -> None:
    outcome = race(start, tmp_path, 4, "small", "run")
    assert outcome == {"completed": 1, "ExecutionExists": 3}
    assert effects.lines == [CHARGE]


def test_a_run_inside_of_a_living_process_is_live(
    start, store, effects, wait_for, tmp_path
) -> None:
    (tmp_path / "hold").touch()
    child = start("held")
    wait_for("entered")
    with pytest.raises(RunIsLive, match="'r1'"):
        make("held", store, tmp_path).resume("r1")
    assert effects.lines == ["entered"]
    (tmp_path / "go").touch()
    assert child.outcome() == "completed"


def test_an_owner_that_was_stopped_and_taken_over_wakes_to_a_stale_log(
    start, store, effects, wait_for, tmp_path
) -> None:
    (tmp_path / "hold").touch()
    child = start("held")
    wait_for("entered")
    child.signal(signal.SIGSTOP)
    with pytest.raises(RunIsLive):
        make("held", store, tmp_path).resume("r1")
    (tmp_path / "go").touch()
    assert make("held", store, tmp_path).resume("r1", take_over=True).status == "completed"
    rows = store.load("r1").rows
    child.signal(signal.SIGCONT)
    assert child.outcome() == "StaleLog"
    assert store.load("r1").rows == rows
    assert effects.lines == ["entered", "entered", "charge 1042"]  # the first never charged


def test_an_owner_stopped_after_its_effects_loses_its_next_entry(
    start, store, effects, wait_for, tmp_path
) -> None:
    (tmp_path / "hold").touch()
    child = start("batch")
    wait_for("note b")
    child.signal(signal.SIGSTOP)
    (tmp_path / "go").touch()
    assert make("batch", store, tmp_path).resume("r1", take_over=True).status == "completed"
    rows = store.load("r1").rows
    child.signal(signal.SIGCONT)
    assert child.outcome() == "StaleLog"
    assert store.load("r1").rows == rows
    assert effects.lines == ["note a", "note b", "note b", "note c"]


def test_children_that_outlive_their_killed_owner_hold_nothing(
    start, store, seen_dead, wait_for, tmp_path
) -> None:
    (tmp_path / "hold").touch()
    owner = start("forking")
    wait_for("entered")
    owner.kill()
    survivors = [int(pid) for pid in (tmp_path / "survivors").read_text().split()]
    try:
        for pid in survivors:
            os.kill(pid, 0)  # it lives
        assert seen_dead() == ["crashed"]
        assert not store.load("r1").live
    finally:
        for pid in survivors:
            os.kill(pid, signal.SIGKILL)


def test_a_forked_child_uses_the_store_and_leaves_its_parent_driving(start, store, effects) -> None:
    assert start("using_a_forked_child").outcome() == "completed"
    assert effects.lines == ["from the child ['completed', 'running']"]
    assert [run.status for run in store.runs()] == ["completed"] * 2


LOCKER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("begin immediate")
print("held", flush=True)
sys.stdin.readline()
"""


class Locker:
    """Another process that holds a store's write lock until it is let go."""

    def __init__(self, path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", LOCKER, str(path)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout.readline() == "held\n"

    def let_go(self) -> None:
        self._process.communicate("\n", timeout=60)


def test_a_run_waits_for_another_process_that_holds_the_write_lock(file, effects) -> None:
    timers: list[threading.Timer] = []

    def let_go(locker: Locker) -> None:
        effects.add("let go")
        locker.let_go()

    def work() -> str:
        effects.add("work")
        timers.append(threading.Timer(1.5, let_go, [Locker(file.path)]))
        timers[-1].start()
        return "ok"

    script = [call("work"), call("work"), "done"]
    assert bot(file, script, work).run("go", execution_id="r1").status == "completed"
    assert effects.lines == ["work", "let go", "work", "let go"]
    for timer in timers:
        timer.join()


def test_a_write_lock_held_too_long_is_an_error_that_changes_nothing(file, monkeypatch) -> None:
    bot(file, ["hi"]).run("go", execution_id="r0")
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.2)
    locker = Locker(file.path)
    agent = bot(file, ["hi"])
    with pytest.raises(StoreBusy, match="another process held"):
        agent.run("go", execution_id="r1")
    locker.let_go()
    assert agent.llm.asked == 0
    assert [run.execution_id for run in file.runs()] == ["r0"]
    assert agent.run("go", execution_id="r1").status == "completed"


@pytest.mark.parametrize("kind", ["sqlite-full"])
def test_the_file_is_sound_after_all_of_it(start, store) -> None:
    for at in (2, 4, 6):
        start("small", at=at, when="after", id=f"r{at}").outcome()
    db = sqlite3.connect(store.path)
    assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
    assert db.execute("pragma foreign_key_check").fetchall() == []
    db.close()
