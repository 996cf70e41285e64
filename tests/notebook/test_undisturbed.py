"""A writer commits 500 rows while a notebook looks at them: it waits for nobody, and none is lost.

That it commits while somebody looks is sure without a clock: after every 25 rows it waits until
another look has begun.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Semaphore

import pytest

from durable_nb import Message, SQLiteCheckpointer
from durable_nb.model.entries import End, Run, Turn
from tests.notebook.conftest import Notebook

WRITE = """
import sys
from durable_nb import SQLiteCheckpointer
from tests.notebook.test_undisturbed import commit_500
commit_500(SQLiteCheckpointer(sys.argv[1], synchronous="NORMAL"), sys.stdin.readline)
sys.stdin.read()
"""
LOOKS = (
    "%durable show long",
    "%durable show long --page 2",
    "%durable diff long 1 2",
    "%durable pending",
    "%durable runs",
    "views.steps('long'), views.messages('long'), views.usage('long'), views.tool_calls('long')",
    "%%durable_sql\nselect count(*), max(number) from steps",
    "views.picture('long')",
)


@pytest.fixture
def store(notebook: Notebook, tmp_path: Path) -> SQLiteCheckpointer:
    """The notebook's store: the quickest writer is the one that readers meet most often."""
    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3", synchronous="NORMAL")
    notebook.names["store"] = store
    notebook("%config DurableMagics.headless = False\n%durable use store")
    notebook("from durable_nb import views")
    return store


def commit_500(store: SQLiteCheckpointer, until_somebody_looks: Callable[[], object]) -> None:
    run = Run("long", "bot", "Hello", 1, "long")
    lease = store.create(run, Turn(0, (Message("user", "Hello"),)), at=1, writer=7)
    for turn in range(1, 499):
        store.append(lease, Turn(turn, (Message("user", f"number {turn}"),)), at=turn)
        if turn > 60 and turn % 25 == 0:  # two pages are there
            until_somebody_looks()
    store.append(lease, End(499, "completed", "done"), at=500)
    store.release(lease)


def look(notebook: Notebook, store: SQLiteCheckpointer, say_so: Callable[[], object]) -> None:
    """Everything, once there is something to see; nothing may fail."""
    if not store.runs() or len(store.list("long")) < 60:
        return
    for cell in LOOKS:
        say_so()
        ran = notebook(cell)
        assert ran.error is None, (cell, ran.error)


def assert_nothing_is_lost(notebook: Notebook, store: SQLiteCheckpointer) -> None:
    look(notebook, store, lambda: None)
    assert [row.number for row in store.list("long")] == list(range(1, 501))
    counted = notebook("%%durable_sql\nselect count(*) as n from steps").value
    assert list(counted.n) == [500]


def test_a_writer_in_the_notebooks_own_process_is_not_disturbed(
    notebook: Notebook, store: SQLiteCheckpointer
) -> None:
    looks = Semaphore(0)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(commit_500, store, looks.acquire)
        while not writing.done():
            look(notebook, store, looks.release)
        writing.result()
    assert_nothing_is_lost(notebook, store)


def test_a_writer_in_another_process_is_not_disturbed(
    notebook: Notebook, store: SQLiteCheckpointer
) -> None:
    command = [sys.executable, "-c", WRITE, str(store.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as writing:
        looks = writing.stdin
        assert looks is not None
        while writing.poll() is None and [run.status for run in store.runs()] != ["completed"]:
            look(notebook, store, lambda: print(file=looks, flush=True))
    assert writing.returncode == 0
    assert_nothing_is_lost(notebook, store)
