"""Exploring never disturbs a writer, and nothing but stdlib sqlite3 opens a store's file.

POSIX locks belong to a process and are gone when *any* descriptor of the file is closed in it.
Another process then believes that it is alone, and what we commit afterwards is lost.
"""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path
from textwrap import dedent

import pytest

import durable_nb
from durable_nb import Message, SQLiteCheckpointer, StoreUnusable, views
from durable_nb.model.entries import End, Run, Turn
from durable_nb.stores.sqlite_file import SQLiteFile

PACKAGE = Path(durable_nb.__file__).parent
OPENS = {  # every module or folder that opens files by itself, and what it opens
    "cli/screen.py": "/dev/null",
    "lab/effects.py": "a directory of effects, of which it leaves out a store's",
    "lab/errand.py": "a child's output",
    "lab/handover.py": "a child's report",
    "lab/ledger.py": "a file of effects",
    "lab/progress.py": "nothing: it asks how wide the terminal is",
    "lab/server.py": "/dev/null",
    "lab/trial.py": "a child's output",
    "notebook/typed/tables.py": "a query's file",
    "stores/lock_owners.py": "/proc",
    "stores/locks.py": "the side file of locks",
    "stores/migrate.py": "the package's own SQL",
    "stores/mounts.py": "/proc",
    "stores/pg_process.py": "/proc",
    "stores/pg_session.py": "the package's own SQL",
    "stores/project.py": "a pyproject.toml",
    "tour/__init__.py": "the notebook that it copies",
    "views/mirror.py": "the package's own SQL",
    "views/parquet.py": "a file of its own, for DuckDB to read",
    "views/saved.py": "a query's file, which it checks is not the store's",
    "workspace/": "files of an agent's directory, of which footprint.py leaves out a store's",
}
OPENERS = {"read_bytes", "write_bytes", "read_text", "write_text"}
OTHERS = {"shutil", "tarfile", "zipfile", "adbc_driver_sqlite", "connectorx", "apsw", "sqlalchemy"}
EXPLORE = {
    "runs": "views.runs(store=store)",
    "steps": "views.steps('first', store=store)",
    "messages": "views.messages('first', store=store)",
    "pending": "views.pending(store=store)",
    "usage": "views.usage(store=store), views.usage('first', store=store)",
    "sessions": "views.sessions(store=store)",
    "tool_calls": "views.tool_calls(store=store), views.tool_calls('first', store=store)",
    "decisions": "views.decisions(store=store), views.decisions('first', store=store)",
    "idempotency": "views.idempotency(store=store), views.idempotency('first', store=store)",
    "diff": "views.diff('first', 1, 1, store=store)",
    "picture": "views.picture('first', store=store)._repr_html_()",
    "queries": "views.queries(store=store), views.query('slowest_tools', store=store)",
    "export": "views.export(store.path.with_name('tables'), store=store)",
    "copy": "views.export(store.path.with_name('copy.sqlite3'), store=store)",
    "the store as a query": "try: views.query(str(store.path), store=store)\nexcept InvalidInput: pass",
    "sql": "views.sql('from steps join runs using (execution_id)', store=store)",
    "refused": "try: views.sql('attach ' + repr(str(store.path)) + ' as s (type sqlite)', store=store)\n"
    "except InvalidInput: pass",
    "store": "store.runs(), store.list('first'), store.list_pending_interrupts()",
}
WRITE = """
import os, secrets, sys
from durable_nb import InvalidInput, Message, SQLiteCheckpointer
from durable_nb.model.entries import Run, Turn
store = SQLiteCheckpointer(sys.argv[1])
def write(id):
    run, said = Run(id, "bot", "Hello", 1, id), Message("user", "Hello")
    store.create(run, Turn(0, (said,)), at=1, writer=secrets.randbits(62))
"""


def opens_files(source: str) -> bool:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="open")):
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os" | "io"), attr="open")):
                return True
            case ast.Attribute(attr=attr) if attr in OPENERS:
                return True
            case ast.Import(names=names) if OTHERS & {name.name.split(".")[0] for name in names}:
                return True
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in OTHERS:
                return True
    return False


def test_no_module_opens_a_file_without_saying_which() -> None:
    opening = {
        module.relative_to(PACKAGE).as_posix()
        for module in PACKAGE.rglob("*.py")
        if opens_files(module.read_text(encoding="utf-8"))
    }
    unsaid = [name for name in opening if not name.startswith(tuple(OPENS))]
    assert not unsaid, f"say in OPENS what they open, if it is no store: {sorted(unsaid)}"


@pytest.mark.parametrize(
    "source",
    ["open(store.path)", "store.path.read_bytes()", "import shutil", "os.open(path, 0)"],
)
def test_the_rule_sees_who_opens_a_file(source: str) -> None:
    assert opens_files(source)


def test_sql_of_the_package_attaches_nothing() -> None:
    for script in PACKAGE.rglob("*.sql"):
        words = script.read_text(encoding="utf-8").lower().split()
        assert not {"attach", "sqlite_scan", "copy"} & set(words), script


