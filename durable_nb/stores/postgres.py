"""Runs in a schema of a PostgreSQL database, for any number of machines (DESIGN section 7)."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

import psycopg
from psycopg_pool import ConnectionPool

from durable_nb.core.nodes import Checkpoint, Pending, checkpoints
from durable_nb.model.codec import Stored, decode, encode
from durable_nb.model.entries import Answer, Entry, Log, Reentry, Row, Run, Turn
from durable_nb.model.errors import DurableError
from durable_nb.model.values import Json, dumps, loads
from durable_nb.stores import refusals
from durable_nb.stores.listing import (
    Newest,
    pending_of,
    run_columns,
    run_from,
    statuses,
    with_status,
)
from durable_nb.stores.pg_session import Connection, Session, Values, prepare
from durable_nb.stores.protocol import Begun, Effect, Kept, Lease, RunRow, RunStatus, Unknown

T = TypeVar("T")

_COLUMNS = "run, frame, number, kind, turn, tool, at, writer, checksum, body"

_OPEN = f"insert into entries ({_COLUMNS}) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"

_APPEND = f"""
insert into entries ({_COLUMNS})
select %s, %s, %s, %s, %s, %s, %s, %s, %s, %s
where %s = (select max(number) from entries where run = %s)
on conflict (run, number) do nothing
"""  # one guarded statement: of all who write number n, one inserts a row

_RUN = """
insert into runs (id, agent, prompt, created, session, fingerprint, workdir, tags, base)
values (%s, %s, %s, %s, %s, %s, %s, %s, %s) on conflict (id) do nothing returning key
"""

_MINE = "select 1 from entries where run = %s and number = %s and writer = %s"

_BEGIN = """
insert into idempotency_cache (run, key, function, number, begun)
select %s, %s, %s, %s, %s where %s = (select max(number) from entries where run = %s)
on conflict (run, key) do update set
  number = excluded.number, begun = excluded.begun, attempts = idempotency_cache.attempts + 1
"""

_KEEP = """
update idempotency_cache set value = %s, kept = %s
where run = %s and key = %s and %s = (select max(number) from entries where run = %s)
"""

_EFFECT = "select begun, kept, value from idempotency_cache where run = %s and key = %s"

_FIND = """
select r.key, r.id, r.agent, r.prompt, r.created, r.session, d.definition, r.fingerprint,
  r.workdir, r.tags, r.base
from runs as r join definitions as d using (fingerprint) where r.id = %s
"""

_LOAD_ROWS = """
select number, frame, kind, turn, tool, at, writer, checksum, body
from entries where run = %s order by number
"""

_NEWEST = "select number, writer, kind from entries where run = %s order by number desc limit 1"

_RUNS = """
select r.id, r.session, r.agent, e.kind,
  case when e.kind = 'end' then e.body::json ->> 'status' end,
  r.prompt, e.number, e.number - r.base, r.created, e.at, r.tags, r.workdir, e.writer
from runs as r
cross join lateral (select * from entries where run = r.key order by number desc limit 1) as e
{where} order by r.key desc
"""

_PENDING = """
select r.id, r.agent, e.number, e.frame, e.kind, e.turn, e.tool, e.at, e.writer, e.checksum, e.body
from entries as p join runs as r on r.key = p.run
join entries as e on e.run = p.run and e.number >= (
  select max(number) from entries where run = p.run and kind = 'tool_call')
