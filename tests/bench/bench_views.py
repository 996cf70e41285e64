"""What exploring costs, beside the goals of DESIGN section 8. Run it: `python tests/bench/bench_views.py`.

Rows are put into a real store by SQL, so that the time goes into reading them.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from durable_nb import Message, SQLiteCheckpointer, views
from durable_nb.model.entries import End, Run, Turn
from durable_nb.views.mirror import mirror_of

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


def seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


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


def measured(folder: Path, runs: int) -> list[tuple[str, float, str]]:
    store = filled(folder / "runs.sqlite3", runs)
    views.runs(store=SQLiteCheckpointer(folder / "none"))  # imports are not what is measured
    lines = [(f"runs() of {runs:,} runs, cold", seconds(lambda: views.runs(store=store)), "0.8 s")]
    lines.append(("runs() again, unchanged", seconds(lambda: views.runs(store=store)), "0.1 s"))
    lines.append(("steps() of one run", seconds(lambda: views.steps("run-7", store=store)), ""))
    alone = seconds(lambda: bare(store))
    taking = seconds(lambda: mirror_of(store).take(store))
    total = f"{runs * ROWS_A_RUN:,}"
    lines.append((f"{total} rows, a bare append_rows", alone, ""))
    lines.append((f"{total} rows into the mirror", taking, f"{alone * 1.3:.2f} s"))
    counted = "select step_type, count(*) as n from steps group by all"
    with mirror_of(store).cursor() as cursor:
        asked = seconds(lambda: cursor.execute(counted).fetchall())
    lines.append(("an aggregate over them", asked, "0.1 s"))
    lines.append(("refresh with nothing new", seconds(lambda: _refresh(store)), "5 ms"))
    lines.append(("sql() with nothing new", seconds(lambda: views.sql(counted, store=store)), ""))
    return lines


def _refresh(store: SQLiteCheckpointer) -> None:
    mirror_of(store).take(store)


def main(runs: int = 100_000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for what, took, goal in measured(Path(folder), runs):
            print(f"{what:<45}{took * 1000:>10.1f} ms{'   goal ' + goal if goal else ''}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
