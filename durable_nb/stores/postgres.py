"""Runs in a schema of a PostgreSQL database, for any number of machines (DESIGN section 7)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta
from typing import Any

import psycopg

from durable_nb.core.nodes import Checkpoint, Pending, checkpoints
from durable_nb.core.retain import prunable
from durable_nb.model.codec import Stored, encode
from durable_nb.model.entries import Answer, End, Entry, Log, Reentry, Row, Run
from durable_nb.model.errors import DurableError
from durable_nb.model.values import Json, dumps
from durable_nb.stores import refusals, tables
from durable_nb.stores.listing import (
    Newest,
    candidates,
    refuse_removal,
    statuses,
)
from durable_nb.stores.logs import opening_rows
from durable_nb.stores.outbox import TableOutbox
from durable_nb.stores.pg_reader import PostgresReader, with_marks
from durable_nb.stores.pg_session import Connection, Values
from durable_nb.stores.pg_session import Session as LockSession
from durable_nb.stores.protocol import (
    Branch,
    Effect,
    EffectRow,
    Lease,
    RunStatus,
    Session,
)
from durable_nb.stores.upkeep import cancel, check_page, cutoff

_OPEN = f"insert into entries ({tables.ENTRY}) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"

_APPEND = f"""
insert into entries ({tables.ENTRY})
select %s, %s, %s, %s, %s, %s, %s, %s, %s, %s
where %s = (select max(number) from entries where run = %s)
on conflict (run, number) do nothing
"""  # one guarded statement: of all who write number n, one inserts a row

_RUN = f"""
insert into runs ({tables.RUN})
values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) on conflict (id) do nothing returning key
"""

_DEFINE = "insert into definitions values (%s, %s) on conflict do nothing"

_MINE = "select 1 from entries where run = %s and number = %s and writer = %s"

_BEGIN = """
insert into idempotency_cache (run, key, function, number, begun)
select %s, %s, %s, %s, %s where %s = (select max(number) from entries where run = %s)
on conflict (run, key) do update set
  number = excluded.number, begun = excluded.begun, attempts = idempotency_cache.attempts
    + ((idempotency_cache.number, idempotency_cache.begun) <> (excluded.number, excluded.begun))::int
