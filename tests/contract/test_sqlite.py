"""What only a file can do: be the wrong file, be read-only, be deleted, be of another version."""

from __future__ import annotations

import os
import pickle
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from durable_nb import (
    InvalidInput,
    MemoryCheckpointer,
    Resume,
    SQLiteCheckpointer,
    StoreBusy,
    StoreCorrupt,
    StoreUnusable,
    call,
    interrupt,
)
from durable_nb.stores import migrate, sqlite_file
from durable_nb.stores.glance import glance
from durable_nb.stores.lock_owners import owners_of
from durable_nb.stores.migrate import APPLICATION_ID, MIGRATIONS
from durable_nb.stores.open import default_store, open_store, use_store
from tests.contract.suite import CALLED, OPENING, a_run, paused, started, statuses
from tests.support.agents import bot


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.sqlite3"


def test_what_a_prune_would_remove_is_told_while_somebody_writes(tmp_path) -> None:
    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
    bot(store, ["done"]).run("go", execution_id="r1")
    with closing(sqlite3.connect(store.path)) as other:
        other.execute("begin immediate")
        assert store.prune(0, dry_run=True) == ["r1"]


def test_making_a_store_touches_nothing(path: Path) -> None:
    store = SQLiteCheckpointer(path.parent / "new" / "deep" / "runs.sqlite3")
    assert list(store.runs()) == []
    store.close()
    assert list(path.parent.iterdir()) == []


def test_the_first_run_makes_the_file_and_its_folders(path: Path) -> None:
    store = SQLiteCheckpointer(path.parent / "new" / "deep" / "runs.sqlite3")
    started(store)
    assert statuses(SQLiteCheckpointer(store.path)) == {"r1": "running"}


def test_an_append_is_one_statement(path: Path) -> None:
    """Whether or not a plane will ever be connected."""
    store = SQLiteCheckpointer(path)
    lease = started(store)
    statements: list[str] = []
    store._file._connection().set_trace_callback(statements.append)
    store.append(lease, CALLED, at=11)
    assert [" ".join(said.split()[:3]) for said in statements] == ["insert into entries"]


def test_a_stores_folder_keeps_its_permissions(path: Path) -> None:
    folder = path.parent / "kept"
    folder.mkdir(mode=0o751)
    folder.chmod(0o751)
    store = SQLiteCheckpointer(folder / "runs.sqlite3")
    paused(store)
    store.close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o751


def a_folder(path: Path) -> None:
    path.mkdir()


def text(path: Path) -> None:
    path.write_text("my diary, not a database\n" * 100)


