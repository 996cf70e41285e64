"""Runs that live as long as this process: the store for tests, and for what need not survive."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from durable_nb.core.nodes import Checkpoint, Pending, checkpoints
from durable_nb.model.codec import Stored, decode, encode
from durable_nb.model.entries import Answer, Entry, Log, Reentry, Row, Run, Turn
from durable_nb.model.values import Json, dumps, loads
from durable_nb.stores import refusals
from durable_nb.stores.listing import Newest, pending_of, statuses, with_status
from durable_nb.stores.protocol import Begun, Effect, Kept, Lease, RunRow, RunStatus, Unknown


@dataclass(slots=True)
class _Kept:
    """A run as this store holds it: encoded, so that what comes back is what a file would give."""

    run: Run
    rows: list[Stored]
    seqs: list[int]
    effects: dict[str, Effect] = field(default_factory=dict)


class MemoryCheckpointer:
    """Keeps everything until this process ends. Passes the same contract as the others."""

    def __init__(self) -> None:
        self._runs: dict[str, _Kept] = {}
        self._held: set[int] = set()
        self._seq = 0
        self._lock = threading.RLock()
        self._closed = False

    def __repr__(self) -> str:
        return "MemoryCheckpointer()"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise refusals.memory_stays_here()

    def create(self, run: Run, entry: Turn, *, at: int, writer: int) -> Lease:
        row = Row(run.base + 1, at, writer, entry)
        stored = encode(row)
        with self._open():
            if run.execution_id in self._runs:
                raise refusals.exists(run.execution_id)
            self._runs[run.execution_id] = _Kept(run, [], [])
            self._add(self._runs[run.execution_id], stored)
            self._held.add(writer)
        return Lease(run.execution_id, len(self._runs), writer, row.number)

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
        with self._open():
            kept = self._find(execution_id)
            newest = kept.rows[-1]
            if newest.number != after:
                raise refusals.stale(execution_id, after)
            if newest.writer in self._held and not take_over:
                raise refusals.live(execution_id)
            self._add(kept, stored)
            self._held.add(writer)
        return Lease(execution_id, 0, writer, row.number), row

    def append(self, lease: Lease, entry: Entry, *, at: int) -> Row:
        row = Row(lease.number + 1, at, lease.writer, entry, lease.frame)
        stored = encode(row)
        with self._open():
            self._add(self._fenced(lease), stored)
        lease.number = row.number
        return row

    def release(self, lease: Lease) -> None:
        with self._lock:
            self._held.discard(lease.writer)

    def load(self, execution_id: str) -> Log:
        with self._open():
            kept = self._find(execution_id)
            rows = tuple(decode(stored, execution_id) for stored in kept.rows)
            return Log(kept.run, rows, rows[-1].writer in self._held)

    def effect(self, lease: Lease, key: str) -> Effect:
        with self._open():
            return self._find(lease.execution_id).effects.get(key, Unknown())

    def begin(self, lease: Lease, key: str, function: str, *, at: int) -> None:
        with self._open():
            self._fenced(lease).effects[key] = Begun(at)

    def keep(self, lease: Lease, key: str, value: Json, *, at: int) -> None:
        with self._open():
            self._fenced(lease).effects[key] = Kept(value)

    def runs(self) -> Sequence[RunStatus]:
        with self._open():
            return statuses(self.run_rows())

    def list(self, execution_id: str) -> Sequence[Checkpoint]:
        return checkpoints(self.load(execution_id))

    def get_last(self, execution_id: str) -> Checkpoint:
        return self.list(execution_id)[-1]

    def list_pending_interrupts(self) -> Sequence[Pending]:
        with self._open():
            paused = [kept for kept in self._runs.values() if _waits(kept)]
            return [
                pending_of(kept.run.execution_id, kept.run.agent, _step(kept.rows))
                for kept in sorted(paused, key=lambda kept: kept.seqs[-1])
            ]

    def close(self) -> None:
        self._closed = True

    def stamp(self) -> object:
        with self._open():
            return self._seq, frozenset(self._held)

    def entry_rows(
        self, *, after: int = 0, execution_id: str | None = None
    ) -> Iterable[tuple[Any, ...]]:
        with self._open():
            return sorted(
                row
                for id_, kept in self._runs.items()
                if execution_id in (None, id_)
                for row in _entry_rows(kept)
                if row[0] > after
            )

    def waiting_rows(self) -> Iterable[tuple[Any, ...]]:
        with self._open():
            paused = [kept for kept in self._runs.values() if _waits(kept)]
            return sorted(max(_entry_rows(kept)) for kept in paused)

    def run_rows(self) -> Sequence[RunRow]:
        with self._open():
            newest = [_newest(kept) for kept in reversed(self._runs.values())]
            return with_status(newest, lambda: self._held, lambda dead: ())

    def _open(self) -> threading.RLock:
        if self._closed:
            raise refusals.closed(repr(self))
        return self._lock

    def _find(self, execution_id: str) -> _Kept:
        if execution_id not in self._runs:
            raise refusals.unknown(execution_id)
        return self._runs[execution_id]

    def _fenced(self, lease: Lease) -> _Kept:
        """The run, if the lease's entry is still its newest."""
        kept = self._find(lease.execution_id)
        newest = kept.rows[-1]
        if (newest.number, newest.writer) != (lease.number, lease.writer):
            raise refusals.stale(lease.execution_id, lease.number)
        return kept

    def _add(self, kept: _Kept, stored: Stored) -> None:
        self._seq += 1
        kept.rows.append(stored)
        kept.seqs.append(self._seq)


def _step(rows: list[Stored]) -> list[Stored]:
    """The rows from the newest `ToolCall` on."""
    start = max(at for at, stored in enumerate(rows) if stored.kind == "tool_call")
    return rows[start:]


def _waits(kept: _Kept) -> bool:
    return kept.rows[-1].kind == "pause"


def _entry_rows(kept: _Kept) -> Iterator[tuple[Any, ...]]:
    run = kept.run
    for seq, s in zip(kept.seqs, kept.rows, strict=True):
        place = s.frame, s.number, s.kind, s.turn, s.tool
        yield (seq, run.execution_id, run.agent, *place, s.at, s.body)


def _newest(kept: _Kept) -> Newest:
    run, newest = kept.run, kept.rows[-1]
    return Newest(
        run.execution_id,
        run.session,
        run.agent,
        newest.kind,
        loads(newest.body)["status"] if newest.kind == "end" else None,
        run.prompt,
        newest.number,
        newest.number - run.base,
        run.created_at,
        newest.at,
        dumps(list(run.tags)),
        run.workdir,
        newest.writer,
    )
