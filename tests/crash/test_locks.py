"""Locks that say who drives: they die with their process, and looking at them disturbs nobody.

`ByteLocks` serve Linux, `FileLocks` the other systems; both keep the same promises, here too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from durable_nb import StoreUnusable
from durable_nb.stores.locks import ByteLocks, FileLocks, Locks, locks_for
from tests.support.children import ROOT

KINDS: dict[str, type[ByteLocks | FileLocks]] = {"bytes": ByteLocks, "files": FileLocks}
LARGE = 2**62 - 1

OWNER = """
import os, signal, subprocess, sys
from pathlib import Path
from durable_nb.stores import locks
kind, path, how = sys.argv[1:]
held = getattr(locks, kind)(Path(path))
held.hold(7)
child = None
if how == "forks":
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(tell, b"forked")  # it runs, so what a fork closes is closed
        signal.pause()
    os.read(told, 6)
if how == "spawns":
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]).pid
print(child or 0, flush=True)
signal.pause()
"""


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> type[ByteLocks | FileLocks]:
    return KINDS[request.param]


@pytest.fixture
def opened(kind, tmp_path: Path) -> Iterator[Callable[[], Locks]]:
    """The locks of one store, again and again, as other processes would open them."""
    made: list[Locks] = []

    def open_again() -> Locks:
        made.append(kind(tmp_path / "runs.sqlite3-locks"))
        return made[-1]

    yield open_again
    for each in made:
        each.close()


@pytest.fixture
def owner(kind, tmp_path: Path) -> Iterator[Callable[[str], tuple[subprocess.Popen[str], int]]]:
    """Starts a process that holds claim 7; returns it and the process that it started."""
    started: list[int] = []
    processes: list[subprocess.Popen[str]] = []

    def start(how: str) -> tuple[subprocess.Popen[str], int]:
        arguments = [kind.__name__, str(tmp_path / "runs.sqlite3-locks"), how]
        process = subprocess.Popen(
            [sys.executable, "-c", OWNER, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        assert process.stdout is not None
        child = int(process.stdout.readline())
        started.extend(filter(None, [process.pid, child]))
        return process, child

    yield start
    for pid in started:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for process in processes:
        process.communicate(timeout=60)


def gone(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait(timeout=60)


def test_a_claim_is_held_until_it_is_dropped(opened) -> None:
    mine, theirs = opened(), opened()
    assert mine.held() == theirs.held() == set()
    for writer in (0, 1, 2, 500, LARGE):
        mine.hold(writer)
    theirs.hold(3)
    assert mine.held() == theirs.held() == {0, 1, 2, 3, 500, LARGE}
    for writer in (1, LARGE):
        mine.drop(writer)
        mine.drop(writer)
    mine.drop(999)
    assert mine.held() == theirs.held() == {0, 2, 3, 500}


def test_looking_holds_nothing_and_makes_nothing(opened, tmp_path) -> None:
    locks = opened()
    locks.drop(5)
    assert locks.held() == set()
    assert list(tmp_path.iterdir()) == []


def test_closing_lets_go_of_everything_and_may_be_repeated(opened) -> None:
    mine, theirs = opened(), opened()
    for writer in (1, 2):
        mine.hold(writer)
    mine.close()
    mine.close()
    assert theirs.held() == set()


def test_dropping_what_another_holds_leaves_it_held(opened) -> None:
    mine, theirs = opened(), opened()
    mine.hold(1)
    theirs.hold(2)
    theirs.drop(1)
    assert opened().held() == {1, 2}


def test_a_killed_process_holds_nothing(opened, owner) -> None:
    locks = opened()
    process, _ = owner("alone")
    assert locks.held() == {7}
    gone(process)
    assert locks.held() == set()


def test_a_stopped_process_holds_its_claim(opened, owner) -> None:
    locks = opened()
    process, _ = owner("alone")
    process.send_signal(signal.SIGSTOP)
    assert locks.held() == {7}
    gone(process)
    assert locks.held() == set()


@pytest.mark.parametrize("how", ["forks", "spawns"])
def test_a_child_that_outlives_its_owner_holds_nothing(opened, owner, how: str) -> None:
    locks = opened()
    process, child = owner(how)
    assert locks.held() == {7}
    gone(process)
    os.kill(child, 0)  # it lives
    assert locks.held() == set()


def test_a_forked_child_leaves_its_parents_claims_alone(opened) -> None:
    mine, theirs = opened(), opened()
    mine.hold(1)
    if (pid := os.fork()) == 0:
        mine.hold(2)
        mine.drop(1)
        mine.close()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert theirs.held() == {1}


def test_claims_come_and_go_while_others_look(opened) -> None:
    """Nobody who looks makes a claim fail, or seem free while it is held."""
    mine = opened()
    done = threading.Event()
    failures: list[object] = []

    def look(locks: Locks) -> None:
        while not done.is_set():
            locks.held()

    lookers = [threading.Thread(target=look, args=[opened()]) for _ in range(2)]
    for looker in lookers:
        looker.start()
    judge = opened()
    try:
        for writer in range(150):
            mine.hold(writer)
            if writer not in judge.held():
                failures.append(writer)
            mine.drop(writer)
    finally:
        done.set()
        for looker in lookers:
            looker.join()
    assert failures == []
    assert judge.held() == set()


def test_threads_hold_claims_of_their_own(opened) -> None:
    mine, theirs = opened(), opened()

    def one(first: int) -> None:
        for writer in range(first, first + 20):
            mine.hold(writer)
            if writer % 2:
                mine.drop(writer)

    threads = [threading.Thread(target=one, args=[first]) for first in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    even = {first + at for first in (0, 100, 200) for at in range(0, 20, 2)}
    assert theirs.held() == even


def test_a_deleted_lock_file_is_an_error_not_a_free_claim(tmp_path) -> None:
    mine = ByteLocks(tmp_path / "locks")
    mine.hold(1)
    (tmp_path / "locks").unlink()
    with pytest.raises(StoreUnusable, match="deleted while in use"):
        mine.held()
    with pytest.raises(StoreUnusable, match="deleted while in use"):
        mine.hold(2)
    mine.drop(1)
    mine.close()


def test_each_system_has_its_locks_beside_the_store(tmp_path, monkeypatch) -> None:
    path = tmp_path / "runs.sqlite3"
    assert isinstance(locks_for(path), ByteLocks)
    for system in ("darwin", "win32"):
        monkeypatch.setattr(sys, "platform", system)
        locks = locks_for(path)
        assert isinstance(locks, FileLocks)
        locks.hold(5)
        assert [each.name for each in tmp_path.iterdir()] == ["runs.sqlite3-locks"]
        locks.close()
