"""Agents that work in a directory, built again by any process, and children to lose them in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from durable_nb import Agent, Checkpointer, RunResult, SQLiteCheckpointer
from durable_nb.runtime.scope import scope
from durable_nb.workspace import Workspace
from tests.support.agents import bot
from tests.support.stores import Dying

_CHILD = """
import sys
sys.path.append(sys.argv[1])
from tests.workspace import site
from tests.workspace.plans import PLANS
"""
_TOUCHES_FILES = ("open", "os.mkdir", "os.remove", "os.rename")


def store_in(folder: Path) -> SQLiteCheckpointer:
    return SQLiteCheckpointer(folder / "runs.sqlite3", synchronous="NORMAL")


def agent(folder: Path, script: Sequence[Any], store: Checkpointer | None = None) -> Agent:
    """Works in the workdir of its runs; its store is beside that."""
    return bot(store or store_in(folder), script, *Workspace().tools())


def start(agent: Agent, folder: Path) -> RunResult:
    site = folder / "site"
    site.mkdir(exist_ok=True)
    return agent.run("Go", execution_id="r", workdir=site)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dies_at_write(folder: Path, script: Sequence[Any], at: int, when: Any) -> None:
    """Drive a run that is killed at its n-th write to the store."""
    dying = Dying(store_in(folder), at, when, die)
    start(agent(folder, script, cast("Checkpointer", dying)), folder)


def dies_at_touch(folder: Path, script: Sequence[Any], at: int) -> None:
    """Drive a run that is killed just before its n-th operation on the folder's files in a tool."""
    touched = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal touched
        if event in _TOUCHES_FILES and scope() is not None and not elsewhere(arguments[0]):
            touched += 1
            if touched == at:
                die()

    def elsewhere(path: object) -> bool:
        """Whether a name leads out of the folder: to a module, or to the project's settings."""
        return isinstance(path, str) and os.path.isabs(path) and not path.startswith(str(folder))

    sys.addaudithook(hook)
    start(agent(folder, script), folder)


def lose(folder: Path, drive: Callable[[], None]) -> None:
    """Do it in a forked child, and note in the folder by which signal that ended, if by any."""
    process = os.fork()
    if not process:
        drive()
        os._exit(0)
    _, status = os.waitpid(process, 0)
    (folder / "ended").write_text(str(os.waitstatus_to_exitcode(status)))


def child(statement: str, *arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    """A child that does a statement; `sys.argv[2:]` are the arguments."""
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", _CHILD + statement, root, *map(str, arguments)]
    return subprocess.Popen(command, **options)


@contextmanager
def running(folder: Path, plan: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A child that drives a run of a plan, until the context ends."""
    statement = "from pathlib import Path; folder = Path(sys.argv[2])\n"
    statement += "site.start(site.agent(folder, PLANS[sys.argv[3]]), folder)"
    with child(statement, folder, plan, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(condition: Callable[[], object]) -> None:
    """Poll; the test's own time limit ends it."""
    while not condition():
        time.sleep(0.02)


def is_alive(process: int) -> bool:
    """Whether a process still does anything; what waits to be reaped does not."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
