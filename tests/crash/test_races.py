"""Five processes of four threads each answer one pause, round after round: one wins, no driver errs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.crash.agents import make
from tests.crash.conftest import OUTLIVING
from tests.support.children import ROOT
from tests.support.ledger import Ledger
from tests.support.stores import STORES

PROCESSES, THREADS, ROUNDS = 5, 4, 200


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", OUTLIVING)
def test_of_twenty_that_answer_one_pause_one_wins(kind: str, tmp_path: Path, effects: Ledger):
    store = STORES[kind](tmp_path)
    agent = make("gated", store, tmp_path)
    for number in range(ROUNDS):
        agent.run("Refund order 1042", execution_id=f"r{number}")
    racers = [_racer(tmp_path, kind) for _ in range(PROCESSES)]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for number in range(ROUNDS):
        (tmp_path / f"go{number}").touch()
        while len(list(tmp_path.glob(f"done{number}-*"))) < PROCESSES:
            assert all(racer.poll() in (None, 0) for racer in racers)
            time.sleep(0.001)
    outcomes: Counter[str] = Counter()
    for racer in racers:
        out, _ = racer.communicate(timeout=60)
        outcomes.update(json.loads(out))
    answers = PROCESSES * THREADS * ROUNDS
    assert outcomes == {"completed": ROUNDS, "AlreadyResumed": answers - ROUNDS}
    assert len(effects.lines) == ROUNDS
    assert {run.status for run in store.runs()} == {"completed"}
    store.close()


def _racer(folder: Path, kind: str) -> subprocess.Popen[str]:
    arguments = [str(folder), kind, str(ROUNDS), str(THREADS)]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.crash.racers", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
