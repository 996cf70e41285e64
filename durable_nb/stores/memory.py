"""Runs that live as long as this process: the store for tests, and for what need not survive."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from durable_nb.core.nodes import Checkpoint, Pending, checkpoints, open_pause
from durable_nb.core.retain import prunable
from durable_nb.model.codec import Stored, encode
from durable_nb.model.entries import Answer, End, Entry, Log, Reentry, Row, Run
from durable_nb.model.values import Json, dumps, loads
from durable_nb.stores import refusals
from durable_nb.stores.listing import (
    Newest,
    candidates,
    effect_row,
    refuse_removal,
    session_of,
    statuses,
    with_status,
)
from durable_nb.stores.logs import fingerprint_of, history, opening_rows
from durable_nb.stores.protocol import (
    Begun,
    Branch,
    Effect,
    EffectRow,
    Kept,
    Lease,
    RunRow,
    RunStatus,
    Session,
    Unknown,
)
from durable_nb.stores.upkeep import cancel, check_page, cutoff


@dataclass(frozen=True, slots=True)
class _Effect:
    function: str
    attempts: int
    begun: int
    number: int
    known: Begun | Kept
    kept: int | None = None


@dataclass(slots=True)
class _Kept:
    """A run as this store holds it: encoded, so that what comes back is what a file would give."""

    run: Run
    rows: list[Stored]
    seqs: list[int]
    effects: dict[str, _Effect] = field(default_factory=dict)


class MemoryCheckpointer:
    """Keeps everything until this process ends. Passes the same contract as the others."""

    def __init__(self) -> None:
        self._runs: dict[str, _Kept] = {}
        self._definitions: dict[str, str] = {}
        self._held: set[int] = set()
        self._removals = 0
        self._seq = self._marks = 0
        self._lock = threading.RLock()
        self._closed = False

    def __repr__(self) -> str:
        return "MemoryCheckpointer()"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise refusals.memory_stays_here()

    def create(self, run: Run, *opening: Entry, at: int, writer: int) -> Lease:
        stored = opening_rows(run, opening, at=at, writer=writer)
        with self._open():
            if run.execution_id in self._runs:
                raise refusals.exists(run.execution_id)
            self._definitions.setdefault(run.fingerprint, run.definition)
            kept = self._runs[run.execution_id] = _Kept(run, [], [])
            for each in stored:
                self._add(kept, each)
            self._held.add(writer)
        return Lease(run.execution_id, 0, writer, stored[-1].number)

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
        with self._open():
            kept = self._find(execution_id)
            newest = kept.rows[-1]
            if newest.number != after:
                raise refusals.stale(execution_id, after)
            if newest.writer in self._held and not take_over:
                raise refusals.live(execution_id)
            if not isinstance(entry, End) and entry.fingerprint:
                self._definitions.setdefault(entry.fingerprint, definition)
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
            rows = history(kept.run, kept.rows, self._parent)
            definition = self._definitions[fingerprint_of(kept.run, rows)]
            return Log(kept.run, rows, rows[-1].writer in self._held, definition)

    def effect(self, lease: Lease, key: str) -> Effect:
        with self._open():
            effects = self._find(lease.execution_id).effects
            return effects[key].known if key in effects else Unknown()

    def begin(self, lease: Lease, key: str, function: str, *, at: int) -> None:
        with self._open():
            effects = self._fenced(lease).effects
            self._marks += 1
            begun = Begun(at, lease.number)
            was = effects.get(key, _Effect(function, 0, at, lease.number, begun))
            known = was.known if isinstance(was.known, Kept) else begun  # what is kept stays
            effects[key] = replace(
                was, attempts=was.attempts + 1, begun=at, number=lease.number, known=known
            )

    def keep(self, lease: Lease, key: str, value: Json, *, at: int) -> None:
        with self._open():
            effects = self._fenced(lease).effects
            self._marks += 1
            effects[key] = replace(effects[key], known=Kept(value), kept=at)

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
            paused.sort(key=lambda kept: kept.seqs[-1])
            logs = (self.load(kept.run.execution_id) for kept in paused)
            return [each for each in map(open_pause, logs) if each is not None]

    def effects(self, execution_id: str) -> Sequence[EffectRow]:
        with self._open():
            effects = self._find(execution_id).effects.items()
            return [
                effect_row(each.function, key, each.attempts, each.begun, each.kept)
                for key, each in sorted(effects, key=lambda effect: (effect[1].begun, effect[0]))
            ]

    def session(self, execution_id: str) -> Sequence[str]:
        with self._open():
            session = self._find(execution_id).run.session
            return [run.execution_id for run in self._of_session(session)]

    def branches(self, execution_id: str) -> Sequence[Branch]:
        with self._open():
            self._find(execution_id)
            runs = [kept.run for kept in self._runs.values()]
            return [
                Branch(run.execution_id, run.base) for run in runs if run.parent == execution_id
            ]

    def sessions(self, *, limit: int | None = None, offset: int = 0) -> Sequence[Session]:
        check_page(limit, offset)
        with self._open():
            newest: dict[str, RunRow] = {}
            for row in self.run_rows():  # newest first
                newest.setdefault(row.session, row)
            page = list(newest.values())[offset:][:limit]
            return [_session(self._of_session(row.session), row) for row in page]

    def cancel(self, execution_id: str, *, by: str | None = None) -> None:
        cancel(self, execution_id, by)

    def delete_execution(self, execution_id: str) -> None:
        with self._open():
            self._find(execution_id)
            refuse_removal(execution_id, map(_newest, self._runs.values()), self._held)
            self._remove([execution_id])

    def prune(
        self,
        older_than: timedelta | float,
        *,
        tags: Collection[str] = (),
        status: str | None = None,
        dry_run: bool = False,
    ) -> Sequence[str]:
        before = cutoff(older_than)
        with self._open():
            newest = [_newest(kept) for kept in reversed(self._runs.values())]
            gone = prunable(candidates(newest), before=before, tags=tags, status=status)
            if not dry_run:
                self._remove(gone)
        return gone

    def close(self) -> None:
        self._closed = True

    def stamp(self) -> object:
        with self._open():
            return self._seq, self._marks, self._removals, frozenset(self._held)

    def removals(self) -> int:
        return self._removals

    def settled(self) -> int:
        return self._seq + 1

    def entry_rows(
        self, *, since: int = 0, execution_id: str | None = None
    ) -> Iterable[tuple[Any, ...]]:
        with self._open():
            return sorted(
                row
                for id_, kept in self._runs.items()
                if execution_id in (None, id_)
                for row in _entry_rows(kept)
                if row[0] >= since
            )

    def waiting_rows(self) -> Iterable[tuple[Any, ...]]:
        with self._open():
            paused = [kept for kept in self._runs.values() if _waits(kept)]
            return sorted(max(_entry_rows(kept)) for kept in paused)

    def effect_rows(self, execution_id: str | None = None) -> Iterable[tuple[Any, ...]]:
        with self._open():
            return [
                row
                for id_, kept in self._runs.items()
                if execution_id in (None, id_)
                for row in _effect_rows(kept)
            ]

    def run_rows(self) -> Sequence[RunRow]:
        with self._open():
            newest = [_newest(kept) for kept in reversed(self._runs.values())]
            return with_status(newest, lambda: self._held, lambda dead: ())

    def _of_session(self, session: str) -> Sequence[Run]:
        return [kept.run for kept in self._runs.values() if kept.run.session == session]

    def _parent(self, execution_id: str, upto: int) -> tuple[Run, Sequence[Stored]]:
        kept = self._find(execution_id)
        return kept.run, [stored for stored in kept.rows if stored.number <= upto]

    def _remove(self, execution_ids: Sequence[str]) -> None:
        for execution_id in execution_ids:
            del self._runs[execution_id]
        self._removals += 1

    def _open(self) -> threading.RLock:
        if self._closed:
            raise refusals.closed(repr(self))
        return self._lock

    def _find(self, execution_id: str) -> _Kept:
        if not isinstance(execution_id, str) or execution_id not in self._runs:
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


_RESTS = {"pause": "paused"}  # what is no end and yet not unfinished


def _waits(kept: _Kept) -> bool:
    return kept.rows[-1].kind == "pause"


def _entry_rows(kept: _Kept) -> Iterator[tuple[Any, ...]]:
    run = kept.run
    for seq, s in zip(kept.seqs, kept.rows, strict=True):
        place = s.frame, s.number, s.kind, s.turn, s.tool
        yield (seq, run.execution_id, run.agent, *place, s.at, s.body)


def _effect_rows(kept: _Kept) -> Iterator[tuple[Any, ...]]:
    for key, each in sorted(kept.effects.items(), key=lambda effect: (effect[1].begun, effect[0])):
        value = dumps(each.known.value) if isinstance(each.known, Kept) else None
        newest = kept.rows[-1].number if each.kept is None else None
        what = each.function, key, each.number, newest, each.attempts, each.begun
        yield (kept.run.execution_id, *what, each.kept, value)


def _newest(kept: _Kept) -> Newest:
    run, newest = kept.run, kept.rows[-1]
    return Newest(
        run.execution_id,
        run.session,
        run.agent,
        loads(newest.body)["status"] if newest.kind == "end" else _RESTS.get(newest.kind),
        run.prompt,
        newest.number - run.base,
        run.created_at,
        newest.at,
        dumps(list(run.tags)),
        run.workdir,
        run.parent,
        newest.number,
        newest.writer,
    )


def _session(runs: Sequence[Run], newest: RunRow) -> Session:
    first = runs[0]
    return session_of(first.session, len(runs), first.created_at, first.prompt, newest)
