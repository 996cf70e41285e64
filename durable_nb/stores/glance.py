"""What a notebook wants to know of a SQLite store at once: how many runs need somebody, for the line
that `%load_ext` prints, and names of runs and steps, for whoever completes them.

It imports next to nothing, so that a notebook starts at once; what it cannot read it leaves to the
store itself, which says what is wrong. No look for a name takes longer the more runs there are.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from durable_nb.stores.locks import locks_for

_RUNS = "select count(*) from runs"

_UNFINISHED = """
select e.kind, e.writer from runs as r join entries as e
  on e.run = r.key and e.number = (select max(number) from entries where run = r.key)
where e.kind <> 'end'
"""

_NEWEST = """
select id from (select id, key from runs order by key desc limit 2000)
where substr(id, 1, ?1) = ?2 order by key desc limit ?3
"""

_BY_NAME = "select id from runs where id >= ?1 and id < ?2 order by id limit ?3"

_STEPS = """
select number, kind, turn, tool from entries where run = (select key from runs where id = ?1)
order by number desc limit ?2
"""

_LAST = "\U0010ffff"  # no character comes after it


class Counts(NamedTuple):
    """Runs in all, those that wait for a person, those that died in a step."""

    runs: int
    paused: int
    crashed: int


class Seen(NamedTuple):
    """A row of a run, as far as it has a place: `turn:0/tool:refund` is of turn 0 and tool refund."""

    number: int
    kind: str
    turn: int
    tool: str | None


def glance(path: Path) -> Counts:
    """Count the runs of the store at `path`. Raises `sqlite3.Error` for what is not a store."""
    with closing(locks_for(path)) as locks, _opened(path) as db:
        ((runs,),) = db.execute(_RUNS).fetchall()
        unfinished = db.execute(_UNFINISHED).fetchall()
        paused = sum(kind == "pause" for kind, _ in unfinished)
        held = locks.held() if len(unfinished) > paused else set()
    crashed = sum(kind != "pause" and writer not in held for kind, writer in unfinished)
    return Counts(runs, paused, crashed)


def names(path: Path, prefix: str, limit: int) -> Sequence[str]:
    """Ids of runs that begin so: those of the newest runs first, then some of the others. Raises
    `sqlite3.Error`."""
    with _opened(path) as db:
        newest = db.execute(_NEWEST, [len(prefix), prefix, limit]).fetchall()
        others = db.execute(_BY_NAME, [prefix, prefix + _LAST, limit]).fetchall()
    return list(dict.fromkeys(name for (name,) in (*newest, *others)))[:limit]


def steps(path: Path, execution_id: str, limit: int) -> Sequence[Seen]:
    """The newest of a run's own rows, newest first. Raises `sqlite3.Error`."""
    with _opened(path) as db:
        return [Seen(*row) for row in db.execute(_STEPS, [execution_id, limit]).fetchall()]


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=1)) as db:
        yield db
