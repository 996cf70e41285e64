"""What is the same on SQLite and on PostgreSQL: the columns of the log's tables, and queries of
which both take the text. `?` stands for a value.

A backend passes in how it reads. Nothing here writes, locks or opens anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol

from durable_nb.core.nodes import Pending
from durable_nb.model.codec import Stored
from durable_nb.model.entries import Log, Row, Run
from durable_nb.model.values import dumps, loads
from durable_nb.stores import refusals
from durable_nb.stores.listing import effect_row, pending_of, session_of
from durable_nb.stores.logs import fingerprint_of, history
from durable_nb.stores.protocol import (
    Begun,
    Branch,
    Effect,
    EffectRow,
    Kept,
    Lease,
    RunRow,
    Session,
    Unknown,
)

ENTRY = "run, frame, number, kind, turn, tool, at, writer, checksum, body"

RUN = "id, agent, prompt, created, session, fingerprint, workdir, tags, parent, base"

NEWEST = "select number, writer, kind from entries where run = ? order by number desc limit 1"

_FIND = """
select r.key, r.id, r.agent, r.prompt, r.created, r.session, d.definition, r.fingerprint,
  r.workdir, r.tags, r.parent, r.base
from runs as r join definitions as d using (fingerprint) where r.id = ?
"""

_ROWS = """
select number, frame, kind, turn, tool, at, writer, checksum, body
from entries where run = ? and number between ? and ? order by number
"""

DEFINITION = "select definition from definitions where fingerprint = ?"

_NEWEST_RUNS = """
from runs as r join entries as e
  on e.seq = (select seq from entries where run = r.key order by number desc limit 1)
"""  # by `seq`, the key of a row: by `number`, the index would be searched twice a run

_RUN_ROW = """
  r.id, r.session, r.agent,
  case
    when e.kind = 'pause' then 'paused'
    when e.kind <> 'end' then null
    when e.body like '{"v":_,"status":"completed"%' then 'completed'
    when e.body like '{"v":_,"status":"cancelled"%' then 'cancelled'
    else 'failed'
  end,
  r.prompt, e.number - r.base, r.created, e.at, r.tags, r.workdir, r.parent
"""  # a `RunRow`: how a run ended is the first that is stored of its end. What is damaged is failed

RUN_ROWS = f"select {_RUN_ROW} {_NEWEST_RUNS} order by r.key desc"

_ENTRY = """
  r.id, r.agent, e.frame, e.number, e.kind, e.turn, e.tool, e.at, e.body
from entries as e join runs as r on r.key = e.run
"""

_WAITS = "e.kind = 'pause' and e.number = (select max(number) from entries where run = e.run)"

_EFFECT_ROWS = """
select r.id, c.function, c.key, c.number,
  case when c.kept is null then (select max(number) from entries where run = c.run) end,
  c.attempts, c.begun, c.kept, c.value
from idempotency_cache as c join runs as r on r.key = c.run
"""

_SESSIONS = """
select s.session, s.runs, f.created, f.prompt, n.id
from (
  select session, count(*) as runs, min(key) as first, max(key) as newest
  from runs group by session order by max(key) desc limit ? offset ?) as s
