"""What is read of a PostgreSQL store, on a pool of connections and outside of any transaction."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg_pool import ConnectionPool

from durable_nb.stores.listing import Newest, session_of, with_status
from durable_nb.stores.pg_session import Connection, Values, prepare
from durable_nb.stores.pg_session import Session as LockSession
from durable_nb.stores.protocol import RunRow, Session

T = TypeVar("T")

RUNS = """
select r.id, r.session, r.agent, e.kind,
  substring(e.body from '^{{"v":[0-9]+,"status":"([a-z]+)"'),
  r.prompt, e.number, e.number - r.base, r.created, e.at, r.tags, r.workdir, r.parent, e.writer
from runs as r
cross join lateral (select * from entries where run = r.key order by number desc limit 1) as e
{where} order by r.key desc
"""

_SESSIONS = """
select s.session, s.runs, f.created, f.prompt, n.id
from (
  select session, count(*) as runs, min(key) as first, max(key) as newest
  from runs group by session order by max(key) desc limit %s offset %s) as s
join runs as f on f.key = s.first join runs as n on n.key = s.newest
order by s.newest desc
"""

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

    def driven(self) -> Collection[int]:
        """The claims whose owners live."""
        return self._reading(self._session.driven)

    def stamp(self) -> object:
        changed = self.read("select max(seq), (select count from removals) from entries")
        return tuple(changed), frozenset(self.driven())

    def removals(self) -> int:
        return sum(count for (count,) in self.read("select count from removals"))

    def entry_rows(self, after: int, execution_id: str | None) -> Iterable[tuple[Any, ...]]:
        return self.read(_SINCE, [after, execution_id, execution_id])

    def waiting_rows(self) -> Iterable[tuple[Any, ...]]:
        return self.read(_WAITING)

    def run_rows(self) -> Sequence[RunRow]:
        runs = [Newest(*row) for row in self.read(RUNS.format(where=""))]
        return with_status(runs, self.driven, self._newest_of)

    def sessions(self, limit: int | None, offset: int) -> Sequence[Session]:
        found = self.read(_SESSIONS, [limit, offset])
        newest = with_status(
            self._newest_of([row[-1] for row in found]), self.driven, self._newest_of
        )
        by_id = {row.execution_id: row for row in newest}
        return [
            session_of(session, runs, created, prompt, by_id[newest_id])
            for session, runs, created, prompt, newest_id in found
        ]

    def close(self) -> None:
        if self._pool is not None and self._pid == os.getpid():
            self._pool.close()

    def _newest_of(self, execution_ids: Sequence[str]) -> Sequence[Newest]:
        query = RUNS.format(where="where r.id = any(%s)")
        return [Newest(*row) for row in self.read(query, [list(execution_ids)])]

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


_inherited: list[object] = []  # a parent's pools: a forked child must not even close them
