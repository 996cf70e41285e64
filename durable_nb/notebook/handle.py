"""What a cell that runs an agent returns: a run to look at, to decide and to wait for."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from durable_nb.core.near import did_you_mean
from durable_nb.core.nodes import Checkpoint, Pending, listing, open_pause, status_of
from durable_nb.core.state import State, state_of
from durable_nb.model.decisions import Resume
from durable_nb.model.entries import End, Log
from durable_nb.model.errors import DurableError, InvalidInput, RunIsLive, RunPaused
from durable_nb.model.messages import Message
from durable_nb.notebook.gates import how_to_decide
from durable_nb.notebook.inspector.card import Inspector
from durable_nb.notebook.inspector.diff import difference_of
from durable_nb.notebook.local import LocalRun
from durable_nb.notebook.onward import fork, say
from durable_nb.notebook.portrait import Look
from durable_nb.notebook.waiting import clicks_awaited
from durable_nb.notebook.words import word

if TYPE_CHECKING:
    import pandas as pd

    from durable_nb.runtime.result import PendingInterrupt


FRAMES = ("steps", "messages", "tool_calls", "decisions", "idempotency", "usage")


class Steps(tuple[Checkpoint, ...]):
    """A run's rows, oldest first; shown as lines."""

    __slots__ = ()

    def __repr__(self) -> str:
        return listing(self)


