"""What explorers read of a SQLite store: connections that cannot write, and short transactions.

A long answer is fetched in parts, each a transaction of its own: a reader that stays in one keeps
the write-ahead log from being cut (DESIGN R10).
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any

from durable_nb.model.values import dumps
from durable_nb.stores.listing import Newest, session_of, with_status
from durable_nb.stores.migrate import MIGRATIONS, check
from durable_nb.stores.protocol import RunRow, Session
from durable_nb.stores.sqlite_file import SQLiteFile, Values

PART = 20_000  # rows: some 0.1 s, so that an interrupt is noticed

_ENTRIES = """
select e.seq, r.id, r.agent, e.frame, e.number, e.kind, e.turn, e.tool, e.at, e.body
from entries as e join runs as r on r.key = e.run
"""

_SINCE = f"{_ENTRIES} where e.seq > ? order by e.seq limit {PART}"

_OF_ONE = f"""
{_ENTRIES} where e.run = (select key from runs where id = ?) and e.seq > ?
order by e.number limit {PART}
"""  # in the order of an index: a run's numbers and its seqs grow together

_WAITING = f"""
{_ENTRIES} where e.kind = 'pause' and e.number = (select max(number) from entries where run = e.run)
order by e.seq
"""

RUNS = """
select r.id, r.session, r.agent, e.kind,
  case when e.kind = 'end' and json_valid(e.body) then json_extract(e.body, '$.status') end,
  r.prompt, e.number, e.number - r.base, r.created, e.at, r.tags, r.workdir, r.parent, e.writer
from runs as r join entries as e
  on e.run = r.key and e.number = (select max(number) from entries where run = r.key)
{where} order by r.key desc
"""

_SESSIONS = """
select s.session, s.runs, f.created, f.prompt, n.id
from (
  select session, count(*) as runs, min(key) as first, max(key) as newest
  from runs group by session order by max(key) desc limit ? offset ?) as s
join runs as f on f.key = s.first join runs as n on n.key = s.newest
order by s.newest desc
"""


class SQLiteReader:
    """`protocol.Readable` for the file that `writer` writes. `held` are the claims of living
    processes."""

    def __init__(self, writer: SQLiteFile, held: Callable[[], Collection[int]]) -> None:
        self._writer = writer
        self._file = SQLiteFile(writer.path, partial(_check, writer=writer), mode="ro")
        self._held = held

    def stamp(self) -> object:
        """`data_version` means something to one connection alone: its thread is part of the stamp."""
        (version,) = self._read("pragma data_version") or [()]
        return threading.get_ident(), version, frozenset(self._held())

    def removals(self) -> int:
        return sum(count for (count,) in self._file.read("select count from removals"))

    def entry_rows(self, after: int, execution_id: str | None) -> Iterator[tuple[Any, ...]]:
        statement, of = (_SINCE, ()) if execution_id is None else (_OF_ONE, (execution_id,))
        while part := self._read(statement, [*of, after]):
            yield from part
            after = part[-1][0]

    def waiting_rows(self) -> Sequence[tuple[Any, ...]]:
        return self._read(_WAITING)

    def run_rows(self) -> Sequence[RunRow]:
        runs = [Newest(*row) for row in self._read(RUNS.format(where=""))]
        return with_status(runs, self._held, self._newest_of)

    def sessions(self, limit: int | None, offset: int) -> Sequence[Session]:
        found = self._read(_SESSIONS, [-1 if limit is None else limit, offset])
        newest = with_status(
            self._newest_of([row[-1] for row in found]), self._held, self._newest_of
        )
        by_id = {row.execution_id: row for row in newest}
        return [
            session_of(session, runs, created, prompt, by_id[newest_id])
            for session, runs, created, prompt, newest_id in found
        ]

    def close(self) -> None:
        self._file.close()

    def _read(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        self._writer.refuse_a_changed_file()
        return self._file.read(statement, values)

    def _newest_of(self, execution_ids: Sequence[str]) -> Sequence[Newest]:
        query = RUNS.format(where="where r.id in (select value from json_each(?))")
        return [Newest(*row) for row in self._read(query, [dumps(execution_ids)])]


def _check(db: sqlite3.Connection, writer: SQLiteFile) -> None:
    """A file of an older version gets today's tables."""
    if check(db, writer.path) < len(MIGRATIONS):
        writer.open()
