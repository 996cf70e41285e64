"""How many runs a SQLite store has and how many need somebody, for the line that `%load_ext` prints.

It imports next to nothing, so that a notebook starts at once; what it cannot read it leaves to the
store itself, which says what is wrong.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
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


class Counts(NamedTuple):
    """Runs in all, those that wait for a person, those that died in a step."""

    runs: int
    paused: int
    crashed: int


def glance(path: Path) -> Counts:
    """Count the runs of the store at `path`. Raises `sqlite3.Error` for what is not a store."""
    locks = locks_for(path)
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=1)) as db, closing(locks):
        ((runs,),) = db.execute(_RUNS).fetchall()
        unfinished = db.execute(_UNFINISHED).fetchall()
        paused = sum(kind == "pause" for kind, _ in unfinished)
        held = locks.held() if len(unfinished) > paused else set()
    crashed = sum(kind != "pause" and writer not in held for kind, writer in unfinished)
    return Counts(runs, paused, crashed)
