"""`crash()`: run a prompt in a real child process, and end it where you say."""

from __future__ import annotations

import os
import signal
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from durable_nb.core.explain import explain
from durable_nb.core.nodes import Checkpoint, listing
from durable_nb.core.state import state_of
from durable_nb.lab import ends
from durable_nb.lab.forks import Forks
from durable_nb.lab.fuse import arm
from durable_nb.lab.handover import Report, Say, pack, unpack
from durable_nb.lab.points import HOWS, How, Point, When, point
from durable_nb.model import errors
from durable_nb.model.errors import DurableError, InvalidInput, StoreError, UnknownExecution
from durable_nb.runtime.agent import Agent
from durable_nb.runtime.checks import placed
from durable_nb.stores.protocol import Checkpointer

_REFUSED = (
    "Its process lives, so a resume is refused (RunIsLive); resume(…, take_over=True) takes the "
    "run from it, and it is told so when it wakes."
)


class _Printer(Protocol):
    def text(self, text: str) -> None: ...


@dataclass(frozen=True)
class Crash:
    """A run whose process came to an end. `str()` tells what is left of it.

    `how` it ended; `signal` is what ended the child, 0 if it was none. `rows` are those on disk,
    oldest first, and `explain` says in words what a resume will do. `said` is the error of a run
    whose store was made to fail.
    """

    execution_id: str
    at: str
    when: When
    how: How
    signal: int
    rows: Sequence[Checkpoint]
    explain: str
    said: str = ""
    _stopped: _Stopped | None = field(default=None, repr=False)

    def wake(self) -> str:
        """Let a process that was stopped go on. Returns what it came to: its run's status, or the
        error that met it. Raises `InvalidInput` for one that is not stopped."""
        if self._stopped is None or not self._stopped.end.alive:
            raise InvalidInput(
                f"the process of {self.execution_id!r} is no longer there; resume the run"
            )
        return self._stopped.wake()

    def end(self) -> None:
        """Kill a process that is stopped, so that its run can be resumed like any other."""
        if self._stopped is not None:
            self._stopped.end()

    @property
    def ended(self) -> str:
        """How it ended, in words: `its process got SIGKILL`."""
        return _ENDED[self.how](self)

    def __str__(self) -> str:
        head = f"run {self.execution_id!r}: {self.ended} {self.when} {self.at}"
        said = [self.said] if self.said else []
        return "\n".join([head, *said, listing(self.rows), self.explain])

    def _repr_pretty_(self, printer: _Printer, cycle: bool) -> None:
        printer.text(str(self))


_ENDED: dict[How, Callable[[Crash], str]] = {
    "kill": lambda crash: f"its process got {signal.Signals(crash.signal).name}",
    "exit": lambda crash: "its process left by os._exit",
    "stop": lambda crash: "its process got SIGSTOP",
    "full": lambda crash: "its disk was full",
    "locked": lambda crash: "its store was locked by another process",
}


def crash(
    agent: Agent,
    prompt: str,
    *,
    at: str,
    when: When,
    execution_id: str | None = None,
    how: How = "kill",
    workdir: str | os.PathLike[str] | None = None,
) -> Crash:
    """Start a run in a child process, which comes to its end at the step `at`.

    `at` is a node: `turn:N` (the model), `turn:N/tool:NAME` (the first such call) or `run_end`. Its
    row is on disk in every case, and none after it. `when` is

    - `before`: the row has just been written; the step has not begun.
    - `during`: the step's body is not over. A tool's has made its first call, and that call is over:
      it returned or raised. A model has been asked, and its reply is not back: one of ours has told
      the first text of it, one of yours has made the first call of its `complete`. A body of which
      nothing can be seen dies as it ends.
    - `after`: the body returned or raised an error; what it did is done, and nobody has noted it.

    `run_end` has no body: `before` is when its row is there, `after` when the run is let go of too.

    `how` is `kill` (SIGKILL), `exit` (`os._exit`), `stop` (SIGSTOP: the owner lives and does
    nothing, until `.wake()` or `.end()`), `full` (no file of the process can grow from there on, as
    on a full disk) or `locked` (another process holds the lock of the store's file, and the run
    gives up after a second).

    The child is a real process: the agent goes there by cloudpickle, with the store it uses here,
    and what it prints is shown here. It ends with this process, and on *interrupt kernel*. The run
    works in `workdir`, as one of `agent.run` does.

    Raises `InvalidInput` if the run never comes to that point (then it has run as far as it went),
    for an agent that cannot be handed over, for a `MemoryCheckpointer`, and for a store that cannot
    fail that way; and what `agent.run` raises, such as `ExecutionExists`.
    """
    where = _checked(agent, point(at, when), how)
    place = placed(workdir)
    execution_id = agent.ports.new_id() if execution_id is None else execution_id
    packed = pack(agent, agent.checkpointer)
    with ExitStack() as held:
        forks = held.enter_context(Forks(packed, heard=True))
        report = forks.do(_Doomed(packed, prompt, execution_id, where, how, place))
        stopped = None
        if report.ended == "stopped":
            stopped = _Stopped(forks, report.value, held.pop_all())
    if report.ended not in ("killed", "stopped") and not report.value:
        raise _survived(agent.checkpointer, execution_id, where, report)
    ending = signal.SIGSTOP if stopped is not None else max(0, -report.code)
    said = report.value if report.ended == "done" else ""
    return _left(agent, execution_id, where, how, ending, said, stopped)


