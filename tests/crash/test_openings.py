"""A new store is opened by a process that is killed at each of its statements (L11)."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

from durable_nb.stores import migrate, pg_session
from tests.crash.agents import make
from tests.crash.child import die
from tests.support.children import Process
from tests.support.stores import STORES

_OPENERS = {migrate.__file__, pg_session.__file__}


def open_and_die(folder: Path, kind: str, at: int) -> None:
    """Begin a run, killed by SIGKILL before statement number `at` that opening the store takes."""
    statements = count(1)

    def counting(frame: FrameType, event: str, called: Any) -> None:
        if _name(frame, event, called) == "execute" and next(statements) == at:
            die()

    sys.setprofile(counting)
    make("small", STORES[kind](folder), folder).run("go", execution_id="r1")


def _name(frame: FrameType, event: str, called: Any) -> str:
    """What an opener calls: sqlite3 is written in C, psycopg in Python."""
    if event == "c_call" and frame.f_code.co_filename in _OPENERS:
        return str(called.__name__)
    caller = frame.f_back
    if event == "call" and caller is not None and caller.f_code.co_filename in _OPENERS:
        return frame.f_code.co_name
    return ""


def test_a_store_whose_first_opening_was_killed_at_any_statement_opens(kind, tmp_path) -> None:
    for at in count(1):
        folder = tmp_path / str(at)
        folder.mkdir()
        killed = Process(open_and_die, folder, kind, at).ended() == "signal 9"
        store = STORES[kind](folder)
        assert [run.execution_id for run in store.runs()] in ([], ["r1"])
        assert make("small", store, folder).run("go", execution_id="r2").status == "completed"
        store.close()
        if not killed:
            break
    assert at > 10
