"""What a child process does: one task, given as JSON, whose outcome is its last line.

It drives a run of an agent over the folder's store; with `at` and `when` it kills itself with
SIGKILL at that write; with `ready` it says so and waits for the file `go`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from durable_nb import Checkpointer, DurableError, Resume, SQLiteCheckpointer
from tests.crash.agents import hold, make
from tests.support.stores import Dying


def main(task: dict[str, Any]) -> str:
    folder = Path(task["folder"])
    store: Checkpointer = SQLiteCheckpointer(folder / "runs.sqlite3")
    if "at" in task:
        store = Dying(store, task["at"], task["when"], die)  # type: ignore[assignment]
    agent = make(task["agent"], store, folder)
    if task.get("ready"):
        print("ready", flush=True)
        hold(folder)
    try:
        if task["do"] == "run":
            return agent.run("Refund order 1042", execution_id=task["id"]).status
        approve = Resume(True, by=task.get("by")) if task["do"] == "approve" else None
        return agent.resume(task["id"], resume_value=approve, pause=task.get("pause")).status
    except DurableError as error:
        return type(error).__name__


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    print(main(json.loads(sys.argv[1])), flush=True)
