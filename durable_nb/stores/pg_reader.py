"""What a PostgreSQL store does beside its appends, on a pool of connections: reading, outside of any
transaction, and what its outbox writes, in one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg_pool import ConnectionPool

from durable_nb.stores import tables
from durable_nb.stores.listing import Newest, run_rows, with_status
from durable_nb.stores.pg_session import Connection, Values, prepare
from durable_nb.stores.pg_session import Session as LockSession
from durable_nb.stores.protocol import RunRow, Session

T = TypeVar("T")

PART = 20_000  # rows that are fetched at a time

_STAMP = """
select newest.xid,
  case when pg_snapshot_xmin(pg_current_snapshot())::text::bigint <= newest.xid
    then pg_current_snapshot()::text end,
  (select count from removals),
  (select sum(attempts) from idempotency_cache), (select count(kept) from idempotency_cache)
from (select max(xid) as xid from entries) as newest
"""  # while somebody writes who began before the newest row, each transaction's end may bring rows

_SETTLED = "select pg_snapshot_xmin(pg_current_snapshot())::text::bigint"

_SINCE = f"{tables.entry_rows('xid', 'e.xid >= ?')} order by e.xid, e.run, e.number"

_OF_ONE = f"""
{tables.entry_rows("xid", "e.run = (select key from runs where id = ?) and e.xid >= ?")}
order by e.number
"""


def with_marks(query: str) -> str:
    """A query of `tables` with psycopg's marks for values."""
    return query.replace("%", "%%").replace("?", "%s")


class _Lost(psycopg.OperationalError):
    """The connection broke in the middle of a query."""


class PostgresReader:
    """`protocol.Readable` for a schema. `session` says which claims are driven."""

    def __init__(self, dsn: str, schema: str, session: LockSession) -> None:
        self._dsn, self._schema, self._session = dsn, schema, session
        self._pool: ConnectionPool[Connection] | None = None
        self._pid = os.getpid()

    def read(self, statement: str, values: Values = ()) -> Sequence[tuple[Any, ...]]:
        """All rows of a query. Raises `psycopg.DataError` for values that no column can hold."""
        return self._reading(lambda db: db.execute(statement, values).fetchall())

    def write(self, action: Callable[[tables.Read], None]) -> None:
        """Do it in one transaction that keeps no append waiting: not on the session that appends.
        It is done again where its connection is lost."""

        def once(db: Connection) -> None:
            with db.transaction():
                action(partial(_execute, db))

        try:
            self._reading(once)
        except psycopg.DataError as error:
            raise self._session.ours(error) from error

    def driven(self) -> Collection[int]:
        """The claims whose owners live."""
        return self._reading(self._session.driven)

    def stamp(self) -> object:
        return self.read(_STAMP), frozenset(self.driven())

    def removals(self) -> int:
        return sum(count for (count,) in self.read("select count from removals"))

    def settled(self) -> int:
        """The oldest transaction that is at work: all before it are committed, or undone."""
        return sum(xmin for (xmin,) in self.read(_SETTLED))

    def entry_rows(self, since: int, execution_id: str | None) -> Iterable[tuple[Any, ...]]:
        if execution_id is not None:
            return self._shared(_OF_ONE, [execution_id, since])
        return self._stream(with_marks(_SINCE), [since])

    def waiting_rows(self) -> Iterable[tuple[Any, ...]]:
        return self._shared(tables.waiting_rows("xid"))

    def effect_rows(self, execution_id: str | None) -> Sequence[tuple[Any, ...]]:
        return tables.effect_rows(self._shared, execution_id)

    def run_rows(self) -> Sequence[tuple[Any, ...]]:
        return run_rows(self._shared(tables.RUN_ROWS), self.driven, self._newest_of)

    def sessions(self, limit: int | None, offset: int) -> Sequence[Session]:
        return tables.sessions(self._shared, limit, offset, self._statuses)

    def close(self) -> None:
        if self._pool is not None and self._pid == os.getpid():
            self._pool.close()

    def _statuses(self, execution_ids: Sequence[str]) -> Sequence[RunRow]:
        return with_status(self._newest_of(execution_ids), self.driven, self._newest_of)

    def _newest_of(self, execution_ids: Sequence[str]) -> Sequence[Newest]:
        query = tables.newest("where r.id = any(?)")
        return [Newest(*row) for row in self._shared(query, [list(execution_ids)])]

    def _shared(self, query: str, values: Values = ()) -> Sequence[tuple[Any, ...]]:
        return self.read(with_marks(query), values)

    def _stream(self, statement: str, values: Values) -> Iterator[tuple[Any, ...]]:
        """The rows of a long answer, all of one moment, a part at a time."""
        try:
            with self._open_pool().connection() as db, db.transaction(), db.cursor("rows") as rows:
                rows.itersize = PART
                yield from rows.execute(statement, values)
        except psycopg.Error as error:
            raise self._session.ours(error) from error

    def _reading(self, action: Callable[[Connection], T]) -> T:
        """What `action` reads, on another connection where the first turns out to be lost."""
        try:
            try:
                return self._once(action)
            except _Lost:
                return self._once(action)
        except psycopg.DataError:
            raise
        except psycopg.Error as error:
            raise self._session.ours(error) from error

    def _once(self, action: Callable[[Connection], T]) -> T:
        with self._open_pool().connection() as db:
            try:
                return action(db)
            except psycopg.OperationalError as error:
                if db.closed:
                    raise _Lost(*error.args) from error
                raise

    def _open_pool(self) -> ConnectionPool[Connection]:
        self._session.refuse_if_closed()
        if self._pool is None or self._pid != os.getpid():
            self._session.do(self._make_pool)  # connects first: a pool would wait long in vain
        assert self._pool is not None
        return self._pool

    def _make_pool(self, _connected: Connection) -> None:
        """Make the pool, once however many threads ask: the session does one thing at a time."""
        if self._pool is not None and self._pid == os.getpid():
            return
        _inherited.append(self._pool)
        self._pid = os.getpid()
        self._pool = ConnectionPool(
            self._dsn,
            min_size=0,
            max_size=4,
            kwargs={"autocommit": True},
            configure=lambda db: prepare(db, self._schema),
            check=ConnectionPool.check_connection,
            open=True,
        )


def _execute(
    db: Connection, statement: str, values: Sequence[object] = ()
) -> Sequence[tuple[Any, ...]]:
    cursor = db.execute(with_marks(statement), values)
    return cursor.fetchall() if cursor.description else []


_inherited: list[object] = []  # a parent's pools: a forked child must not even close them
