"""`race()`: many processes and threads resume one run at once, for real."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from durable_nb.lab.forks import Forks
from durable_nb.lab.handover import Report, pack
from durable_nb.lab.start import Start
from durable_nb.model.decisions import Resume
from durable_nb.model.errors import InvalidInput
from durable_nb.runtime.agent import Agent


class Racer(NamedTuple):
    """What one thread of one process got: the status that it brought the run to, or an error."""

    process: int
    thread: int
    won: bool
    got: str
    said: str


def race(
    agent: Agent,
    execution_id: str,
    *,
    processes: int = 4,
    threads: int = 1,
    resume_value: Resume | None = None,
    timeout: float = 60.0,
) -> pd.DataFrame:
    """Let `processes` of `threads` each resume a run in the same moment; a row a thread.

    `won` is who drove the run, `got` the status it came to or the name of the error, `said` the
    output or the error's words. The winner really resumes the run, with `resume_value` for its
    pause. A process that is not done after `timeout` seconds is killed.

    Raises `UnknownExecution`, and `InvalidInput` for numbers that make no race and for an agent
    that cannot be handed over.
    """
    if processes < 1 or threads < 1:
        raise InvalidInput(
            f"{processes} processes of {threads} threads are no race; name two or more"
        )
    agent.checkpointer.get_last(execution_id)  # raises if there is no such run
    packed = pack(agent, agent.checkpointer)
    with tempfile.TemporaryDirectory(prefix="durable_nb-") as folder:
        start = partial(
            Start, packed, execution_id, resume_value, processes=processes, threads=threads
        )
        starts = [start(ready=Path(folder, str(number))) for number in range(processes)]
        racers = _raced(packed, starts, timeout)
    return pd.DataFrame(sorted(racers), columns=Racer._fields)


def _raced(packed: bytes, starts: Sequence[Start], timeout: float) -> list[Racer]:
    """What each thread got, once all are done."""
    found: list[Racer] = []
    with Forks(packed) as forks:
        started = [forks.start(each, timeout=timeout) for each in starts]
        for _ in started:
            number, report = forks.report()
            found += _racers(started.index(number), report)
    return found


def _racers(process: int, report: Report) -> list[Racer]:
    if report.ended != "done":
        return [Racer(process, 0, False, report.error or report.ended, report.text)]
    return [Racer(process, thread, *got) for thread, got in enumerate(report.value)]
