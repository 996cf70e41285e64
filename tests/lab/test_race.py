"""Of all who resume a run at once one wins, and the frame says who and what the others got."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from durable_nb import (
    Agent,
    InvalidInput,
    Resume,
    ScriptedModel,
    UnknownExecution,
    call,
    interrupt,
    lab,
)
from tests.lab import shop
from tests.lab.test_crash import TOOL, spent
from tests.support.ledger import Ledger


def test_of_all_who_resume_a_crashed_run_one_wins(tmp_path: Path) -> None:
    agent = shop.bot(tmp_path)
    lab.crash(agent, "Refund", at=TOOL, when="before", execution_id="r")
    frame = lab.race(agent, "r", processes=3, threads=2)
    assert list(frame.columns) == ["process", "thread", "won", "got", "said"]
    assert len(frame) == 6
    (winner,) = frame[frame["won"]].itertuples()
    assert (winner.got, winner.said) == ("completed", "Refunded.")
    assert set(frame["got"][~frame["won"]]) <= {"RunIsLive", "AlreadyResumed"}
    assert spent(tmp_path) == (2, 1)


def test_a_pause_is_answered_once_whoever_answers(tmp_path: Path) -> None:
    notes = Ledger(tmp_path / "notes")

    def work() -> str:
        interrupt("manager")
        notes.add(os.getpid())
        return "ok"

    llm = ScriptedModel([call("work"), "Done."])
    agent = Agent("bot", llm, [work], checkpointer=shop.store_in(tmp_path))
    agent.run("Go", execution_id="r")
    frame = lab.race(agent, "r", processes=4, resume_value=Resume(True, by="ann"))
    assert list(frame["won"]).count(True) == 1
    assert set(frame["got"][~frame["won"]]) == {"AlreadyResumed"}
    assert all("ann approved" in said for said in frame["said"][~frame["won"]])
    assert len(notes.lines) == 1


def test_racers_begin_without_pandas_which_no_run_needs(tmp_path: Path) -> None:
    def work() -> str:
        return f"pandas is imported: {'pandas' in sys.modules}"

    llm = ScriptedModel(lambda said: said[-1].content if len(said) > 1 else call("work"))
    agent = Agent("bot", llm, [work], checkpointer=shop.store_in(tmp_path))
    lab.crash(agent, "Go", at="turn:0", when="before", execution_id="r")
    assert list(lab.race(agent, "r", processes=1)["said"]) == ["pandas is imported: False"]


def test_what_escapes_the_run_meets_its_winner(tmp_path: Path) -> None:
    llm = ScriptedModel([OSError("503"), OSError("503 again"), "Done."])
    agent = Agent("bot", llm, checkpointer=shop.store_in(tmp_path))
    with pytest.raises(OSError, match="503"):
        agent.run("Go", execution_id="r")
    frame = lab.race(agent, "r", processes=1)
    assert list(frame.itertuples(index=False)) == [(0, 0, True, "OSError", "503 again")]


def test_a_race_without_a_run_or_without_racers_is_refused(tmp_path: Path) -> None:
    agent = shop.bot(tmp_path)
    with pytest.raises(UnknownExecution):
        lab.race(agent, "nothing")
    agent.run("Go", execution_id="r")
    with pytest.raises(InvalidInput, match="no race"):
        lab.race(agent, "r", processes=0)
