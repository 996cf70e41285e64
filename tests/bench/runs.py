"""`python -m tests.bench.runs [TURNS]`: what a run costs beside raw SQLite (DESIGN section 8).

All in one process and in turns, so that the ratios hold when the machine's speed drifts. Another
system of this kind is measured beside ours where it is installed (`requirements.txt` here).
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median

from durable_nb import (
    Agent,
    Checkpointer,
    MemoryCheckpointer,
    Resume,
    ScriptedModel,
    SQLiteCheckpointer,
    call,
    interrupt,
)
from durable_nb.core.nodes import Checkpoint
from tests.bench import others
from tests.bench.costs import machine

ROUNDS = 5
RESULT = "x" * 1000


def work() -> str:
    """1 KB of result."""
    return RESULT


def ours(turns: int, store: Checkpointer, *, model: type[ScriptedModel] = ScriptedModel) -> Agent:
    llm = model([call("work")] * turns + ["done"])
    return Agent("bench", llm, [work], checkpointer=store, max_turns=turns + 1)


def raw(turns: int, file: Path, synchronous: str) -> None:
    """The least that a durable run could write: a row before each model call and each tool."""
    with sqlite3.connect(file, isolation_level=None) as db:
        db.execute("pragma journal_mode = wal")
        db.execute(f"pragma synchronous = {synchronous}")
        db.execute("create table rows (id integer primary key, kind text, body text)")
        for _ in range(turns):
            db.execute("insert into rows (kind, body) values ('tool', ?)", ["y" * 60])
            db.execute("insert into rows (kind, body) values ('turn', ?)", [RESULT])
    db.close()


def size(file: Path) -> int:
    """Bytes on disk, the write-ahead log included."""
    return sum(each.stat().st_size for each in file.parent.glob(f"{file.name}*"))


def timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def against_raw(turns: int, synchronous: str) -> Iterator[str]:
    """A run's time and bytes over raw SQLite's."""
    mine, theirs, bytes_mine, bytes_theirs = [], [], 0, 0
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            file, plain = Path(folder, "runs.sqlite3"), Path(folder, "raw.sqlite3")
            theirs.append(timed(lambda: raw(turns, plain, synchronous)))  # noqa: B023
            bytes_theirs = size(plain)
            store = SQLiteCheckpointer(file, synchronous=synchronous)  # type: ignore[arg-type]
            mine.append(timed(lambda: ours(turns, store).run("go")))  # noqa: B023
            bytes_mine = size(file)
            store.close()
    ratio = median(a / b for a, b in zip(mine, theirs, strict=True))
    yield (
        f"{turns} turns at {synchronous}: {median(mine):.2f} s, raw {median(theirs):.2f} s, "
        f"× {ratio:.1f}; {bytes_mine / 1e6:.2f} MB, × {bytes_mine / bytes_theirs:.2f}"
    )


class Watched(ScriptedModel):
    """Notes when it is asked."""

    times: list[float]

    def complete(self, messages, tools):  # type: ignore[no-untyped-def]
        self.times.append(time.perf_counter())
        return super().complete(messages, tools)


def flatness(turns: int) -> Iterator[str]:
    """What a late turn costs over an early one, on the memory store."""
    ratios = []
    for _ in range(ROUNDS):
        agent = ours(turns, MemoryCheckpointer(), model=Watched)
        agent.llm.times = times = []  # type: ignore[attr-defined]
        agent.run("go")
        took = [after - before for before, after in pairwise(times)]
        ratios.append(median(took[-50:]) / median(took[10:60]))
    yield f"turn {turns} over turn 10: × {median(ratios):.2f}"


def resumes(turns: int) -> Iterator[str]:
    """From `resume` to the tool, for a run that paused at its last turn."""
    reached: list[float] = []

    def gate() -> str:
        interrupt("why")
        reached.append(time.perf_counter())
        return "ok"

    took = []
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteCheckpointer(Path(folder, "runs.sqlite3"))
        script = [call("work")] * turns + [call("gate"), "done"]
        options = {"checkpointer": store, "max_turns": turns + 2}
        for number in range(ROUNDS):
            agent = Agent("bench", ScriptedModel(script), [work, gate], **options)  # type: ignore[arg-type]
            agent.run("go", execution_id=f"r{number}")
            started = time.perf_counter()
            agent.resume(f"r{number}", resume_value=Resume(True))
            took.append(reached[-1] - started)
        store.close()
    yield f"resume of a run paused at turn {turns}: {median(took) * 1000:.0f} ms to the tool"


def listings(runs: int) -> Iterator[str]:
    """`store.runs()` and the rows of one run, among many."""
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteCheckpointer(Path(folder, "runs.sqlite3"), synchronous="NORMAL")
        for number in range(runs):
            ours(1, store).run("go", execution_id=f"r{number}")
        all_runs = timed(store.runs)
        first_page = timed(lambda: store.sessions(limit=50))
        rows: list[Checkpoint] = []
        one = timed(lambda: rows.extend(store.list("r1")))
        store.close()
    yield (
        f"{runs} runs listed in {all_runs * 1000:.0f} ms, the first 50 sessions in "
        f"{first_page * 1000:.0f} ms, the {len(rows)} rows of one in {one * 1000:.1f} ms"
    )


def main(turns: int = 1000) -> None:
    print(f"on {machine()}")
    for line in (
        *against_raw(turns, "FULL"),
        *against_raw(turns, "NORMAL"),
        *flatness(turns),
        *resumes(turns),
        *listings(2000),
        *others.measured(turns),
    ):
        print("-", line, flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
