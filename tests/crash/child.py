"""What a child process does: one task, whose outcome it tells its parent.

It drives a run of an agent over the folder's store; with `at` and `when` it kills itself with
SIGKILL at that write; with `ready` it says so and waits for the file `go`.
"""

from __future__ import annotations

import os
import signal
from multiprocessing.connection import Connection
from typing import Any

from durable_nb import Checkpointer, DurableError, Resume
from tests.crash.agents import hold, make
from tests.support.stores import STORES, Dying


def work(task: dict[str, Any], tell: Connection) -> None:
    """Do the task and say what it came to."""
    store: Checkpointer = STORES[task["kind"]](task["folder"])
    if "at" in task:
        store = Dying(store, task["at"], task["when"], die)  # type: ignore[assignment]
    agent = make(task["agent"], store, task["folder"])
    if task.get("ready"):
        tell.send("ready")
        hold(task["folder"])
    try:
        tell.send(_drive(agent, task))
    except DurableError as error:
        tell.send(type(error).__name__)


def _drive(agent: Any, task: dict[str, Any]) -> str:
    if task["do"] == "run":
        return agent.run("Refund order 1042", execution_id=task["id"]).status
    approve = Resume(True, by=task.get("by")) if task["do"] == "approve" else None
    return agent.resume(task["id"], resume_value=approve, pause=task.get("pause")).status


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
