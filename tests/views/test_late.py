"""Of two writers on PostgreSQL the one that began first may commit last. Explorers miss nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from durable_nb import Message, PostgresCheckpointer, SQLiteCheckpointer, views
from durable_nb.model.codec import encode
from durable_nb.model.entries import End, Row, Run, Turn
from durable_nb.stores.tables import ENTRY, entry_values
from durable_nb.views.mirror import mirror_of
from tests.support.postgres import postgres
from tests.views.runs import Counting, a_run_of_every_status, bot

HELLO = Turn(0, (Message("user", "Hello"),))
ALL = "select execution_id, number from steps order by all"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PostgresCheckpointer]:
    store = postgres(tmp_path)
    yield store
    store.close()


def begun(store: PostgresCheckpointer, execution_id: str, writer: int) -> int:
    """A run with its first entry; its key."""
    run = Run(execution_id, "bot", "Hello", 1, execution_id)
    return store.create(run, HELLO, at=1, writer=writer).run


@contextmanager
def slow(store: PostgresCheckpointer, key: int, writer: int) -> Iterator[psycopg.Connection]:
    """A transaction that has written a run's entry 2, and is not committed yet."""
    entry = encode(Row(2, 2, writer, End(1, "completed", "late")))
    marks = ", ".join(["%s"] * 10)
    with psycopg.connect(store.dsn) as db:
        db.execute(sql.SQL("set search_path to {}").format(sql.Identifier(store.schema)))
        db.execute(f"insert into entries ({ENTRY}) values ({marks})", entry_values(key, entry))
        yield db


def seen(store: object) -> list[tuple[str, int]]:
    frame = views.sql(ALL, store=store)
    return list(zip(frame.execution_id, frame.number, strict=True))


def test_what_commits_late_is_taken_although_later_rows_were_seen(
    store: PostgresCheckpointer,
) -> None:
    key = begun(store, "slow", writer=1)
    with slow(store, key, writer=1) as late:
        begun(store, "quick", writer=2)  # a higher seq, and it is committed first
        assert seen(store) == [("quick", 1), ("slow", 1)]
        assert seen(store) == [("quick", 1), ("slow", 1)]
        late.commit()
    assert seen(store) == [("quick", 1), ("slow", 1), ("slow", 2)]
    assert list(views.runs(store=store).status) == ["running", "completed"]


def test_what_is_undone_is_never_seen_and_hides_nothing(store: PostgresCheckpointer) -> None:
    key = begun(store, "slow", writer=1)
    with slow(store, key, writer=1) as late:
        begun(store, "quick", writer=2)
        seen(store)
        late.rollback()
    begun(store, "last", writer=3)
    assert seen(store) == [("last", 1), ("quick", 1), ("slow", 1)]


def test_rows_that_are_settled_are_not_taken_again(store: PostgresCheckpointer) -> None:
    a_run_of_every_status(store)
    counting = Counting(store)
    taken = len(seen(counting))
    assert counting.entries == taken
    key = begun(store, "slow", writer=1)
    with slow(store, key, writer=1) as late:
        begun(store, "quick", writer=2)
        seen(counting)
        late.commit()
    seen(counting)
    seen(counting)
    assert counting.entries <= taken + 2 + 3  # the rows of slow and quick, most of them twice
    elsewhere = PostgresCheckpointer(store.dsn, schema=store.schema)
    assert seen(counting) == seen(elsewhere)
    elsewhere.close()


def test_while_a_transaction_is_open_every_query_sees_what_is_committed(
    store: PostgresCheckpointer,
) -> None:
    key = begun(store, "slow", writer=1)
    with slow(store, key, writer=1):
        for n in range(3):
            bot(store, "Hello.").run("Hello", execution_id=f"run-{n}")
            assert len(seen(store)) == 1 + 2 * (n + 1)


def test_rows_that_are_removed_and_rows_that_come_late_are_both_heeded(
    store: PostgresCheckpointer,
) -> None:
    a_run_of_every_status(store)
    seen(store)
    key = begun(store, "slow", writer=1)
    with slow(store, key, writer=1) as late:
        begun(store, "quick", writer=2)
        seen(store)
        late.commit()
    store.delete_execution("small")
    assert "small" not in {id_ for id_, _ in seen(store)}
    assert {("slow", 2), ("quick", 1)} <= set(seen(store))


def test_an_old_schema_is_brought_up_to_date_with_all_its_rows(
    store: PostgresCheckpointer,
) -> None:
    a_run_of_every_status(store)
    before = seen(store)
    with psycopg.connect(store.dsn) as db:
        db.execute(sql.SQL("set search_path to {}").format(sql.Identifier(store.schema)))
        db.execute("alter table entries drop column xid")
        db.execute("drop table outbox, outbox_effects")
        db.execute("delete from migrations where version >= 2")
    again = PostgresCheckpointer(store.dsn, schema=store.schema)
    assert seen(again) == before
    bot(again, "Hello.").run("Hello", execution_id="new")
    assert len(seen(again)) == len(before) + 2
    again.close()


def test_a_mirror_that_was_interrupted_takes_all_the_next_time(tmp_path: Path) -> None:
    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
    a_run_of_every_status(store)

    class Interrupted(Counting):
        def entry_rows(self, **given: object) -> Iterator[tuple[object, ...]]:
            yield from list(super().entry_rows(**given))[:5]
            raise KeyboardInterrupt

    interrupted = Interrupted(store)
    with pytest.raises(KeyboardInterrupt):
        mirror_of(interrupted).take(interrupted)
    interrupted.__class__ = Counting
    assert seen(interrupted) == seen(store)
