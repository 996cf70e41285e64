"""Runs in a schema of a PostgreSQL database, for any number of machines (DESIGN section 7)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

import psycopg

from durable_nb.core.nodes import Checkpoint, Pending, checkpoints
from durable_nb.core.retain import prunable
from durable_nb.model.codec import Stored, encode
from durable_nb.model.entries import Answer, End, Entry, Log, Reentry, Row, Run
from durable_nb.model.errors import DurableError
from durable_nb.model.values import Json, dumps, loads
from durable_nb.stores import refusals
from durable_nb.stores.listing import (
    MAX_NUMBER,
    Newest,
    candidates,
    effect_row,
    fingerprint_of,
    history,
    pending_of,
    refuse_removal,
    run_columns,
    run_from,
    statuses,
)
from durable_nb.stores.pg_reader import RUNS, PostgresReader
from durable_nb.stores.pg_session import Connection, Values
from durable_nb.stores.pg_session import Session as LockSession
from durable_nb.stores.protocol import (
    Begun,
    Effect,
    EffectRow,
    Kept,
    Lease,
    RunRow,
    RunStatus,
    Session,
    Unknown,
)
from durable_nb.stores.upkeep import cancel, cutoff

_COLUMNS = "run, frame, number, kind, turn, tool, at, writer, checksum, body"

_OPEN = f"insert into entries ({_COLUMNS}) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"

_APPEND = f"""
insert into entries ({_COLUMNS})
select %s, %s, %s, %s, %s, %s, %s, %s, %s, %s
where %s = (select max(number) from entries where run = %s)
on conflict (run, number) do nothing
"""  # one guarded statement: of all who write number n, one inserts a row

_RUN = """
insert into runs (id, agent, prompt, created, session, fingerprint, workdir, tags, parent, base)
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

_EFFECT = "select begun, number, kept, value from idempotency_cache where run = %s and key = %s"

_EFFECTS = """
select function, key, attempts, begun, kept from idempotency_cache where run = %s order by begun
"""

_FIND = """
select r.key, r.id, r.agent, r.prompt, r.created, r.session, d.definition, r.fingerprint,
  r.workdir, r.tags, r.parent, r.base
from runs as r join definitions as d using (fingerprint) where r.id = %s
"""

_LOAD_ROWS = """
select number, frame, kind, turn, tool, at, writer, checksum, body
from entries where run = %s and number <= %s order by number
"""

_NEWEST = "select number, writer, kind from entries where run = %s order by number desc limit 1"

_SESSION = """
select id from runs where session = (select session from runs where id = %s) order by key
"""

_REMOVE = (
    "delete from idempotency_cache where run in (select key from runs where id = any(%s))",
    "delete from entries where run in (select key from runs where id = any(%s))",
    "delete from runs where id = any(%s)",
)

