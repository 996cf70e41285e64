"""The process that a crash kills. Its parent starts it with `main()` and nothing else.

It reads a job from its standard input, which stays open as a lifeline: when it closes, the parent
is gone, and the child goes too, with everything that it started.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from typing import NoReturn

from durable_nb.lab.fuse import arm
from durable_nb.lab.handover import Job, Report, tell, unpack
from durable_nb.model.errors import DurableError


def main() -> None:
    job = _received()
    sys.path[:] = job.path
    try:
        agent, store = unpack(job.agent)
        arm(agent, store, job.point, lambda: _killed(job))
        agent.run(job.prompt, execution_id=job.execution_id)
    except BaseException as error:
        tell(job.report, Report(error=type(error).__name__, text=str(error)))
        if isinstance(error, DurableError):
            sys.exit(1)  # the parent raises it again
        raise


def _received() -> Job:
    """The job. From here on the process ends when its parent does."""
    job: Job = pickle.load(sys.stdin.buffer)
    lifeline = os.dup(sys.stdin.fileno())
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())  # a tool that reads gets an empty input
    threading.Thread(target=_follow, args=(lifeline,), name="lifeline", daemon=True).start()
    return job


def _follow(lifeline: int) -> None:
    while os.read(lifeline, 1):
        pass
    _die()


def _killed(job: Job) -> NoReturn:
    tell(job.report, Report(killed=True))
    _die()


def _die() -> NoReturn:
    """SIGKILL to the whole session: nothing is flushed, closed or left running."""
    os.killpg(0, signal.SIGKILL)
    raise AssertionError("a process outlived its SIGKILL")
