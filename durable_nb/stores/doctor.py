"""How a store is: its rows against their checksums, who drives what, what is in doubt.

Only reads, and makes nothing: a store that is not there is an error here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime

from durable_nb.core.nodes import moment
from durable_nb.model.codec import Stored, decode, encode
from durable_nb.model.entries import End, Pause
from durable_nb.model.errors import StoreCorrupt
from durable_nb.stores.inside import Begun, Inside
from durable_nb.stores.protocol import Checkpointer
from durable_nb.stores.sqlite import SQLiteCheckpointer
from durable_nb.stores.sqlite_inside import inside_sqlite


@dataclass(frozen=True, slots=True)
class Driven:
    """A run that a living process drives. `owner` says which, as far as can be known."""

    execution_id: str
    number: int
    owner: str


@dataclass(frozen=True, slots=True)
class Doubt:
    """A call that had begun and left no result, in a run that nobody drives and that can go on."""

    execution_id: str
    number: int
    call: str
    begun_at: datetime


@dataclass(frozen=True, slots=True)
class Health:
    """What `examine` found. All is well if there are no `faults`: the rest is for information."""

    store: str
    version: int
    runs: int
    entries: int
    faults: tuple[str, ...]
    driven: tuple[Driven, ...]
    in_doubt: tuple[Doubt, ...]
    wal_bytes: int | None


@dataclass(slots=True)
class _Round:
    """What one pass over all entries adds up to. `over`: runs that cannot go on; `asking`: runs
    that ask a person about a tool in doubt."""

    newest: dict[str, Stored] = field(default_factory=dict)
    over: set[str] = field(default_factory=set)
    asking: set[str] = field(default_factory=set)
    entries: int = 0
    faults: list[str] = field(default_factory=list)


def examine(store: Checkpointer) -> Health:
    """Read the whole store. Raises `StoreUnusable` for what is no store, or is not there."""
    with _inside(store) as inside:
        seen = _look_at(inside)
    driven = _driven(seen, inside.owners)
    idle = seen.newest.keys() - seen.over - {each.execution_id for each in driven}
    return Health(
        store=repr(store),
        version=inside.version,
        runs=len(seen.newest),
        entries=seen.entries,
        faults=(*inside.faults, *seen.faults),
        driven=driven,
        in_doubt=tuple(_doubts(seen, inside, idle)),
        wal_bytes=inside.wal_bytes,
    )


def _inside(store: Checkpointer) -> AbstractContextManager[Inside]:
    if isinstance(store, SQLiteCheckpointer):
        return inside_sqlite(store.path)
    dsn, schema = getattr(store, "dsn", None), getattr(store, "schema", None)
    if isinstance(dsn, str) and isinstance(schema, str):
        from durable_nb.stores.pg_inside import inside_postgres  # psycopg is an extra

        return inside_postgres(dsn, schema)
    return nullcontext(_inside_of_any(store))


def _inside_of_any(store: Checkpointer) -> Inside:
    """By the protocol alone, which refuses a damaged row itself."""
    logs = [store.load(run.execution_id) for run in store.runs()]
    ids = [log.run.execution_id for log in logs]
    return Inside(
        version=1,
        faults=(),
        rows=((log.run.execution_id, encode(row)) for log in logs for row in log.own),
        begun=[
            Begun(id_, 0, each.function, round(each.begun_at.timestamp() * 1_000_000))
            for id_ in ids
            for each in store.effects(id_)
            if each.kept_at is None
        ],
        owners={log.rows[-1].writer: "this process" for log in logs if log.live},
    )


def _look_at(inside: Inside) -> _Round:
    seen = _Round()
    try:
        for execution_id, stored in inside.rows:
            seen.entries += 1
            seen.newest[execution_id] = stored
            _check(seen, execution_id, stored)
    except StoreCorrupt as error:  # nothing after this can be read
        seen.faults.append(str(error))
    return seen


def _check(seen: _Round, execution_id: str, stored: Stored) -> None:
    try:
        entry = decode(stored, execution_id).entry
    except StoreCorrupt as error:
        seen.faults.append(str(error))
        return
    seen.asking.discard(execution_id)
    if isinstance(entry, End) and entry.status != "failed":
        seen.over.add(execution_id)
    if isinstance(entry, Pause) and entry.asks == "in_doubt" and entry.key is None:
        seen.asking.add(execution_id)


def _driven(seen: _Round, owners: Mapping[int, str]) -> tuple[Driven, ...]:
    return tuple(
        Driven(execution_id, newest.number, owners[newest.writer])
        for execution_id, newest in seen.newest.items()
        if newest.writer in owners
    )


def _doubts(seen: _Round, inside: Inside, idle: set[str]) -> Iterator[Doubt]:
    """Tools that were running when their process died, and `@idempotent` calls without a result."""
    for execution_id, newest in seen.newest.items():
        died = newest.kind in ("tool_call", "answer", "reentry") and newest.tool is not None
        if execution_id in idle and (died or execution_id in seen.asking):
            tool = f"tool {newest.tool}"
            yield Doubt(execution_id, newest.number, tool, moment(newest.at))
    for begun in inside.begun:
        if begun.execution_id in idle:
            call = f"@idempotent {begun.function}"
            yield Doubt(begun.execution_id, begun.number, call, moment(begun.at))
