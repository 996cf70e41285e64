"""A process may also leave, be stopped, or lose its store; what is left is the same kind of log."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest

from durable_nb import InvalidInput, MemoryCheckpointer, RunIsLive, StaleLog, lab
from tests.lab import shop
from tests.lab.test_child import wait_for
from tests.lab.test_crash import TOOL, spent


def ended(folder: Path, how: lab.How, *, when: lab.When = "during", at: str = TOOL) -> lab.Crash:
    agent = shop.bot(folder)
    return lab.crash(agent, "Refund", at=at, when=when, execution_id="refund-1042", how=how)


def test_a_process_that_leaves_by_os_exit_is_resumed_like_one_that_was_killed(
    tmp_path: Path,
) -> None:
    crash = ended(tmp_path, "exit")
    assert str(crash).startswith(f"run 'refund-1042': its process left by os._exit during {TOOL}\n")
    assert crash.signal == 0
    assert shop.bot(tmp_path).resume("refund-1042").output == "Refunded."
    assert spent(tmp_path) == (2, 1)


def test_a_stopped_owner_keeps_its_run_until_somebody_takes_it_over(tmp_path: Path) -> None:
    crash = ended(tmp_path, "stop")
    assert crash.signal == signal.SIGSTOP
    assert "resume(…, take_over=True) takes the run from it" in str(crash)
    agent = shop.bot(tmp_path)
    with pytest.raises(RunIsLive):
        agent.resume("refund-1042")
    assert agent.resume("refund-1042", take_over=True).output == "Refunded."
    assert crash.wake().startswith(f"{StaleLog.__name__}: ")
    assert spent(tmp_path) == (2, 1)


def test_a_stopped_owner_that_wakes_in_time_goes_on(tmp_path: Path) -> None:
    crash = ended(tmp_path, "stop", when="before")
    assert crash.wake() == "completed"
    assert spent(tmp_path) == (2, 1)
    with pytest.raises(InvalidInput, match="no longer there"):
        crash.wake()


def test_a_stopped_owner_ends_when_it_is_told_to_or_forgotten(tmp_path: Path) -> None:
    first = ended(tmp_path, "stop")
    first.end()
    assert shop.bot(tmp_path).resume("refund-1042").status == "completed"
    other = tmp_path / "other"
    other.mkdir()
    forgotten = ended(other, "stop")
    assert [run.status for run in shop.store_in(other).runs()] == ["running"]
    del forgotten
    gc.collect()
    assert [run.status for run in shop.store_in(other).runs()] == ["crashed"]


def test_only_a_stopped_process_can_be_woken(tmp_path: Path) -> None:
    crash = ended(tmp_path, "kill")
    crash.end()
    with pytest.raises(InvalidInput, match="no longer there"):
        crash.wake()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("full", "its disk was full during"),
        ("locked", "its store was locked by another process during"),
    ],
)
def test_a_store_that_fails_leaves_the_rows_that_were_there_and_a_run_to_resume(
    tmp_path: Path, how: lab.How, said: str
) -> None:
    crash = ended(tmp_path, how)
    assert said in str(crash)
    assert crash.said.startswith({"full": "StoreUnusable: ", "locked": "StoreBusy: "}[how])
    assert [row.node_id for row in crash.rows] == ["turn:0", TOOL]
    assert shop.bot(tmp_path).resume("refund-1042").output == "Refunded."
    assert len(shop.noted(tmp_path / "charges")) in (1, 2)


def test_a_store_that_is_no_file_cannot_be_full_and_other_ends_are_refused(tmp_path: Path) -> None:
    agent = shop.bot(tmp_path, store=MemoryCheckpointer())
    with pytest.raises(InvalidInput, match="no file that could be full or locked"):
        lab.crash(agent, "Refund", at="turn:0", when="before", how="full")
    with pytest.raises(InvalidInput, match="how='explode' is no end; ends are kill, exit"):
        ended(tmp_path, "explode")  # type: ignore[arg-type]


def test_what_was_stopped_ends_with_this_process_too(tmp_path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            ended(tmp_path, "stop", when="before")
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    wait_for(lambda: shop.store_in(tmp_path).runs()[0].status == "crashed")
