"""What exploring costs, beside the goals of DESIGN section 8. Run it: `python tests/bench/bench_views.py`.

Rows are put into a real store by SQL, so that the time goes into reading them.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

import duckdb

from durable_nb import Message, SQLiteCheckpointer, views
from durable_nb.model.entries import End, Run, Turn
from durable_nb.views.mirror import Mirror

ROWS_A_RUN = 10
HALF_A_KB = "x" * 500
DDL = "create table t (a bigint, b text, c text, d text, e bigint, f text, g bigint, h text, i bigint, j text)"


def filled(path: Path, runs: int) -> SQLiteCheckpointer:
    """A store of ended runs, copies of one that was written as every run is."""
    store = SQLiteCheckpointer(path, synchronous="NORMAL")
    first = Run("run-0", "bot", "Refund order 1042", 1_700_000_000_000_000, "run-0")
    said = (Message("user", HALF_A_KB),)
    lease = store.create(first, Turn(0, said), at=first.created_at, writer=1)
    for turn in range(1, ROWS_A_RUN - 1):
        store.append(lease, Turn(turn, said), at=first.created_at + turn)
    store.append(lease, End(ROWS_A_RUN - 1, "completed", "done"), at=first.created_at + 99)
    store.release(lease)
    with sqlite3.connect(path) as db:
        for table, key, id_ in (("runs", "key", "id"), ("entries", "run", None)):
            _copy(db, table, key, id_, runs)
    db.close()
    return store


def _copy(db: sqlite3.Connection, table: str, key: str, id_: str | None, runs: int) -> None:
    """Every row of the first run again, for each further run."""
    names = [name for _, name, *_ in db.execute(f"pragma table_info({table})") if name != "seq"]
    new = {key: "first.key_of + n.value", id_: "'run-' || n.value", "session": "'run-' || n.value"}
    columns = [new.get(name, f"first.{name}") for name in names]
    db.execute(
        f"insert into {table} ({', '.join(names)}) select {', '.join(columns)} "
        f"from (with recursive n(value) as (select 1 union all select value + 1 from n "
        f"where value < {runs - 1}) select value from n) as n, "
        f"(select *, {key} as key_of from {table}) as first "
        f"order by n.value"
    )


class Took(NamedTuple):
    """Seconds by the clock, and of this process's processors: the machine may be shared."""

    clock: float
    work: float


def took(action: Callable[[], object]) -> Took:
    clock, work = time.perf_counter(), time.process_time()
    action()
    return Took(time.perf_counter() - clock, time.process_time() - work)


def bare(store: SQLiteCheckpointer) -> None:
    """The same query handed to DuckDB, and nothing else."""
    source = sqlite3.connect(f"file:{store.path}?mode=ro", uri=True)
    target = duckdb.connect(":memory:")
    target.execute(DDL)
    rows = source.execute(
        "select e.seq, r.id, r.agent, e.frame, e.number, e.kind, e.turn, e.tool, e.at, e.body "
        "from entries as e join runs as r on r.key = e.run order by e.seq"
    )
    with target.appender("t") as appender:
        appender.append_rows(rows)
    source.close()
    target.close()


def again(store: SQLiteCheckpointer) -> SQLiteCheckpointer:
    """The same file as a process sees it that has not looked at it yet."""
    return SQLiteCheckpointer(store.path)


Line: TypeAlias = tuple[str, Took, str]


def lists(folder: Path, runs: int) -> Iterator[Line]:
    store = filled(folder / f"runs-{runs}.sqlite3", runs)
    list_10 = filled(folder / "ten.sqlite3", 10_000)
    yield f"runs() of {runs:,} runs, cold", took(lambda: views.runs(store=store)), "0.8 s"
    yield "runs() again, unchanged", took(lambda: views.runs(store=store)), "0.1 s"
    yield "store.runs() of 10,000", took(list_10.runs), "0.2 s"
    page = took(lambda: store.sessions(limit=20))
    yield f"a first page of {runs:,} sessions", page, ""
    twenty = filled(folder / "twenty.sqlite3", 20_000)
    yield "a first page of 20,000 sessions", took(lambda: twenty.sessions(limit=20)), "50 ms"
    yield "steps() of one run", took(lambda: views.steps("run-7", store=store)), ""
    yield from mirrored(store, runs * ROWS_A_RUN)


def mirrored(store: SQLiteCheckpointer, rows: int) -> Iterator[Line]:
    """The two ways in turn, as others use the machine, and of each the better time."""
    pairs = [(took(lambda: bare(store)), took(lambda: taken(again(store)))) for _ in range(2)]
    alone, whole = (min(each) for each in zip(*pairs, strict=True))
    yield f"{rows:,} rows, a bare append_rows", alone, ""
    goal = f"× 1.3, this is × {whole.clock / alone.clock:.2f}"
    yield f"{rows:,} rows into the mirror", whole, goal
    mirror = taken(store)
    counted = "select step_type, count(*) as n from steps group by all"
    with mirror.cursor() as cursor:
        yield "an aggregate over them", took(lambda: cursor.execute(counted).fetchall()), "0.1 s"
    yield "refresh with nothing new", took(lambda: mirror.take(store)), "5 ms"
    views.sql(counted, store=store)
    yield "sql() with nothing new", took(lambda: views.sql(counted, store=store)), ""
    yield "tool_calls() of all runs", took(lambda: views.tool_calls(store=store)), ""


def taken(store: SQLiteCheckpointer) -> Mirror:
    mirror = Mirror()
    mirror.take(store)
    return mirror


def main(runs: int = 100_000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        views.runs(store=SQLiteCheckpointer(Path(folder, "none")))  # imports are not measured
        for what, how_long, goal in lists(Path(folder), runs):
            clock, work = (f"{each * 1000:>10.1f} ms" for each in how_long)
            print(f"{what:<40}{clock}{work} of work{'   goal ' + goal if goal else ''}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
