"""The outbox of a store with tables: which rows a plane has, and rows that come from one.

A mark stands in a table of its own and an entry without one waits: appending costs what it did.
`?` stands for a value; both backends take the text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from durable_nb.model.codec import Stored, fingerprint_in, is_intact
from durable_nb.model.entries import Run
from durable_nb.model.errors import UnknownExecution
from durable_nb.stores import refusals, tables
from durable_nb.stores.replicated import Copied, Quarantined, Remembered, Replica
from durable_nb.stores.tables import Read

_WAITS = "not exists (select 1 from outbox where seq = e.seq)"

_EFFECT_WAITS = """
not exists (
  select 1 from outbox_effects
  where run = c.run and key = c.key and begun = c.begun and kept = coalesce(c.kept, 0))
"""

_ENTRIES = f"""
select r.id, e.number, e.frame, e.kind, e.turn, e.tool, e.at, e.writer, e.checksum, e.body
from entries as e join runs as r on r.key = e.run
where e.{{place}} >= ? and {_WAITS}
order by e.{{place}}, e.seq limit ?
"""

_REMEMBERED = """
select r.id, c.key, c.function, c.number, c.attempts, c.begun, c.kept, c.value
from idempotency_cache as c join runs as r on r.key = c.run
"""

_EFFECTS = f"""
{_REMEMBERED}
join entries as e on e.run = c.run and e.number = c.number join outbox as o on o.seq = e.seq
where {_EFFECT_WAITS}
order by c.begun, c.run, c.key limit ?
"""

_EFFECTS_OF = f"{_REMEMBERED} where r.id = ? order by c.begun, c.key"

_COUNT_ENTRIES = f"""
select count(*) from entries as e join runs as r on r.key = e.run where {_WAITS}
"""

_COUNT_EFFECTS = f"""
select count(*) from idempotency_cache as c join runs as r on r.key = c.run where {_EFFECT_WAITS}
"""

_QUARANTINED = """
select r.id, e.number, cast(null as text), o.refused
from outbox as o join entries as e on e.seq = o.seq join runs as r on r.key = e.run
where o.refused is not null order by o.seq
"""

_QUARANTINED_EFFECTS = """
select r.id, c.number, c.key, o.refused
from outbox_effects as o join idempotency_cache as c on c.run = o.run and c.key = o.key
join runs as r on r.key = o.run where o.refused is not null order by c.begun, c.key
"""

_MARK_ENTRY = """
insert into outbox (seq, refused) select seq, ? from entries
where run = (select key from runs where id = ?) and number = ? and writer = ? and checksum = ?
on conflict (seq) do update set refused = null where excluded.refused is null
"""  # not by `seq` alone: a run that was deleted may have left it to another one

_MARK_EFFECT = """
insert into outbox_effects (refused, run, key, begun, kept)
select ?, run, key, begun, coalesce(kept, 0) from idempotency_cache
where run = (select key from runs where id = ?) and key = ? and begun = ? and coalesce(kept, 0) = ?
on conflict (run, key) do update set
  begun = excluded.begun, kept = excluded.kept, refused = excluded.refused