where p.kind = 'pause' and p.number = (select max(number) from entries where run = p.run)
order by p.seq, e.number
"""  # for each open pause, the rows of the step that paused

_ENTRIES = """
select e.seq, r.id, r.agent, e.frame, e.number, e.kind, e.turn, e.tool, e.at, e.body
from entries as e join runs as r on r.key = e.run
"""

_SINCE = f"""
{_ENTRIES} where e.seq > %s and (%s::text is null or r.id = %s) order by e.seq
"""

_WAITING = f"""
{_ENTRIES} where e.kind = 'pause' and e.number = (select max(number) from entries where run = e.run)
order by e.seq
"""


class PostgresCheckpointer:
    """A store in a database's `schema`, made on first use. `dsn` is libpq's: a URL or key=value.

    One session of the process holds its locks and appends, so a pooler between must not change
    sessions under it (no transaction pooling). Raises `StoreUnusable` on first use if the database
    cannot be reached, and rides out connections that are lost later.
    """

    def __init__(self, dsn: str, *, schema: str = "durable_nb") -> None:
        self.dsn, self.schema = dsn, schema
        self._session = Session(dsn, schema)
        self._pool: ConnectionPool[Connection] | None = None
        self._pid = os.getpid()

    def __repr__(self) -> str:
        return f"PostgresCheckpointer({self._session.place!r}, schema={self.schema!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _open_again, (self.dsn, self.schema)

    def create(self, run: Run, entry: Turn, *, at: int, writer: int) -> Lease:
        row = Row(run.base + 1, at, writer, entry)
        stored = encode(row)

        def write(db: Connection) -> int:
            with db.transaction():
                db.execute(
                    "insert into definitions values (%s, %s) on conflict do nothing",
                    [run.fingerprint, run.definition],
                )
                inserted = db.execute(_RUN, run_columns(run)).fetchall()
                if not inserted:
                    taken = refusals.exists(run.execution_id)
                    found = db.execute("select key from runs where id = %s", [run.execution_id])
                    return _written(db, found.fetchall()[0][0], row, taken)
                key = int(inserted[0][0])
                self._session.hold(db, writer)
                db.execute(_OPEN, _values(key, stored))
                return key

        return Lease(run.execution_id, self._claimed(writer, write), writer, row.number)

    def claim(
        self,
        execution_id: str,
        entry: Answer | Reentry,
        *,
        after: int,
        at: int,
        writer: int,
        take_over: bool = False,
    ) -> tuple[Lease, Row]:
        row = Row(after + 1, at, writer, entry)
        stored = encode(row)
        key, *_ = self._find(execution_id)

        def write(db: Connection) -> int:
            with db.transaction():
                db.execute("select 1 from runs where key = %s for update", [key])
                newest = db.execute(_NEWEST, [key]).fetchall()
                number, owner, kind = refusals.known(execution_id, newest)
                if number != after:
                    return _written(db, key, row, refusals.stale(execution_id, after))
                at_rest = kind in ("pause", "end")
                if not (take_over or at_rest) and owner in self._session.driven(db):
                    raise refusals.live(execution_id)
                self._session.hold(db, writer)
                db.execute(_OPEN, _values(key, stored))
                return int(key)

        return Lease(execution_id, self._claimed(writer, write), writer, row.number), row

    def append(self, lease: Lease, entry: Entry, *, at: int) -> Row:
        row = Row(lease.number + 1, at, lease.writer, entry, lease.frame)
        values = _values(lease.run, encode(row))

        def write(db: Connection) -> None:
            if not db.execute(_APPEND, [*values, lease.number, lease.run]).rowcount:
                stale = refusals.stale(lease.execution_id, lease.number)
                _written(db, lease.run, row, stale)

        self._session.do(write)
        lease.number = row.number
        return row

    def release(self, lease: Lease) -> None:
        self._session.drop(lease.writer)

    def load(self, execution_id: str) -> Log:
        key, *run = self._find(execution_id)
        while True:
            found = [Stored(*columns) for columns in self._read(_LOAD_ROWS, [key])]
            newest = refusals.known(execution_id, found[-1:])
            live = newest.writer in self._driven()
            if live or self._read(_NEWEST, [key])[0][0] == newest.number:
                rows = tuple(decode(stored, execution_id) for stored in found)
                return Log(run_from(run), rows, live)

    def effect(self, lease: Lease, key: str) -> Effect:
        for begun, kept, value in self._read(_EFFECT, [lease.run, key]):
            return Begun(begun) if kept is None else Kept(loads(value))
        return Unknown()

    def begin(self, lease: Lease, key: str, function: str, *, at: int) -> None:
        guard = [lease.number, lease.run]
        self._guarded(lease, _BEGIN, [lease.run, key, function, lease.number, at, *guard])

    def keep(self, lease: Lease, key: str, value: Json, *, at: int) -> None:
        guard = [lease.number, lease.run]
        self._guarded(lease, _KEEP, [dumps(value), at, lease.run, key, *guard])

    def runs(self) -> Sequence[RunStatus]:
        return statuses(self.run_rows())

    def list_pending_interrupts(self) -> Sequence[Pending]:
        steps = groupby(self._read(_PENDING), key=itemgetter(0, 1))
        return [
            pending_of(execution_id, agent, (Stored(*columns[2:]) for columns in step))
            for (execution_id, agent), step in steps
        ]

    def list(self, execution_id: str) -> Sequence[Checkpoint]:
        return checkpoints(self.load(execution_id))

    def get_last(self, execution_id: str) -> Checkpoint:
        return self.list(execution_id)[-1]

    def close(self) -> None:
        self._session.close()
        if self._pool is not None and self._pid == os.getpid():
            self._pool.close()

    def stamp(self) -> object:
        return tuple(self._read("select max(seq) from entries")), frozenset(self._driven())

    def entry_rows(
        self, *, after: int = 0, execution_id: str | None = None
    ) -> Iterable[tuple[Any, ...]]:
        return self._read(_SINCE, [after, execution_id, execution_id])

    def waiting_rows(self) -> Iterable[tuple[Any, ...]]:
        return self._read(_WAITING)

    def run_rows(self) -> Sequence[RunRow]:
        runs = [Newest(*row) for row in self._read(_RUNS.format(where=""))]
        return with_status(runs, self._driven, self._newest_of)

    def _newest_of(self, execution_ids: Sequence[str]) -> Sequence[Newest]:
        query = _RUNS.format(where="where r.id = any(%s)")
        return [Newest(*row) for row in self._read(query, [list(execution_ids)])]

    def _find(self, execution_id: str) -> tuple[Any, ...]:
        try:
            found = self._read(_FIND, [execution_id])
        except (UnicodeEncodeError, psycopg.DataError):  # text that no store can hold
            found = []
        return refusals.known(execution_id, found)

    def _driven(self) -> Collection[int]:
        return self._reading(self._session.driven)

    def _read(self, statement: str, values: Values = ()) -> Sequence[tuple[Any, ...]]:
        return self._reading(lambda db: db.execute(statement, values).fetchall())

    def _reading(self, action: Callable[[Connection], T]) -> T:
        """Perform `action` on a connection of the pool's, outside of any transaction."""
        try:
            with self._open_pool().connection() as db:
                return action(db)
        except psycopg.DataError:
            raise
        except psycopg.Error as error:
            raise self._session.ours(error) from error

    def _open_pool(self) -> ConnectionPool[Connection]:
        self._session.refuse_if_closed()
        if self._pool is None or self._pid != os.getpid():
            _inherited.append(self._pool)
            self._session.try_out()
            self._pid = os.getpid()
            self._pool = ConnectionPool(
                self.dsn,
                min_size=0,
                max_size=4,
                kwargs={"autocommit": True},
                configure=lambda db: prepare(db, self.schema),
                check=ConnectionPool.check_connection,
                open=True,
            )
        return self._pool

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


def _written(db: Connection, run: int, row: Row, refusal: DurableError) -> int:
    """The run's key if the row is there after all, from a first try whose commit was not heard of
    when the connection broke; else the refusal."""
    if db.execute(_MINE, [run, row.number, row.writer]).fetchone() is None:
        raise refusal
    return run


def _values(run: int, s: Stored) -> Values:
    return run, s.frame, s.number, s.kind, s.turn, s.tool, s.at, s.writer, s.checksum, s.body


_inherited: list[object] = []  # a parent's pools: a forked child must not even close them