_PENDING = """
select r.id, r.agent, e.number, e.frame, e.kind, e.turn, e.tool, e.at, e.writer, e.checksum, e.body
from entries as p join runs as r on r.key = p.run
join entries as e on e.run = p.run and e.number >= coalesce((
  select max(number) from entries where run = p.run and kind = 'tool_call'), 0)
where p.kind = 'pause' and p.number = (select max(number) from entries where run = p.run)
order by p.seq, e.number
"""  # for each open pause, the rows of the step that paused


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

    def __repr__(self) -> str:
        return f"PostgresCheckpointer({self._session.place!r}, schema={self.schema!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _open_again, (self.dsn, self.schema)

    def create(self, run: Run, *opening: Entry, at: int, writer: int) -> Lease:
        rows = [
            Row(number, at, writer, entry)
            for number, entry in enumerate(opening, start=run.base + 1)
        ]
        stored = [encode(row) for row in rows]

        def write(db: Connection) -> int:
            with db.transaction():
                db.execute(_DEFINE, [run.fingerprint, run.definition])
                inserted = db.execute(_RUN, run_columns(run)).fetchall()
                if not inserted:
                    taken = refusals.exists(run.execution_id)
                    found = db.execute("select key from runs where id = %s", [run.execution_id])
                    return _written(db, found.fetchall()[0][0], rows[0], taken)
                key = int(inserted[0][0])
                self._session.hold(db, writer)
                for each in stored:
                    db.execute(_OPEN, _values(key, each))
                return key

        return Lease(run.execution_id, self._claimed(writer, write), writer, rows[-1].number)

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
                if not isinstance(entry, End) and entry.fingerprint:
                    db.execute(_DEFINE, [entry.fingerprint, definition])
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
        key, *columns = self._find(execution_id)
        run = run_from(columns)
        while True:
            own = self._rows(key)
            newest = refusals.known(execution_id, own[-1:])
            live = newest.writer in self._reader.driven()
            if live or self._reader.read(_NEWEST, [key])[0][0] == newest.number:
                rows = history(run, own, self._parent)
                return Log(run, rows, live, self._definition(run, rows))

    def effect(self, lease: Lease, key: str) -> Effect:
        for begun, number, kept, value in self._reader.read(_EFFECT, [lease.run, key]):
            return Begun(begun, number) if kept is None else Kept(loads(value))
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
        steps = groupby(self._reader.read(_PENDING), key=itemgetter(0, 1))
        return [
            pending_of(execution_id, agent, (Stored(*row[2:]) for row in step), self.load)
            for (execution_id, agent), step in steps
        ]

    def list(self, execution_id: str) -> Sequence[Checkpoint]:
        return checkpoints(self.load(execution_id))

    def get_last(self, execution_id: str) -> Checkpoint:
        return self.list(execution_id)[-1]

    def effects(self, execution_id: str) -> Sequence[EffectRow]:
        key, *_ = self._find(execution_id)
        return [effect_row(*columns) for columns in self._reader.read(_EFFECTS, [key])]

    def session(self, execution_id: str) -> Sequence[str]:
        self._find(execution_id)
        return [id_ for (id_,) in self._reader.read(_SESSION, [execution_id])]

    def sessions(self, *, limit: int | None = None, offset: int = 0) -> Sequence[Session]:
        return self._reader.sessions(limit, offset)

    def cancel(self, execution_id: str, *, by: str | None = None) -> None:
        cancel(self, execution_id, by)

    def delete_execution(self, execution_id: str) -> None:
        self._find(execution_id)

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

    def entry_rows(
        self, *, after: int = 0, execution_id: str | None = None
    ) -> Iterable[tuple[Any, ...]]:
        return self._reader.entry_rows(after, execution_id)

    def waiting_rows(self) -> Iterable[tuple[Any, ...]]:
        return self._reader.waiting_rows()

    def run_rows(self) -> Sequence[RunRow]:
        return self._reader.run_rows()

    def _rows(self, key: int, upto: int = MAX_NUMBER) -> Sequence[Stored]:
        return [Stored(*columns) for columns in self._reader.read(_LOAD_ROWS, [key, upto])]

    def _parent(self, execution_id: str, upto: int) -> tuple[Run, Sequence[Stored]]:
        key, *columns = self._find(execution_id)
        return run_from(columns), self._rows(key, upto)

    def _definition(self, run: Run, rows: Sequence[Row]) -> str:
        fingerprint = fingerprint_of(run, rows)
        if fingerprint == run.fingerprint:
            return run.definition
        query = "select definition from definitions where fingerprint = %s"
        return str(self._reader.read(query, [fingerprint])[0][0])

    def _find(self, execution_id: str) -> tuple[Any, ...]:
        if not isinstance(execution_id, str):
            raise refusals.unknown(execution_id)
        try:
            found = self._reader.read(_FIND, [execution_id])
        except (UnicodeEncodeError, psycopg.DataError):  # text that no store can hold
            found = []
        return refusals.known(execution_id, found)

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
    return [Newest(*row) for row in db.execute(RUNS.format(where="")).fetchall()]


def _remove(db: Connection, execution_ids: Sequence[str]) -> None:
    for statement in _REMOVE:
        db.execute(statement, [list(execution_ids)])
    db.execute("update removals set count = count + 1")


def _written(db: Connection, run: int, row: Row, refusal: DurableError) -> int:
    """The run's key if the row is there after all, from a first try whose commit was not heard of
    when the connection broke; else the refusal."""
    if db.execute(_MINE, [run, row.number, row.writer]).fetchone() is None:
        raise refusal
    return run


def _values(run: int, s: Stored) -> Values:
    return run, s.frame, s.number, s.kind, s.turn, s.tool, s.at, s.writer, s.checksum, s.body