class Handle:
    """A run, as its log is now: nothing here is remembered from before.

    A decision made through it is bound to the pause that its card showed.
    """

    def __init__(
        self, run: LocalRun, *, drawn_in: int | None = None, patience: float | None = None
    ) -> None:
        self._run = run
        self._drawn_in = drawn_in
        self._patience = patience

    def __repr__(self) -> str:
        try:
            status = self.status
        except DurableError as error:  # it was pruned, or its store is gone
            status = type(error).__name__
        return f"<run {self.execution_id!r}: {status}>"

    @property
    def execution_id(self) -> str:
        return self._run.execution_id

    @property
    def status(self) -> str:
        """`running`, `paused`, `crashed`, `completed`, `failed` or `cancelled`."""
        return status_of(self._run.log())

    @property
    def output(self) -> str:
        """The answer. Waits for what a click set going; raises in one line where there is none."""
        self._run.wait()
        log = self._run.log()
        state = state_of(log)
        if state.status == "completed":
            return cast("End", state.at.entry).output or ""
        raise _no_output(log, state)

    @property
    def pending(self) -> PendingInterrupt | None:
        """The pause that waits for a decision: reason, context, node, number."""
        from durable_nb.runtime.result import result_of

        log = self._run.log()
        return result_of(self.execution_id, log.run.agent, state_of(log)).pending_interrupt

    @property
    def steps(self) -> Steps:
        """The run's own rows, oldest first."""
        return Steps(self._run.store.list(self.execution_id))

    @property
    def messages(self) -> Sequence[Message]:
        """The transcript so far."""
        return tuple(state_of(self._run.log()).transcript)

    def approve(
        self,
        *,
        note: str | None = None,
        by: str | None = None,
        edited: Mapping[str, object] | None = None,
        pause: int | None = None,
    ) -> Handle:
        """Say yes, and drive on in this cell. Raises `AlreadyResumed` if somebody else decided
        otherwise."""
        decision = Resume(approved=True, reason=note, by=by, edited=edited)
        return self._decide(decision, pause)

    def reject(
        self, *, note: str | None = None, by: str | None = None, pause: int | None = None
    ) -> Handle:
        """Say no; the model reads `note`."""
        return self._decide(Resume(approved=False, reason=note, by=by), pause)

    def resume(self, *, prompt: str | None = None, take_over: bool = False) -> Handle:
        """Go on with a run that died or failed, in this cell. With a `prompt`, go on with its
        conversation: the handle of the run that says it."""
        if prompt is not None:
            return Handle(say(self._run, prompt, take_over=take_over), drawn_in=cell_number())
        self._run.resume(take_over=take_over)
        return self._drawn()

    def fork(
        self,
        at: str | int | None = None,
        *,
        prompt: str | None = None,
        edit: Mapping[str, object] | None = None,
        execution_id: str | None = None,
    ) -> Handle:
        """Branch the run at a step, in this cell: the handle of the fork. The same again is the
        same fork; `execution_id` names another one."""
        run = fork(self._run, at=at, prompt=prompt, edit=edit, execution_id=execution_id)
        return Handle(run, drawn_in=cell_number())

    def wait(self, timeout: float | None = None) -> Handle:
        """Until nothing that a click started drives the run; `await handle.wait()` until nothing
        waits for a click, either. Raises `RunIsLive` or `RunPaused` after `timeout` seconds."""
        if not self._run.wait(timeout):
            raise RunIsLive(
                f"run {self.execution_id!r} still works after {timeout:g} s; it goes on by itself"
            )
        if timeout is None:
            return self
        return Handle(self._run, drawn_in=self._drawn_in, patience=timeout)

    def __await__(self) -> Generator[Any, None, Handle]:
        return self._awaited().__await__()

    def show(self, *, page: int = 1, step: int | str | None = None) -> Handle:
        """Everything about the run in this cell: its steps, a page at a time, and what each opens
        to. `step` is a number or a node that is shown with all there is to it."""
        Inspector(self._run, page=page, step=step).show()
        return self._drawn()

    def card(self) -> Handle:
        """The run's card in this cell."""
        self._run.faces.show(Look())
        return self._drawn()

    def frame(self, of: str = "steps") -> pd.DataFrame:
        """A view of this run as a DataFrame: its `steps`, `messages`, `tool_calls`, `decisions`,
        `idempotency` or `usage`."""
        from durable_nb import views

        if of not in FRAMES:
            raise InvalidInput(
                f"a run has no frame {of!r}{did_you_mean(of, FRAMES)}; there are {', '.join(FRAMES)}"
            )
        frame: pd.DataFrame = getattr(views, of)(self.execution_id, store=self._run.store)
        return frame

    def diff(self, a: int | str, b: int | str, *, other: str | None = None) -> pd.DataFrame:
        """What changed from step `a` to step `b`, or to step `b` of the run `other`: a row a key of
        the state, and a row a message."""
        return difference_of(self._run.store, self.execution_id, a, b, other=other).df

    def _decide(self, decision: Resume, pause: int | None) -> Handle:
        self._run.decide(decision, self._run.faces.pause if pause is None else pause)
        return self._drawn()

    async def _awaited(self) -> Handle:
        if self.pending is not None and self._drawn_in != cell_number():
            self.card()  # the buttons belong to the cell that waits for them
        await clicks_awaited(self._run, self._patience)
        return self

    def _drawn(self) -> Handle:
        """This handle, whose card the running cell shows already."""
        self._drawn_in = cell_number()
        return self

    def _ipython_display_(self) -> None:
        if self._drawn_in is None or self._drawn_in != cell_number():
            self.card()


def cell_number() -> int | None:
    """The number of the cell that is running; None outside of IPython."""
    from IPython import get_ipython

    shell = get_ipython()
    return None if shell is None else shell.execution_count


def _no_output(log: Log, state: State) -> DurableError:
    run = word(log.run.execution_id)
    match status_of(log, state):
        case "paused":
            return RunPaused(
                f"run {run} has no output yet: it waits for a person; decide on its card, or "
                f"type {how_to_decide(cast('Pending', open_pause(log)))}"
            )
        case "running":
            return RunIsLive(f"run {run} has no output yet: another process or thread drives it")
        case "cancelled":
            return DurableError(f"run {run} was cancelled, so it has no output")
        case status:
            return DurableError(f"run {run} {status} and has no output; %durable resume {run}")