"""  # a mark is of the state that was sent: one that is newer goes on waiting

_DEFINE = "insert into definitions values (?, ?) on conflict do nothing"

_RUN = f"""
insert into runs ({tables.RUN})
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (id) do nothing
"""

_ENTRY = f"""
insert into entries ({tables.ENTRY}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (run, number) do nothing
"""

_EFFECT = """
insert into idempotency_cache (run, key, function, number, attempts, begun, kept, value)
values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict (run, key) do update set
  number = excluded.number, attempts = excluded.attempts, begun = excluded.begun,
  kept = excluded.kept, value = excluded.value
where idempotency_cache.kept is null
  and (excluded.kept is not null or excluded.attempts > idempotency_cache.attempts)
"""  # rows may come late and twice: an older state never replaces a newer one


class Places(Protocol):
    """What `protocol.Readable` says of where rows stand."""

    def stamp(self) -> object: ...
    def removals(self) -> int: ...
    def settled(self) -> int: ...


class TableOutbox:
    """`replicated.Outbox` over the tables of a backend. `place` is the column that says where an
    entry stands among all, `write` does something in a transaction, `driven` are the claims whose
    owners live."""

    def __init__(
        self,
        place: str,
        places: Places,
        read: Read,
        write: Callable[[Callable[[Read], None]], None],
        driven: Callable[[], Collection[int]],
    ) -> None:
        self._entries = _ENTRIES.format(place=place)
        self._places, self._read, self._write, self._driven = places, read, write, driven
        self._drained = (-1, 0)  # removals, and the place before which everything is marked

    def waiting(self, *, limit: int) -> Sequence[Replica]:
        now = self._places.removals(), self._places.settled()
        since = self._drained[1] if self._drained[0] == now[0] else 0
        found = self._read(self._entries, [since, limit])
        if not found:
            self._drained = now
        rows = [(id_, Stored(*columns)) for id_, *columns in found]
        effects = self._effects(_EFFECTS, [limit - len(rows)]) if len(rows) < limit else []
        return _replicas(self._read, [*rows, *effects])

    def count(self, execution_id: str | None = None) -> int:
        where, of = ("", []) if execution_id is None else (" and r.id = ?", [execution_id])
        counts = (self._read(query + where, of) for query in (_COUNT_ENTRIES, _COUNT_EFFECTS))
        return sum(count for rows in counts for (count,) in rows)

    def acknowledge(self, rows: Sequence[Replica]) -> None:
        self._write(partial(_mark, rows=rows, refused=None))

    def quarantine(self, row: Replica, reason: str) -> None:
        self._write(partial(_mark, rows=[row], refused=reason))

    def quarantined(self) -> Sequence[Quarantined]:
        both = *self._read(_QUARANTINED), *self._read(_QUARANTINED_EFFECTS)
        return [Quarantined(*row) for row in both]

    def copy(self, execution_id: str) -> Sequence[Replica]:
        key, _ = tables.find(self._read, execution_id)
        entries = [(execution_id, row) for row in tables.stored_rows(self._read, key)]
        effects = self._effects(_EFFECTS_OF, [execution_id])
        return _replicas(self._read, [*entries, *effects])

    def take_in(self, rows: Sequence[Replica]) -> None:
        self._write(partial(_take_in, rows=rows, driven=self._driven))

    def stamp(self) -> object:
        return self._places.stamp()

    def _effects(self, query: str, values: Sequence[object]) -> list[tuple[str, Remembered]]:
        return [(id_, Remembered(*columns)) for id_, *columns in self._read(query, values)]


def _replicas(read: Read, rows: Sequence[tuple[str, Copied]]) -> Sequence[Replica]:
    """The rows with their runs; those of a run that is gone meanwhile are left out."""
    runs: dict[str, Run] = {}
    for execution_id in dict.fromkeys(id_ for id_, _ in rows):
        with suppress(UnknownExecution):
            _, runs[execution_id] = tables.find(read, execution_id)
    return [Replica(runs[id_], row, _definition(read, row)) for id_, row in rows if id_ in runs]


def _definition(read: Read, row: Copied) -> str:
    """The text behind the fingerprint that an answer or a reentry bears."""
    if not (isinstance(row, Stored) and row.kind in ("answer", "reentry") and is_intact(row)):
        return ""
    found = read(tables.DEFINITION, [fingerprint_in(row)])
    return "".join(text for (text,) in found)


def _mark(write: Read, rows: Sequence[Replica], refused: str | None) -> None:
    for run, row, _ in rows:
        if isinstance(row, Stored):
            state = [row.number, row.writer, row.checksum]
            write(_MARK_ENTRY, [refused, run.execution_id, *state])
        else:
            write(_MARK_EFFECT, [refused, run.execution_id, row.key, row.begun, row.kept or 0])


def _take_in(write: Read, rows: Sequence[Replica], driven: Callable[[], Collection[int]]) -> None:
    by_run: dict[str, list[Replica]] = {}
    for each in rows:
        by_run.setdefault(each.run.execution_id, []).append(each)
    for own in by_run.values():
        _take_run(write, own, driven)
        _mark(write, own, None)


def _take_run(write: Read, own: Sequence[Replica], driven: Callable[[], Collection[int]]) -> None:
    run = own[0].run
    write(_DEFINE, [run.fingerprint, run.definition])
    write(_RUN, tables.run_values(run))
    key, here = tables.find(write, run.execution_id)
    if here != run:
        raise refusals.differs(run.execution_id, "it was begun otherwise")
    entries = {row.number: row for _, row, _ in own if isinstance(row, Stored)}
    for number, owner, _ in write(tables.NEWEST, [key]):
        if max(entries, default=0) > number and owner in driven():
            raise refusals.driven_here(run.execution_id)
    for _, row, definition in own:
        if isinstance(row, Stored):
            write(_ENTRY, tables.entry_values(key, row))
            if definition:
                write(_DEFINE, [fingerprint_in(row), definition])
        else:
            write(_EFFECT, [key, *row])
    _refuse_others(write, run.execution_id, key, entries)


def _refuse_others(write: Read, execution_id: str, key: int, entries: Mapping[int, Stored]) -> None:
    """Raise `ExecutionExists` if another entry stands in the place of one of these."""
    if entries:
        for row in tables.stored_rows(write, key, since=min(entries), upto=max(entries)):
            if row != entries.get(row.number, row):
                raise refusals.differs(execution_id, f"entry {row.number} is another one")