def _explored_and_killed(path: Path, explore: str) -> list[str]:
    """A process writes `first`, explores, lets another process write `second`, writes `third`
    and is killed. Which runs are on disk?"""
    second = [sys.executable, "-c", WRITE + "write('second')", str(path)]
    script = f"""{WRITE}
import contextlib, subprocess
from durable_nb import StoreUnusable, views
write("first")
{explore}
subprocess.run({second!r}, check=True)
with contextlib.suppress(StoreUnusable):
    write("third")
os.kill(os.getpid(), 9)
"""
    killed = subprocess.run([sys.executable, "-c", script, str(path)], timeout=60)
    assert killed.returncode == -signal.SIGKILL
    return sorted(run.execution_id for run in SQLiteCheckpointer(path).runs())


@pytest.mark.parametrize("call", EXPLORE)
def test_what_is_committed_after_exploring_is_not_lost(tmp_path: Path, call: str) -> None:
    found = _explored_and_killed(tmp_path / "runs.sqlite3", EXPLORE[call])
    assert found == ["first", "second", "third"]


@pytest.mark.skipif(sys.platform != "linux", reason="locks are lost on POSIX systems")
def test_reading_the_file_by_itself_would_lose_it(tmp_path: Path) -> None:
    """Were this to pass with all three, the test above could not fail."""
    found = _explored_and_killed(tmp_path / "runs.sqlite3", "open(store.path, 'rb').read()")
    assert found != ["first", "second", "third"]


def test_the_write_lock_is_kept_while_everything_is_explored(tmp_path: Path) -> None:
    script = WRITE + dedent(
        """
        import sqlite3
        write("first"); from durable_nb import views
        ours = sqlite3.connect(sys.argv[1], isolation_level=None)
        ours.execute("begin immediate")
        """
    )
    script += "\n".join(EXPLORE.values()) + dedent(
        """
        probe = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('begin immediate')"
        import subprocess
        refused = subprocess.run([sys.executable, "-c", probe, sys.argv[1]], capture_output=True)
        assert b"database is locked" in refused.stderr, refused.stderr
        ours.execute("rollback")
        subprocess.run([sys.executable, "-c", probe, sys.argv[1]], check=True)
        """
    )
    path = tmp_path / "runs.sqlite3"
    subprocess.run([sys.executable, "-c", script, str(path)], check=True, timeout=60)


def _five_hundred_commits(store: SQLiteCheckpointer, execution_id: str) -> None:
    run = Run(execution_id, "bot", "Hello", 1, execution_id)
    lease = store.create(run, Turn(0, (Message("user", "Hello"),)), at=1, writer=7)
    for turn in range(1, 499):
        store.append(lease, Turn(turn, (Message("user", f"number {turn}"),)), at=turn)
    store.append(lease, End(499, "completed", "done"), at=500)
    store.release(lease)


def _explore(store: SQLiteCheckpointer, execution_id: str) -> int:
    for view in (views.pending, views.sessions, views.tool_calls, views.decisions, views.usage):
        view(store=store)
    views.idempotency(store=store)
    views.query("slowest_tools", store=store)
    if execution_id in list(views.runs(store=store).execution_id):
        steps = len(views.steps(execution_id, store=store))
        assert len(views.messages(execution_id, store=store)) >= steps - 1
        views.picture(execution_id, store=store)
        views.diff(execution_id, 1, steps, store=store)
    frame = views.sql("select count(*) as n, max(number) as newest from steps", store=store)
    assert frame.n[0] == (frame.newest.fillna(0))[0]  # no row is missed, none is seen twice
    return int(frame.n[0])


def test_a_writer_in_this_process_commits_undisturbed(tmp_path: Path) -> None:
    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3", synchronous="NORMAL")
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(_five_hundred_commits, store, "long")
        while not writing.done():
            _explore(store, "long")
        writing.result()
    assert _explore(store, "long") == 500


def test_a_writer_in_another_process_commits_undisturbed(tmp_path: Path) -> None:
    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3", synchronous="NORMAL")
    code = "import sys; from durable_nb import SQLiteCheckpointer\n" + dedent(
        """
        from tests.views.test_undisturbed import _five_hundred_commits
        _five_hundred_commits(SQLiteCheckpointer(sys.argv[1], synchronous="NORMAL"), "long")
        """
    )
    writing = subprocess.Popen([sys.executable, "-c", code, str(store.path)], cwd=PACKAGE.parent)
    while writing.poll() is None:
        _explore(store, "long")
    assert writing.returncode == 0
    assert _explore(store, "long") == 500


def test_an_answer_that_is_half_read_does_not_keep_the_log_from_being_cut(tmp_path: Path) -> None:
    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3", synchronous="NORMAL")
    _five_hundred_commits(store, "first")
    half_read = iter(store.entry_rows())
    next(half_read)
    _five_hundred_commits(store, "second")
    assert os.stat(f"{store.path}-wal").st_size == 0
    assert sum(1 for _ in half_read) == 999


