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
from durable_nb.stores import tables
from durable_nb.stores.listing import Newest, run_rows, with_status
from durable_nb.stores.migrate import MIGRATIONS, check
from durable_nb.stores.protocol import RunRow, Session
from durable_nb.stores.sqlite_file import SQLiteFile, Values

PART = 2_000  # rows: some 10 ms, so that an interrupt is noticed

_SINCE = f"{tables.entry_rows('seq', 'e.seq >= ?')} order by e.seq limit {PART}"

_OF_ONE = f"""
{tables.entry_rows("seq", "e.run = (select key from runs where id = ?) and e.seq >= ?")}
order by e.number limit {PART}
"""  # in the order of an index: a run's numbers and its seqs grow together


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

    def settled(self) -> int:
        return sum(seq + 1 for (seq,) in self._file.read("select max(seq) from entries") if seq)

    def entry_rows(self, since: int, execution_id: str | None) -> Iterator[tuple[Any, ...]]:
        statement, of = (_SINCE, ()) if execution_id is None else (_OF_ONE, (execution_id,))
        while part := self._read(statement, [*of, since]):
            yield from part
            since = part[-1][0] + 1

    def waiting_rows(self) -> Sequence[tuple[Any, ...]]:
        return self._read(tables.waiting_rows("seq"))

    def effect_rows(self, execution_id: str | None) -> Sequence[tuple[Any, ...]]:
        return tables.effect_rows(self._read, execution_id)

    def run_rows(self) -> Sequence[tuple[Any, ...]]:
        return run_rows(self._read(tables.RUN_ROWS), self._held, self._newest_of)

    def sessions(self, limit: int | None, offset: int) -> Sequence[Session]:
        return tables.sessions(self._read, limit, offset, self._statuses)

    def close(self) -> None:
        self._file.close()

    def _read(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        self._writer.refuse_a_changed_file()
        return self._file.read(statement, values)

    def _statuses(self, execution_ids: Sequence[str]) -> Sequence[RunRow]:
        return with_status(self._newest_of(execution_ids), self._held, self._newest_of)

    def _newest_of(self, execution_ids: Sequence[str]) -> Sequence[Newest]:
        query = tables.newest("where r.id in (select value from json_each(?))")
        return [Newest(*row) for row in self._read(query, [dumps(execution_ids)])]


def _check(db: sqlite3.Connection, writer: SQLiteFile) -> None:
    """A file of an older version gets today's tables."""
    if check(db, writer.path) < len(MIGRATIONS):
        writer.open()