def another_program(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("create table mine (x)")
    db.commit()
    db.close()


def another_program_with_an_id(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("pragma application_id = 77")
    db.commit()
    db.close()


def a_newer_version(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute(f"pragma application_id = {APPLICATION_ID}")
    db.execute(f"pragma user_version = {len(MIGRATIONS) + 1}")
    db.close()


def below_a_file(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_text("a file")


UNUSABLE = [
    (a_folder, "is a directory"),
    (text, "is not a SQLite file"),
    (another_program, "another program's"),
    (another_program_with_an_id, "another program's"),
    (a_newer_version, "newer durable_nb.*upgrade"),
    (below_a_file, "no usable directory|cannot be opened"),
]


@pytest.mark.parametrize(("make", "why"), UNUSABLE, ids=[make.__name__ for make, _ in UNUSABLE])
def test_a_path_that_is_no_store_is_refused_and_left_as_it_is(path, make, why: str) -> None:
    target = path.parent / "place" / "runs.sqlite3"
    target.parent.mkdir()
    make(target)
    before = {each: each.is_file() and each.read_bytes() for each in path.parent.rglob("*")}
    store = SQLiteCheckpointer(target)
    agent = bot(store, ["hi"])
    with pytest.raises(StoreUnusable, match=why):
        agent.run("go", execution_id="r1")
    assert agent.llm.asked == 0
    if target.exists():
        for ask in (store.runs, store.list_pending_interrupts, lambda: store.load("r1")):
            with pytest.raises(StoreUnusable, match=why):
                ask()
    store.close()
    assert {each: each.is_file() and each.read_bytes() for each in path.parent.rglob("*")} == before


def test_a_read_only_file_is_readable_and_says_why_it_takes_no_run(path: Path) -> None:
    writer = SQLiteCheckpointer(path)
    paused(writer)
    writer.close()
    path.chmod(0o444)
    script = (
        "import sys; from durable_nb import *\n"
        "import os; os.setgid(65534) if os.getuid() == 0 else None\n"
        "os.setuid(65534) if os.getuid() == 0 else None\n"
        "store = SQLiteCheckpointer(sys.argv[1])\n"
        "try: Agent('bot', ScriptedModel(['hi']), checkpointer=store).run('go')\n"
        "except StoreUnusable as error: print(error)\n"
    )
    world = path.parent  # readable for all, writable for its owner alone
    for folder in (world, *world.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    ran = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60
    )
    assert "StoreUnusable" not in ran.stderr
    assert "read-only" in ran.stdout or "cannot be opened" in ran.stdout, ran
    assert statuses(SQLiteCheckpointer(path)) == {"r1": "paused"}


@pytest.mark.parametrize("pattern", ["runs.sqlite3*", "runs.sqlite3"])
def test_a_deleted_file_is_an_error_and_no_new_empty_store(path, pattern: str, effects) -> None:
    def work() -> str:
        effects.add("work")
        for each in path.parent.glob(pattern):
            each.unlink()
        return "ok"

    store = SQLiteCheckpointer(path)
    with pytest.raises(StoreUnusable, match="deleted"):
        bot(store, [call("work"), "done"], work).run("go", execution_id="r1")
    for ask in (
        store.runs,
        store.list_pending_interrupts,
        lambda: store.load("r1"),
        lambda: started(store, "r2", 2),
    ):
        with pytest.raises(StoreUnusable, match="deleted"):
            ask()
    assert not path.exists()
    store.close()
    assert effects.lines == ["work"]


def test_a_replaced_file_is_an_error(path: Path) -> None:
    store = SQLiteCheckpointer(path)
    lease = started(store)
    other = SQLiteCheckpointer(path.with_name("other.sqlite3"))
    paused(other, "theirs")
    other.close()
    os.replace(other.path, path)
    with pytest.raises(StoreUnusable, match="deleted or replaced"):
        store.append(lease, CALLED, at=1)


def test_the_root_of_all_directories_is_no_store() -> None:
    with pytest.raises(StoreUnusable, match="is a directory"):
        SQLiteCheckpointer("/").runs()


def test_a_link_to_the_file_is_the_same_store_with_the_same_drivers(path: Path) -> None:
    store = SQLiteCheckpointer(path)
    started(store)
    link = path.with_name("link.sqlite3")
    link.symlink_to(path)
    by_link = SQLiteCheckpointer(link)
    assert [run.status for run in by_link.runs()] == ["running"]
    assert glance(link).crashed == 0
    assert list(owners_of(link).values()) == list(owners_of(path).values()) != []


def test_deleted_locks_are_an_error_not_a_second_driver(path: Path) -> None:
    store = SQLiteCheckpointer(path)
    started(store)
    for side in path.parent.glob("*-locks"):
        side.unlink()
    with pytest.raises(StoreUnusable, match="deleted while in use"):
        store.runs()
    with pytest.raises(StoreUnusable, match="deleted while in use"):
        started(store, "r2", 2)


@pytest.mark.parametrize("changed", ["body", "turn", "tool", "at", "writer", "checksum"])
def test_a_changed_row_is_named_and_nothing_runs(path: Path, changed: str, effects) -> None:
    def work() -> str:
        interrupt("why")
        effects.add("work")
        return "ok"

    store = SQLiteCheckpointer(path)
    for execution_id in ("fine", "hurt"):
        bot(store, [call("work"), "done"], work).run("go", execution_id=execution_id)
    with sqlite3.connect(path) as db:
        where = "where number = 2 and run = (select key from runs where id = 'hurt')"
        value = {"body": "replace(body, 'work', 'worK')", "tool": "'w'"}.get(
            changed, f"{changed} + 90"
        )
        db.execute(f"update entries set {changed} = {value} {where}")
    db.close()
    with pytest.raises(StoreCorrupt, match=r"entry \d+ of run 'hurt'"):
        bot(store, ["x"], work).resume("hurt", resume_value=Resume(True))
    assert effects.lines == []
    assert statuses(store) == {"fine": "paused", "hurt": "paused"}
    assert (
        bot(store, [call("work"), "done"], work).resume("fine", resume_value=Resume(True)).status
        == "completed"
    )


def test_a_damaged_page_is_an_error_of_ours(path: Path) -> None:
    store = SQLiteCheckpointer(path)
    for writer in range(1, 60):
        store.release(started(store, f"r{writer}", writer))
    store.close()
    with sqlite3.connect(path) as db:
        db.execute("pragma wal_checkpoint(truncate)").fetchall()
    db.close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\x00\xff" * ((len(data) - 4096) // 2)
    path.write_bytes(data)
    with pytest.raises((StoreCorrupt, StoreUnusable), match=r"damaged|cannot be used"):
        SQLiteCheckpointer(path).runs()


@pytest.mark.parametrize(
    ("limit", "why"),
    [("query_only = 1", "is read-only"), ("max_page_count = 1", "no room left on its disk")],
)
def test_a_file_that_takes_no_more_says_why_and_keeps_what_it_has(
    path, limit: str, why: str
) -> None:
    store = SQLiteCheckpointer(path)
    lease = started(store)
    limited = store._file._connection()  # SQLite's own limits, set where the store would meet them
    limited.execute(f"pragma {limit}").fetchall()
    large = replace(CALLED, arguments={"text": "x" * 100_000})
    with pytest.raises(StoreUnusable, match=why):
        store.append(lease, large, at=11)
    with pytest.raises(StoreUnusable, match=why):
        store.create(replace(a_run("r2"), prompt="x" * 100_000), OPENING, at=1, writer=2)
    assert statuses(SQLiteCheckpointer(path)) == {"r1": "running"}
    limited.execute(f"pragma {limit.split()[0]} = {0 if 'only' in limit else 1_000_000}").fetchall()
    assert store.append(lease, large, at=12).number == 2


class Interleaved(sqlite3.Connection):
    """A connection during whose first statement somebody else makes the store."""

    path: Path

    def execute(self, *statement):
        (row,) = super().execute(*statement).fetchall()
        with closing(sqlite3.connect(self.path, isolation_level=None)) as theirs:
            migrate.for_writing(theirs, self.path, "FULL")
        return super().execute(f"values ({', '.join('?' * len(row))})", row)


def test_a_file_that_becomes_a_store_while_it_is_looked_at_is_no_other_programs(path: Path) -> None:
    Interleaved.path = path
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None, factory=Interleaved)) as db:
        assert migrate.check(db, path) == 0
        assert migrate.check(db, path) == len(MIGRATIONS)


def test_a_migration_that_fails_leaves_the_file_as_it_was(path, monkeypatch) -> None:
    monkeypatch.setattr(migrate, "_statements", lambda name: ["create table a (x)", "nonsense"])
    with pytest.raises(StoreUnusable, match="syntax error"):
        started(SQLiteCheckpointer(path))
    monkeypatch.undo()
    with sqlite3.connect(path) as db:
        assert db.execute("select name from sqlite_schema").fetchall() == []
    db.close()
    started(SQLiteCheckpointer(path))


def test_a_store_is_handed_to_another_process_by_its_path(path: Path) -> None:
    store = SQLiteCheckpointer(path, synchronous="NORMAL")
    started(store)
    again = pickle.loads(pickle.dumps(store))
    assert (again.path, again._synchronous) == (path, "NORMAL")
    assert statuses(again) == {"r1": "running"}
    assert repr(store) == f"SQLiteCheckpointer({str(path)!r})"
    with pytest.raises(InvalidInput, match="SQLiteCheckpointer"):
        pickle.dumps(MemoryCheckpointer())


def test_a_path_with_odd_characters_is_a_path(tmp_path: Path) -> None:
    for name in ("a b?mode=ro.sqlite3", "it's #1%20.sqlite3", "名前.sqlite3"):
        store = SQLiteCheckpointer(tmp_path / name)
        started(store)
        assert (tmp_path / name).is_file()
        assert statuses(SQLiteCheckpointer(tmp_path / name)) == {"r1": "running"}


def test_a_copy_of_a_closed_store_is_a_store(path: Path) -> None:
    store = SQLiteCheckpointer(path)
    paused(store)
    store.close()
    shutil.copy(path, path.with_name("copy.sqlite3"))
    assert statuses(SQLiteCheckpointer(path.with_name("copy.sqlite3"))) == {"r1": "paused"}


def test_a_run_that_ended_leaves_little_in_the_write_ahead_log(path: Path) -> None:
    def work() -> str:
        return "x" * 1000

    store = SQLiteCheckpointer(path, synchronous="NORMAL")
    bot(store, [call("work")] * 30 + ["done"], work).run("go")
    assert path.with_name("runs.sqlite3-wal").stat().st_size == 0


def test_an_end_is_written_while_somebody_reads(path: Path) -> None:
    store = SQLiteCheckpointer(path)
    started(store)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("begin")
    reader.execute("select * from entries").fetchall()
    assert bot(store, ["done"]).run("go", execution_id="r2").status == "completed"
    reader.close()


@pytest.mark.parametrize("opener", [open_store, SQLiteCheckpointer])
def test_one_path_is_one_store(path: Path, opener, monkeypatch) -> None:
    monkeypatch.chdir(path.parent)
    assert opener("runs.sqlite3").path == path
    assert open_store("runs.sqlite3") is open_store(path)


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(InvalidInput, match="empty"):
        open_store("")


def test_a_store_in_use_is_the_default_one(path: Path, monkeypatch) -> None:
    monkeypatch.delenv("DURABLE_NB_STORE", raising=False)
    memory = MemoryCheckpointer()
    use_store(memory)
    try:
        assert default_store() is memory
    finally:
        use_store(None)
    monkeypatch.setenv("DURABLE_NB_STORE", str(path))
    assert default_store() is open_store(path)


def test_a_run_of_another_directory_is_what_it_says(path: Path) -> None:
    store = SQLiteCheckpointer(path)
    store.create(a_run(workdir="/data"), OPENING, at=1, writer=1)
    assert store.runs()[0].workdir == "/data"


def test_text_that_is_not_text_is_damage_of_that_row_alone(path: Path) -> None:
    store = SQLiteCheckpointer(path)
    paused(store, "r1", 1)
    paused(store, "r2", 2)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("update entries set body = cast(x'7bff7d' as text) where run = 1 and number = 2")
    with pytest.raises(StoreCorrupt, match="entry 2 of run 'r1'"):
        store.load("r1")
    assert len(store.load("r2").rows) == 3
    assert statuses(store) == {"r1": "paused", "r2": "paused"}
    store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a second user in a child")
def test_a_store_behind_a_closed_directory_says_so(tmp_path: Path) -> None:
    """As another user, since root may go everywhere."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    inner = tmp_path / "in"
    inner.mkdir(mode=0o700)
    store = SQLiteCheckpointer(inner / "runs.sqlite3")
    paused(store)
    store.close()
    readable, writable = os.pipe()
    if (child := os.fork()) == 0:
        os.setuid(65534)
        try:
            SQLiteCheckpointer(inner / "runs.sqlite3").runs()
            said = "nothing"
        except StoreUnusable as error:
            said = str(error)
        os.write(writable, said.encode())
        os._exit(0)
    os.close(writable)
    os.waitpid(child, 0)
    with open(readable) as answer:
        assert "cannot be reached (Permission denied)" in answer.read()


def test_a_store_on_a_network_warns_and_keeps_no_write_ahead_log(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No network here: its name is what is made up."""
    monkeypatch.setattr(migrate, "network_file_system", lambda _: "nfs4")
    store = SQLiteCheckpointer(path)
    with pytest.warns(RuntimeWarning, match=r"nfs4.*local disk"):
        paused(store)
    assert not path.with_name(path.name + "-wal").exists()
    assert statuses(store) == {"r1": "paused"}
    store.close()


def test_whoever_holds_the_store_for_too_long_is_an_error(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SQLiteCheckpointer(path)
    paused(store)
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.2)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        with pytest.raises(StoreBusy, match="locked"):
            started(store, "r2", 2)
    assert statuses(store) == {"r1": "paused"}
    started(store, "r2", 2)
    store.close()


def test_a_name_that_no_file_can_have_is_refused_in_words(tmp_path: Path) -> None:
    store = SQLiteCheckpointer(tmp_path / ("x" * 300))
    for ask in (store.runs, lambda: started(store)):
        with pytest.raises(StoreUnusable, match=r"cannot be reached \(File name too long\)"):
            ask()
    store.close()