def _left(
    agent: Agent,
    execution_id: str,
    where: Point,
    how: How,
    ending: int,
    said: str,
    stopped: _Stopped | None,
) -> Crash:
    """What is on disk of a run whose process came to its end."""
    store = agent.checkpointer
    rows, state = store.list(execution_id), state_of(store.load(execution_id))
    ahead = explain(state, agent.toolbox.on_crash)
    if stopped is not None:
        ahead = f"{ahead} {_REFUSED}"
    return Crash(execution_id, where.node, where.when, how, ending, rows, ahead, said, stopped)


@dataclass(frozen=True, slots=True)
class _Doomed:
    """The child's work: the run, up to its point. Returns what the run came to after its point."""

    packed: bytes
    prompt: str
    execution_id: str
    point: Point
    how: How
    workdir: str | None

    def __call__(self, say: Say) -> str:
        agent, store = unpack(self.packed)
        reached: list[Point] = []
        arm(agent, store, self.point, partial(self._end, say, store, reached))
        try:
            run = agent.run(self.prompt, execution_id=self.execution_id, workdir=self.workdir)
        except StoreError as error:
            if not reached:
                raise
            return f"{type(error).__name__}: {error}"
        return run.status if reached else ""

    def _end(self, say: Say, store: Checkpointer, reached: list[Point]) -> None:
        reached.append(self.point)
        match self.how:
            case "kill":
                ends.kill(say)
            case "exit":
                ends.leave(say)
            case "stop":
                ends.stop(say)
            case "full":
                ends.fill()
            case "locked":
                ends.lock(store)


class _Stopped:
    """A child that was stopped; killed when nobody refers to it any more."""

    def __init__(self, forks: Forks, group: int, held: ExitStack) -> None:
        self._forks, self._group = forks, group
        self.end = weakref.finalize(self, held.close)

    def wake(self) -> str:
        os.killpg(self._group, signal.SIGCONT)
        _, report = self._forks.report()
        self.end()
        return report.value if report.ended == "done" else f"{report.error}: {report.text}"


def _checked(agent: Agent, where: Point, how: How) -> Point:
    if where.tool is not None and where.tool not in agent.toolbox:
        names = ", ".join(tool.name for tool in agent.tools)
        raise InvalidInput(f"{agent!r} has no tool {where.tool!r}; it has {names or 'none'}")
    if how not in HOWS:
        raise InvalidInput(f"how={how!r} is no end; ends are {', '.join(HOWS)}")
    if how in ("full", "locked"):
        ends.file_of(agent.checkpointer)
    return where


def _survived(store: Checkpointer, execution_id: str, where: Point, report: Report) -> DurableError:
    """Why the child did not come to its end at the point, as the error to raise."""
    ours = getattr(errors, report.error, None)
    if isinstance(ours, type) and issubclass(ours, DurableError):
        return ours(report.text)
    try:
        state = state_of(store.load(execution_id))
        nodes = dict.fromkeys(row.node_id for row in store.list(execution_id))
        came_to = f"it is {state.status}, and came to {', '.join(nodes)}"
    except UnknownExecution:
        came_to = "it wrote no row"
    cause = f" ({report.error}: {report.text})" if report.error else ""
    return InvalidInput(
        f"run {execution_id!r} was not killed {where}: {came_to}; its process ended with "
        f"{report.code}{cause}. Choose one of these nodes and another execution_id"
    )