"""  # the same attempt twice: its first mark was written, and the answer was lost on the way

_KEEP = """
update idempotency_cache set value = %s, kept = %s
where run = %s and key = %s and %s = (select max(number) from entries where run = %s)
"""

_REMOVE = (
    "delete from idempotency_cache where run in (select key from runs where id = any(%s))",
    "delete from entries where run in (select key from runs where id = any(%s))",
    "delete from runs where id = any(%s)",
)


_NEWEST = with_marks(tables.NEWEST)


class PostgresCheckpointer:
    """A store in a database's `schema`, made on first use. `dsn` is libpq's: a URL or key=value.

    One session of the process holds its locks and appends, so a pooler between must not change
    sessions under it (no transaction pooling). Raises `StoreUnusable` on first use if the database
    cannot be reached, and rides out connections that are lost later.
    """

    def __init__(self, dsn: str, *, schema: str = "durable_nb") -> None:
        self.dsn, self.schema = dsn, schema
        self._session = LockSession(dsn, schema)
        self._reader = PostgresReader(dsn, schema, self._session)
        self.outbox = TableOutbox(
            "xid", self._reader, self._read, self._reader.write, self._reader.driven
        )

    def __repr__(self) -> str:
        return f"PostgresCheckpointer({self._session.place!r}, schema={self.schema!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _open_again, (self.dsn, self.schema)

    def create(self, run: Run, *opening: Entry, at: int, writer: int) -> Lease:
        stored = opening_rows(run, opening, at=at, writer=writer)

        def write(db: Connection) -> int:
            with db.transaction():
                db.execute(_DEFINE, [run.fingerprint, run.definition])
                inserted = db.execute(_RUN, tables.run_values(run)).fetchall()
                if not inserted:
                    taken = refusals.exists(run.execution_id)
                    found = db.execute("select key from runs where id = %s", [run.execution_id])
                    return _written(db, found.fetchall()[0][0], stored[0], taken)
                key = int(inserted[0][0])
                self._session.hold(db, writer)
                for each in stored:
                    db.execute(_OPEN, tables.entry_values(key, each))
                return key

        return Lease(run.execution_id, self._claimed(writer, write), writer, stored[-1].number)

    def claim(
        self,
        execution_id: str,
        entry: Answer | Reentry | End,
        *,
        after: int,
        at: int,
        writer: int,
        take_over: bool = False,
        definition: str = "",
    ) -> tuple[Lease, Row]:
        row = Row(after + 1, at, writer, entry)
        stored = encode(row)
        key, _ = tables.find(self._read, execution_id)

        def write(db: Connection) -> int:
            with db.transaction():
                db.execute("select 1 from runs where key = %s for update", [key])
                newest = db.execute(_NEWEST, [key]).fetchall()
                number, owner, kind = refusals.known(execution_id, newest)
                if number != after:
                    return _written(db, key, stored, refusals.stale(execution_id, after))
                at_rest = kind in ("pause", "end")
                if not (take_over or at_rest) and owner in self._session.driven(db):
                    raise refusals.live(execution_id)
                if not isinstance(entry, End) and entry.fingerprint:
                    db.execute(_DEFINE, [entry.fingerprint, definition])
                self._session.hold(db, writer)
                db.execute(_OPEN, tables.entry_values(key, stored))
                return int(key)

        return Lease(execution_id, self._claimed(writer, write), writer, row.number), row

    def append(self, lease: Lease, entry: Entry, *, at: int) -> Row:
        row = Row(lease.number + 1, at, lease.writer, entry, lease.frame)
        stored = encode(row)
        values = tables.entry_values(lease.run, stored)

        def write(db: Connection) -> None:
            if not db.execute(_APPEND, [*values, lease.number, lease.run]).rowcount:
                stale = refusals.stale(lease.execution_id, lease.number)
                _written(db, lease.run, stored, stale)

        self._session.do(write)
        lease.number = row.number
        return row

    def release(self, lease: Lease) -> None:
        self._session.drop(lease.writer)

    def load(self, execution_id: str) -> Log:
        return tables.load(self._read, execution_id, self._reader.driven)

    def effect(self, lease: Lease, key: str) -> Effect:
        return tables.effect(self._read, lease, key)

    def begin(self, lease: Lease, key: str, function: str, *, at: int) -> None:
        guard = [lease.number, lease.run]
        self._guarded(lease, _BEGIN, [lease.run, key, function, lease.number, at, *guard])

    def keep(self, lease: Lease, key: str, value: Json, *, at: int) -> None:
        guard = [lease.number, lease.run]
        self._guarded(lease, _KEEP, [dumps(value), at, lease.run, key, *guard])

    def runs(self) -> Sequence[RunStatus]:
        return statuses(self.run_rows())

    def list_pending_interrupts(self) -> Sequence[Pending]:
        return tables.pending(self._read, self.load)

    def list(self, execution_id: str) -> Sequence[Checkpoint]:
        return checkpoints(self.load(execution_id))

    def get_last(self, execution_id: str) -> Checkpoint:
        return self.list(execution_id)[-1]

    def effects(self, execution_id: str) -> Sequence[EffectRow]:
        return tables.effects(self._read, execution_id)

    def session(self, execution_id: str) -> Sequence[str]:
        return tables.session(self._read, execution_id)

    def branches(self, execution_id: str) -> Sequence[Branch]:
        return tables.branches(self._read, execution_id)

    def sessions(self, *, limit: int | None = None, offset: int = 0) -> Sequence[Session]:
        check_page(limit, offset)
        return self._reader.sessions(limit, offset)

    def cancel(self, execution_id: str, *, by: str | None = None) -> None:
        cancel(self, execution_id, by)

    def delete_execution(self, execution_id: str) -> None:
        tables.find(self._read, execution_id)

        def remove(db: Connection) -> None:
            with db.transaction():
                refuse_removal(execution_id, _all(db), self._session.driven(db))
                _remove(db, [execution_id])

        self._session.do(remove)

    def prune(
        self,
        older_than: timedelta | float,
        *,
        tags: Collection[str] = (),
        status: str | None = None,
        dry_run: bool = False,
    ) -> Sequence[str]:
        before = cutoff(older_than)

        def remove(db: Connection) -> Sequence[str]:
            with db.transaction():
                gone = prunable(candidates(_all(db)), before=before, tags=tags, status=status)
                if gone and not dry_run:
                    _remove(db, gone)
                return gone

        return self._session.do(remove)

    def close(self) -> None:
        self._session.close()
        self._reader.close()

    def stamp(self) -> object:
        return self._reader.stamp()

    def removals(self) -> int:
        return self._reader.removals()

    def settled(self) -> int:
        return self._reader.settled()

    def entry_rows(
        self, *, since: int = 0, execution_id: str | None = None
    ) -> Iterable[tuple[Any, ...]]:
        return self._reader.entry_rows(since, execution_id)

    def waiting_rows(self) -> Iterable[tuple[Any, ...]]:
        return self._reader.waiting_rows()

    def effect_rows(self, execution_id: str | None = None) -> Iterable[tuple[Any, ...]]:
        return self._reader.effect_rows(execution_id)

    def run_rows(self) -> Sequence[tuple[Any, ...]]:
        return self._reader.run_rows()

    def _read(self, query: str, values: Values = ()) -> Sequence[tuple[Any, ...]]:
        """All rows of one of the queries in `tables`."""
        try:
            return self._reader.read(with_marks(query), values)
        except psycopg.DataError as error:
            raise ValueError("no column can hold this text") from error

    def _guarded(self, lease: Lease, statement: str, values: Values) -> None:
        if not self._session.change(statement, values):
            raise refusals.stale(lease.execution_id, lease.number)

    def _claimed(self, writer: int, write: Callable[[Connection], int]) -> int:
        try:
            return self._session.do(write)
        except BaseException:
            self._session.drop(writer)
            raise


def _open_again(dsn: str, schema: str) -> PostgresCheckpointer:
    return PostgresCheckpointer(dsn, schema=schema)


def _all(db: Connection) -> Sequence[Newest]:
    """All runs, newest first, none of which can be claimed or joined until the transaction ends."""
    db.execute("lock table runs in exclusive mode")
    return [Newest(*row) for row in db.execute(with_marks(tables.newest()), []).fetchall()]


def _remove(db: Connection, execution_ids: Sequence[str]) -> None:
    for statement in _REMOVE:
        db.execute(statement, [list(execution_ids)])
    db.execute("update removals set count = count + 1")


def _written(db: Connection, run: int, row: Stored, refusal: DurableError) -> int:
    """The run's key if the row is there after all, from a first try whose commit was not heard of
    when the connection broke; else the refusal."""
    if db.execute(_MINE, [run, row.number, row.writer]).fetchone() is None:
        raise refusal
    return run
