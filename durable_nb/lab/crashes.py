"""`crash()`: run a prompt in a real child process, and kill it where you say."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from durable_nb.core.explain import explain
from durable_nb.core.nodes import Checkpoint, listing
from durable_nb.core.state import state_of
from durable_nb.lab.handover import Job, Report, pack, told
from durable_nb.lab.points import Point, When, point
from durable_nb.model import errors
from durable_nb.model.errors import DurableError, InvalidInput, UnknownExecution
from durable_nb.runtime.agent import Agent
from durable_nb.stores.protocol import Checkpointer

_HOME = str(Path(__file__).parents[2])  # the child imports the durable_nb that its parent did
_CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
from durable_nb.lab.child import main
main()
"""


class _Printer(Protocol):
    def text(self, text: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Crash:
    """A run that was killed. `str()` tells what is left of it.

    `signal` is what ended the child, `rows` are those on disk, oldest first, and `explain` says in
    words what a resume will do.
    """

    execution_id: str
    at: str
    when: When
    signal: int
    rows: Sequence[Checkpoint]
    explain: str

    def __str__(self) -> str:
        name = signal.Signals(self.signal).name
        head = f"run {self.execution_id!r}: its process got {name} {self.when} {self.at}"
        return f"{head}\n{listing(self.rows)}\n{self.explain}"

    def _repr_pretty_(self, printer: _Printer, cycle: bool) -> None:
        printer.text(str(self))


def crash(
    agent: Agent, prompt: str, *, at: str, when: When, execution_id: str | None = None
) -> Crash:
    """Start a run in a child process, which kills itself with SIGKILL at the step `at`.

    `at` is a node: `turn:N` (the model), `turn:N/tool:NAME` (the first such call) or `run_end`. Its
    row is on disk in every case, and none after it. `when` is

    - `before`: the row has just been written; the step has not begun.
    - `during`: the step's body (the tool's function, the model's `complete`) has made its first
      call, and that call is over: it returned or raised. For a tool that is the first thing it does;
      for a model, it has been asked and its reply is not back. A body without a call dies as it ends.
    - `after`: the body returned or raised an error; what it did is done, and nobody has noted it.

    `run_end` has no body: `before` is when its row is there, `after` when the run is let go of too.

    The child is a real process: the agent goes there by cloudpickle, with the store it uses here,
    and what it prints is shown here. It ends with this process, and on *interrupt kernel*.

    Raises `InvalidInput` if the run never comes to that point (then it has run as far as it went),
    for an agent that cannot be handed over and for a `MemoryCheckpointer`; and what `agent.run`
    raises, such as `ExecutionExists`.
    """
    where = _checked(agent, point(at, when))
    execution_id = agent.ports.new_id() if execution_id is None else execution_id
    packed = pack(agent)
    with tempfile.TemporaryDirectory(prefix="durable_nb-") as folder:
        report_to = str(Path(folder, "report"))
        job = Job(packed, prompt, execution_id, where, report_to, tuple(sys.path))
        code = _spend_a_child(job)
        report = told(job.report)
    if not report.killed:
        raise _survived(agent.checkpointer, job, report, code)
    log = agent.checkpointer.load(execution_id)
    rows = agent.checkpointer.list(execution_id)
    return Crash(execution_id, where.node, where.when, -code, rows, explain(state_of(log)))


def _checked(agent: Agent, where: Point) -> Point:
    if where.tool is not None and where.tool not in agent.toolbox:
        names = ", ".join(tool.name for tool in agent.tools)
        raise InvalidInput(f"{agent!r} has no tool {where.tool!r}; it has {names or 'none'}")
    return where


def _spend_a_child(job: Job) -> int:
    """Do the job in a child, passing on what it prints. Returns its exit code, -9 if killed."""
    child = subprocess.Popen(
        [sys.executable, "-P", "-u", "-c", _CHILD, _HOME],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    with child:
        try:
            _hand_over(child, job)
            _pass_on(child)
            return child.wait()
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            raise


def _hand_over(child: subprocess.Popen[bytes], job: Job) -> None:
    assert child.stdin is not None
    child.stdin.write(pickle.dumps(job))
    child.stdin.flush()  # and it stays open: the child's lifeline


def _pass_on(child: subprocess.Popen[bytes]) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        sys.stdout.write(line.decode(errors="replace"))


def _survived(store: Checkpointer, job: Job, report: Report, code: int) -> DurableError:
    """Why the child was not killed at the point, as the error to raise."""
    ours = getattr(errors, report.error, None)
    if isinstance(ours, type) and issubclass(ours, DurableError):
        return ours(report.text)
    try:
        state = state_of(store.load(job.execution_id))
        nodes = dict.fromkeys(row.node_id for row in store.list(job.execution_id))
        came_to = f"it is {state.status}, and came to {', '.join(nodes)}"
    except UnknownExecution:
        came_to = "it wrote no row"
    cause = f" ({report.error}: {report.text})" if report.error else ""
    return InvalidInput(
        f"run {job.execution_id!r} was not killed {job.point}: {came_to}; its process ended with "
        f"{code}{cause}. Choose one of these nodes and another execution_id"
    )
