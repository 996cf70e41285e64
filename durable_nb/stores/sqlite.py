"""Runs in one SQLite file, for any number of threads and processes of one machine (DESIGN section 7)."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

from durable_nb.core.nodes import Checkpoint, Pending, checkpoints
from durable_nb.core.retain import prunable
from durable_nb.model.codec import encode
from durable_nb.model.entries import Answer, End, Entry, Log, Reentry, Row, Run
from durable_nb.model.values import Json, dumps
from durable_nb.stores import refusals, tables
from durable_nb.stores.listing import (
    Newest,
    candidates,
    refuse_removal,
    statuses,
)
from durable_nb.stores.locks import locks_for
from durable_nb.stores.logs import opening_rows
from durable_nb.stores.migrate import for_writing
from durable_nb.stores.outbox import TableOutbox
from durable_nb.stores.protocol import (
    Branch,
    Effect,
    EffectRow,
    Lease,
    RunStatus,
    Session,
)
from durable_nb.stores.sqlite_file import DEFAULT, SQLiteFile, Values
from durable_nb.stores.sqlite_reader import SQLiteReader
from durable_nb.stores.upkeep import cancel, check_page, cutoff

_OPEN = f"insert into entries ({tables.ENTRY}) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"

_APPEND = f"""
insert into entries ({tables.ENTRY}) select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10
where (?3 - 1, ?8) = (
  select number, writer from entries where run = ?1 order by number desc limit 1
)
"""  # one guarded statement: of all who write number n, one inserts a row. The writer is asked for,
# too, since the key of a run that was deleted may be a new run's by now

_RUN = f"""
insert into runs ({tables.RUN})
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_DEFINE = "insert or ignore into definitions values (?, ?)"

_BEGIN = """
insert into idempotency_cache (run, key, function, number, begun)
select ?1, ?2, ?3, ?4, ?5 where (?4, ?6) = (
  select number, writer from entries where run = ?1 order by number desc limit 1
)
on conflict (run, key) do update set
  number = excluded.number, begun = excluded.begun, attempts = attempts + 1
"""

_KEEP = """
update idempotency_cache set value = ?3, kept = ?5
where run = ?1 and key = ?2 and (?4, ?6) = (
  select number, writer from entries where run = ?1 order by number desc limit 1
)
"""