join runs as f on f.key = s.first join runs as n on n.key = s.newest
order by s.newest desc
"""

_SESSION = "select id from runs where session = ? order by key"

_BRANCHES = "select id, base from runs where parent = ? order by key"

_EFFECT = "select begun, number, kept, value from idempotency_cache where run = ? and key = ?"

_EFFECTS = """
select function, key, attempts, begun, kept from idempotency_cache where run = ? order by begun, key
"""

_PENDING = """
select r.id, r.agent, e.number, e.frame, e.kind, e.turn, e.tool, e.at, e.writer, e.checksum, e.body
from entries as p join runs as r on r.key = p.run
join entries as e on e.run = p.run and e.number >= coalesce((
  select number from entries where run = p.run and kind = 'tool_call' order by number desc limit 1
), 0)
where p.kind = 'pause' and p.number = (select max(number) from entries where run = p.run)
order by p.seq, e.number
"""  # for each open pause, the rows of the step that paused

_MAX_NUMBER = 2**62  # no run has so many entries, no store so many sessions


class Read(Protocol):
    def __call__(
        self, statement: str, values: Sequence[object] = (), /
    ) -> Sequence[tuple[Any, ...]]:
        """All rows of a query. Raises `ValueError` for text that no column can hold."""


def find(read: Read, execution_id: str) -> tuple[int, Run]:
    """A run and its key. Raises `UnknownExecution`."""
    try:
        found = read(_FIND, [execution_id]) if isinstance(execution_id, str) else []
    except ValueError:  # text that no column can hold is no run's id
        found = []
    key, *columns = refusals.known(execution_id, found)
    return key, _run_from(columns)


def load(read: Read, execution_id: str, driven: Callable[[], Collection[int]]) -> Log:
    """The run with its history. One that nobody seems to drive is looked at again, since who was
    seen in its newest row may have let go and another have claimed it meanwhile."""
    key, run = find(read, execution_id)
    while True:
        own = stored_rows(read, key)
        newest = refusals.known(execution_id, own[-1:])
        live = newest.writer in driven()
        if live or read(NEWEST, [key]) == [(newest.number, newest.writer, newest.kind)]:
            rows = history(run, own, partial(_parent, read))
            return Log(run, rows, live, _definition(read, run, rows))


def effect(read: Read, lease: Lease, key: str) -> Effect:
    for begun, number, kept, value in read(_EFFECT, [lease.run, key]):
        return Begun(begun, number) if kept is None else Kept(loads(value))
    return Unknown()


def effects(read: Read, execution_id: str) -> Sequence[EffectRow]:
    key, _ = find(read, execution_id)
    return [effect_row(*columns) for columns in read(_EFFECTS, [key])]


def session(read: Read, execution_id: str) -> Sequence[str]:
    _, run = find(read, execution_id)
    return [id_ for (id_,) in read(_SESSION, [run.session])]


def branches(read: Read, execution_id: str) -> Sequence[Branch]:
    _, run = find(read, execution_id)
    return [Branch(*columns) for columns in read(_BRANCHES, [run.execution_id])]


def entry_rows(place: str, where: str) -> str:
    """The query for entries as explorers take them, with the column that says their `place`."""
    return f"select e.{place}, {_ENTRY} where {where}"


def waiting_rows(place: str) -> str:
    """The query for those of them that are pauses which wait for a decision, oldest first."""
    return f"{entry_rows(place, _WAITS)} order by e.seq"


def effect_rows(read: Read, execution_id: str | None) -> Sequence[tuple[Any, ...]]:
    """What `@idempotent` functions did, in all runs or in one, as explorers take it."""
    where, of = ("", []) if execution_id is None else ("where r.id = ?", [execution_id])
    return read(f"{_EFFECT_ROWS} {where} order by c.run, c.begun, c.key", of)


def newest(where: str = "") -> str:
    """The query for `Newest` rows, of the newest run first."""
    return f"select {_RUN_ROW}, e.number, e.writer {_NEWEST_RUNS} {where} order by r.key desc"


def sessions(
    read: Read,
    limit: int | None,
    offset: int,
    statuses: Callable[[Sequence[str]], Sequence[RunRow]],
) -> Sequence[Session]:
    """A page of the conversations. `statuses` are the rows of the runs that it ends with."""
    found = read(_SESSIONS, [_MAX_NUMBER if limit is None else limit, offset])
    by_id = {row.execution_id: row for row in statuses([row[-1] for row in found])}
    return [
        session_of(session, runs, created, prompt, by_id[newest])
        for session, runs, created, prompt, newest in found
        if newest in by_id
    ]


def pending(read: Read, load: Callable[[str], Log]) -> Sequence[Pending]:
    """The pauses that wait for a decision, oldest first."""
    steps = groupby(read(_PENDING), key=itemgetter(0, 1))
    found = (
        pending_of(execution_id, agent, (Stored(*row[2:]) for row in step), load)
        for (execution_id, agent), step in steps
    )
    return [each for each in found if each is not None]


def entry_values(run: int, s: Stored) -> tuple[object, ...]:
    """An entry in the order of `ENTRY`."""
    return run, s.frame, s.number, s.kind, s.turn, s.tool, s.at, s.writer, s.checksum, s.body


def run_values(run: Run) -> tuple[object, ...]:
    """A run in the order of `RUN`; `_run_from` says in which order it comes back."""
    tags, workdir = dumps(list(run.tags)), run.workdir
    return (
        *(run.execution_id, run.agent, run.prompt, run.created_at, run.session),
        *(run.fingerprint, workdir, tags, run.parent, run.base),
    )


def _run_from(columns: Sequence[Any]) -> Run:
    id_, agent, prompt, created, session, definition, fingerprint, *rest = columns
    workdir, tags, parent, base = rest
    return Run(
        execution_id=id_,
        agent=agent,
        prompt=prompt,
        created_at=created,
        session=session,
        definition=definition,
        fingerprint=fingerprint,
        workdir=workdir,
        tags=tuple(loads(tags)),
        parent=parent,
        base=base,
    )


def stored_rows(
    read: Read, key: int, *, since: int = 0, upto: int = _MAX_NUMBER
) -> Sequence[Stored]:
    return [Stored(*columns) for columns in read(_ROWS, [key, since, upto])]


def _parent(read: Read, execution_id: str, upto: int) -> tuple[Run, Sequence[Stored]]:
    key, run = find(read, execution_id)
    return run, stored_rows(read, key, upto=upto)


def _definition(read: Read, run: Run, rows: Sequence[Row]) -> str:
    fingerprint = fingerprint_of(run, rows)
    if fingerprint == run.fingerprint:
        return run.definition
    return str(read(DEFINITION, [fingerprint])[0][0])