def test_an_explorers_connection_cannot_write(tmp_path: Path) -> None:
    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
    _five_hundred_commits(store, "first")
    reader = SQLiteFile(store.path, lambda db: None, mode="ro")
    with pytest.raises(StoreUnusable, match="read-only"):
        reader.change("delete from entries where number > ?", [0])
    assert reader.read("select count(*) from entries") == [(500,)]


def test_a_log_that_is_lost_is_said_by_the_next_commit_and_by_whoever_reads(tmp_path: Path) -> None:
    """Reading the file drops our locks, so another process removes the log on leaving."""
    path = tmp_path / "runs.sqlite3"
    second = [sys.executable, "-c", WRITE + "write('second')", str(path)]
    script = f"""{WRITE}
import subprocess
from durable_nb import StoreUnusable
write("first")
open(store.path, "rb").read()
subprocess.run({second!r}, check=True)
for act in lambda: write("third"), lambda: store.runs(), lambda: store.load("first"):
    try: act()
    except StoreUnusable as error: print(error)
"""
    command = [sys.executable, "-c", script, str(path)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    assert [f"{path}-wal was deleted" in line for line in said.splitlines()] == [True] * 3


def test_a_log_that_is_cut_or_made_anew_by_its_owners_alarms_nobody(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite3"
    with closing(SQLiteCheckpointer(path, synchronous="NORMAL")) as store:
        for n in range(3):
            _five_hundred_commits(store, f"long-{n}")  # each end cuts it
    again = SQLiteCheckpointer(path, synchronous="NORMAL")
    _five_hundred_commits(again, "again")
    assert len(again.runs()) == 4


def _directory(path: Path) -> None:
    path.mkdir()


def _text(path: Path) -> None:
    path.write_text("not a database at all, " * 100)


def _newer(path: Path) -> None:
    store = SQLiteCheckpointer(path)
    _five_hundred_commits(store, "first")
    with SQLiteFile(path, lambda db: None).write() as db:
        db.execute("pragma user_version = 99")


NUMBERS = count()
CALLS: dict[str, Callable[[SQLiteCheckpointer], object]] = {
    "runs": lambda store: views.runs(store=store),
    "steps": lambda store: views.steps("first", store=store),
    "messages": lambda store: views.messages("first", store=store),
    "pending": lambda store: views.pending(store=store),
    "usage": lambda store: views.usage(store=store),
    "sessions": lambda store: views.sessions(store=store),
    "tool_calls": lambda store: views.tool_calls(store=store),
    "decisions": lambda store: views.decisions(store=store),
    "idempotency": lambda store: views.idempotency(store=store),
    "diff": lambda store: views.diff("first", 1, 2, store=store),
    "picture": lambda store: views.picture("first", store=store),
    "query": lambda store: views.query("calls_in_doubt", store=store),
    "export": lambda store: views.export(
        store.path.with_name(f"tables-{next(NUMBERS)}"), store=store
    ),
    "sql": lambda store: views.sql("from runs", store=store),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("make", "said"),
    [(_directory, "is a directory"), (_text, "not a SQLite file"), (_newer, "newer")],
)
def test_what_is_no_store_is_refused_and_left_as_it_is(
    tmp_path: Path, call: str, make: Callable[[Path], None], said: str
) -> None:
    path = tmp_path / "runs.sqlite3"
    make(path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(StoreUnusable, match=said):
        CALLS[call](SQLiteCheckpointer(path))
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("call", CALLS)
def test_a_closed_store_says_so(tmp_path: Path, call: str) -> None:
    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
    _five_hundred_commits(store, "first")
    CALLS[call](store)
    store.close()
    with pytest.raises(StoreUnusable, match="closed"):
        CALLS[call](store)


@pytest.mark.parametrize("call", CALLS)
def test_a_file_that_was_replaced_is_not_taken_for_the_old_one(tmp_path: Path, call: str) -> None:
    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
    _five_hundred_commits(store, "first")
    CALLS[call](store)
    store.path.rename(tmp_path / "away")
    with pytest.raises(StoreUnusable, match="deleted or replaced"):
        CALLS[call](store)


def test_an_empty_file_is_a_store_without_runs(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite3"
    path.touch()
    assert views.runs(store=SQLiteCheckpointer(path)).empty


def test_a_forked_child_explores_by_itself(tmp_path: Path) -> None:
    script = WRITE + dedent(
        """
        from durable_nb import views
        write("first")
        assert len(views.sql("from runs", store=store)) == 1
        child = os.fork()
        if child == 0:
            os._exit(0 if len(views.sql("from steps", store=store)) == 1 else 1)
        assert os.waitpid(child, 0)[1] == 0
        write("second")
        assert len(views.runs(store=store)) == 2
        """
    )
    command = [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "runs.sqlite3")]
    subprocess.run(command, check=True, timeout=60)