_REMOVE = (
    """delete from outbox where seq in (
      select seq from entries where run = (select key from runs where id = ?))""",
    "delete from outbox_effects where run = (select key from runs where id = ?)",
    "delete from idempotency_cache where run = (select key from runs where id = ?)",
    "delete from entries where run = (select key from runs where id = ?)",
    "delete from runs where id = ?",
)


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
        self.path = Path(path or DEFAULT).absolute()
        self._synchronous = synchronous
        prepare = partial(for_writing, path=self.path, synchronous=synchronous)
        self._file = SQLiteFile(self.path, prepare)
        self._locks = locks_for(self.path)
        self._reader = SQLiteReader(self._file, self._locks.held)
        self.outbox = TableOutbox(
            "seq", self._reader, self._file.read, self._write, self._locks.held
        )

    def __repr__(self) -> str:
        return f"SQLiteCheckpointer({str(self.path)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _open_again, (str(self.path), self._synchronous)

    def create(self, run: Run, *opening: Entry, at: int, writer: int) -> Lease:
        stored = opening_rows(run, opening, at=at, writer=writer)
        with self._claimed(writer), self._file.write() as db:
            if db.execute("select 1 from runs where id = ?", [run.execution_id]).fetchone():
                raise refusals.exists(run.execution_id)
            db.execute(_DEFINE, [run.fingerprint, run.definition])
            key = db.execute(_RUN, tables.run_values(run)).lastrowid or 0
            db.executemany(_OPEN, [tables.entry_values(key, each) for each in stored])
        return Lease(run.execution_id, key, writer, stored[-1].number)

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
        key, _ = tables.find(self._file.read, execution_id)
        with self._claimed(writer), self._file.write() as db:
            newest = db.execute(tables.NEWEST, [key]).fetchall()
            number, owner, _ = refusals.known(execution_id, newest)
            if number != after:
                raise refusals.stale(execution_id, after)
            if not take_over and owner in self._locks.held():
                raise refusals.live(execution_id)
            if not isinstance(entry, End) and entry.fingerprint:
                db.execute(_DEFINE, [entry.fingerprint, definition])
            db.execute(_OPEN, tables.entry_values(key, stored))
        return Lease(execution_id, key, writer, row.number), row

    def append(self, lease: Lease, entry: Entry, *, at: int) -> Row:
        row = Row(lease.number + 1, at, lease.writer, entry, lease.frame)
        self._guarded(lease, _APPEND, tables.entry_values(lease.run, encode(row)))
        lease.number = row.number
        if isinstance(entry, End):
            self._file.truncate()
        return row

    def release(self, lease: Lease) -> None:
        self._locks.drop(lease.writer)

    def load(self, execution_id: str) -> Log:
        return tables.load(self._file.read, execution_id, self._locks.held)

    def effect(self, lease: Lease, key: str) -> Effect:
        return tables.effect(self._file.read, lease, key)

    def begin(self, lease: Lease, key: str, function: str, *, at: int) -> None:
        self._guarded(lease, _BEGIN, [lease.run, key, function, lease.number, at, lease.writer])

    def keep(self, lease: Lease, key: str, value: Json, *, at: int) -> None:
        kept = dumps(value)
        self._guarded(lease, _KEEP, [lease.run, key, kept, lease.number, at, lease.writer])

    def runs(self) -> Sequence[RunStatus]:
        return statuses(self.run_rows())

    def list_pending_interrupts(self) -> Sequence[Pending]:
        return tables.pending(self._file.read, self.load)

    def list(self, execution_id: str) -> Sequence[Checkpoint]:
        return checkpoints(self.load(execution_id))

    def get_last(self, execution_id: str) -> Checkpoint:
        return self.list(execution_id)[-1]

    def effects(self, execution_id: str) -> Sequence[EffectRow]:
        return tables.effects(self._file.read, execution_id)

    def session(self, execution_id: str) -> Sequence[str]:
        return tables.session(self._file.read, execution_id)

    def branches(self, execution_id: str) -> Sequence[Branch]:
        return tables.branches(self._file.read, execution_id)

    def sessions(self, *, limit: int | None = None, offset: int = 0) -> Sequence[Session]:
        check_page(limit, offset)
        return self._reader.sessions(limit, offset)

    def cancel(self, execution_id: str, *, by: str | None = None) -> None:
        cancel(self, execution_id, by)

    def delete_execution(self, execution_id: str) -> None:
        tables.find(self._file.read, execution_id)
        with self._file.write() as db:
            refuse_removal(execution_id, _all(db), self._locks.held())
            _remove(db, [execution_id])

    def prune(
        self,
        older_than: timedelta | float,
        *,
        tags: Collection[str] = (),
        status: str | None = None,
        dry_run: bool = False,
    ) -> Sequence[str]:
        chosen = partial(prunable, before=cutoff(older_than), tags=tags, status=status)
        if dry_run:
            return chosen(candidates(Newest(*row) for row in self._file.read(tables.newest())))
        with self._file.write() as db:
            if gone := chosen(candidates(_all(db))):
                _remove(db, gone)
        return gone

    def close(self) -> None:
        self._reader.close()
        self._file.close()
        self._locks.close()

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

    def _write(self, action: Callable[[tables.Read], None]) -> None:
        """Do it in one transaction."""
        with self._file.write() as db:
            action(lambda statement, values=(): db.execute(statement, values).fetchall())

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


def _all(db: sqlite3.Connection) -> Sequence[Newest]:
    """All runs, newest first."""
    return [Newest(*row) for row in db.execute(tables.newest()).fetchall()]


def _remove(db: sqlite3.Connection, execution_ids: Sequence[str]) -> None:
    for statement in _REMOVE:
        db.executemany(statement, [(execution_id,) for execution_id in execution_ids])
    db.execute("update removals set count = count + 1")
