"""Runs in one SQLite file, for any number of threads and processes of one machine (DESIGN section 7)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

from durable_nb.core.nodes import Checkpoint, Pending, checkpoints
from durable_nb.model.codec import Stored, decode, encode
from durable_nb.model.entries import Answer, End, Entry, Log, Reentry, Row, Run, Turn
from durable_nb.model.values import Json, dumps, loads
from durable_nb.stores import refusals
from durable_nb.stores.listing import pending_of, run_columns, run_from, statuses
from durable_nb.stores.locks import locks_for
from durable_nb.stores.migrate import for_writing
from durable_nb.stores.protocol import Begun, Effect, Kept, Lease, RunRow, RunStatus, Unknown
from durable_nb.stores.sqlite_file import SQLiteFile, Values
from durable_nb.stores.sqlite_reader import SQLiteReader

_COLUMNS = "run, frame, number, kind, turn, tool, at, writer, checksum, body"

_OPEN = f"insert into entries ({_COLUMNS}) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"

_APPEND = f"""
insert into entries ({_COLUMNS}) select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10
where ?3 - 1 = (select max(number) from entries where run = ?1)
"""  # one guarded statement: of all who write number n, one inserts a row

_RUN = """
insert into runs (id, agent, prompt, created, session, fingerprint, workdir, tags, base)
values (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_BEGIN = """
insert into idempotency_cache (run, key, function, number, begun)
select ?1, ?2, ?3, ?4, ?5 where ?4 = (select max(number) from entries where run = ?1)
on conflict (run, key) do update set
  number = excluded.number, begun = excluded.begun, attempts = attempts + 1
"""

_KEEP = """
update idempotency_cache set value = ?3, kept = ?5
where run = ?1 and key = ?2 and ?4 = (select max(number) from entries where run = ?1)
"""

_EFFECT = "select begun, kept, value from idempotency_cache where run = ? and key = ?"

_FIND = """
select r.key, r.id, r.agent, r.prompt, r.created, r.session, d.definition, r.fingerprint,
  r.workdir, r.tags, r.base
from runs as r join definitions as d using (fingerprint) where r.id = ?
"""

_LOAD_ROWS = """
select number, frame, kind, turn, tool, at, writer, checksum, body
from entries where run = ? order by number
"""

_NEWEST = "select number, writer from entries where run = ? order by number desc limit 1"

_PENDING = """
select r.id, r.agent, e.number, e.frame, e.kind, e.turn, e.tool, e.at, e.writer, e.checksum, e.body
from entries as p join runs as r on r.key = p.run
join entries as e on e.run = p.run and e.number >= (
  select number from entries where run = p.run and kind = 'tool_call' order by number desc limit 1)
where p.kind = 'pause' and p.number = (select max(number) from entries where run = p.run)
order by p.seq, e.number
"""  # for each open pause, the rows of the step that paused


class SQLiteCheckpointer:
    """A store in the file `path`, made when the first run is written.

    `synchronous="FULL"` survives a power loss; `"NORMAL"` survives the death of the process and is
    faster. Raises `StoreUnusable` on first use if the path cannot be a store.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        synchronous: Literal["FULL", "NORMAL"] = "FULL",
    ) -> None:
        self.path = Path(path or Path(".durable", "runs.sqlite3")).absolute()
        self._synchronous = synchronous
        prepare = partial(for_writing, path=self.path, synchronous=synchronous)
        self._file = SQLiteFile(self.path, prepare)
        self._locks = locks_for(self.path)
        self._reader = SQLiteReader(self._file, self._locks.held)

    def __repr__(self) -> str:
        return f"SQLiteCheckpointer({str(self.path)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _open_again, (str(self.path), self._synchronous)

    def create(self, run: Run, entry: Turn, *, at: int, writer: int) -> Lease:
        row = Row(run.base + 1, at, writer, entry)
        stored = encode(row)
        with self._claimed(writer), self._file.write() as db:
            if db.execute("select 1 from runs where id = ?", [run.execution_id]).fetchone():
                raise refusals.exists(run.execution_id)
            db.execute(
                "insert or ignore into definitions values (?, ?)", [run.fingerprint, run.definition]
            )
            key = db.execute(_RUN, run_columns(run)).lastrowid or 0
            db.execute(_OPEN, _values(key, stored))
        return Lease(run.execution_id, key, writer, row.number)

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
        with self._claimed(writer), self._file.write() as db:
            newest = db.execute(_NEWEST, [key]).fetchall()
            number, owner = refusals.known(execution_id, newest)
            if number != after:
                raise refusals.stale(execution_id, after)
            if not take_over and owner in self._locks.held():
                raise refusals.live(execution_id)
            db.execute(_APPEND, _values(key, stored))
        return Lease(execution_id, key, writer, row.number), row

    def append(self, lease: Lease, entry: Entry, *, at: int) -> Row:
        row = Row(lease.number + 1, at, lease.writer, entry, lease.frame)
        self._guarded(lease, _APPEND, _values(lease.run, encode(row)))
        lease.number = row.number
        if isinstance(entry, End):
            self._file.truncate()
        return row

    def release(self, lease: Lease) -> None:
        self._locks.drop(lease.writer)

    def load(self, execution_id: str) -> Log:
        key, *run = self._find(execution_id)
        while True:
            found = [Stored(*columns) for columns in self._file.read(_LOAD_ROWS, [key])]
            newest = refusals.known(execution_id, found[-1:])
            live = newest.writer in self._locks.held()
            if live or self._file.read(_NEWEST, [key]) == [(newest.number, newest.writer)]:
                rows = tuple(decode(stored, execution_id) for stored in found)
                return Log(run_from(run), rows, live)

    def effect(self, lease: Lease, key: str) -> Effect:
        for begun, kept, value in self._file.read(_EFFECT, [lease.run, key]):
            return Begun(begun) if kept is None else Kept(loads(value))
        return Unknown()

    def begin(self, lease: Lease, key: str, function: str, *, at: int) -> None:
        self._guarded(lease, _BEGIN, [lease.run, key, function, lease.number, at])

    def keep(self, lease: Lease, key: str, value: Json, *, at: int) -> None:
        self._guarded(lease, _KEEP, [lease.run, key, dumps(value), lease.number, at])

    def runs(self) -> Sequence[RunStatus]:
        return statuses(self.run_rows())

    def list_pending_interrupts(self) -> Sequence[Pending]:
        steps = groupby(self._file.read(_PENDING), key=itemgetter(0, 1))
        return [
            pending_of(execution_id, agent, (Stored(*columns[2:]) for columns in step))
            for (execution_id, agent), step in steps
        ]

    def list(self, execution_id: str) -> Sequence[Checkpoint]:
        return checkpoints(self.load(execution_id))

    def get_last(self, execution_id: str) -> Checkpoint:
        return self.list(execution_id)[-1]

    def close(self) -> None:
        self._reader.close()
        self._file.close()
        self._locks.close()

    def stamp(self) -> object:
        return self._reader.stamp()

    def entry_rows(
        self, *, after: int = 0, execution_id: str | None = None
    ) -> Iterable[tuple[Any, ...]]:
        return self._reader.entry_rows(after, execution_id)

    def waiting_rows(self) -> Iterable[tuple[Any, ...]]:
        return self._reader.waiting_rows()

    def run_rows(self) -> Sequence[RunRow]:
        return self._reader.run_rows()

    def _find(self, execution_id: str) -> tuple[Any, ...]:
        try:
            found = self._file.read(_FIND, [execution_id])
        except UnicodeEncodeError:  # text that no store can hold is no run's id
            found = []
        return refusals.known(execution_id, found)

    def _guarded(self, lease: Lease, statement: str, values: Values) -> None:
        if not self._file.change(statement, values):
            raise refusals.stale(lease.execution_id, lease.number)

    @contextmanager
    def _claimed(self, writer: int) -> Iterator[None]:
        """Drive while the claim is being written; it is visible only once it is."""
        self._file.open()  # refuses what cannot be a store, before a lock is made beside it
        self._locks.hold(writer)
        try:
            yield
        except BaseException:
            self._locks.drop(writer)
            raise


def _open_again(path: str, synchronous: Literal["FULL", "NORMAL"]) -> SQLiteCheckpointer:
    return SQLiteCheckpointer(path, synchronous=synchronous)


def _values(run: int, s: Stored) -> Values:
    return run, s.frame, s.number, s.kind, s.turn, s.tool, s.at, s.writer, s.checksum, s.body
