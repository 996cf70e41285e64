"""What a tool sees of its run: `interrupt()`, `current()`, `carry()`.

A scope travels in a context variable. It remembers the process, the thread and the task of the tool,
since only there can a pause unwind the tool (DESIGN R4, R8).
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ParamSpec, TypeVar

from durable_nb.core.nodes import moment
from durable_nb.model.commands import Answered
from durable_nb.model.decisions import Resume
from durable_nb.model.entries import Answer, OnReject
from durable_nb.model.errors import InvalidInput, NotStorable, OutsideTool
from durable_nb.model.events import Interrupted, Returned
from durable_nb.model.values import freeze, thaw
from durable_nb.runtime.ports import Ports
from durable_nb.stores.protocol import Checkpointer, Lease

P = ParamSpec("P")
R = TypeVar("R")


class PauseSignal(BaseException):
    """Leaves a tool that asks for a person. No `except Exception` of the tool's can swallow it."""

    def __init__(self, event: Interrupted | Returned) -> None:
        super().__init__("a person has to decide; let this signal leave the tool")
        self.event = event


@dataclass(frozen=True, slots=True)
class Current:
    """The tool call that is executing: a key for the outside world, and where it works."""

    execution_id: str
    call_id: str
    tool: str
    workdir: str | None


@dataclass(slots=True)
class Scope:
    """One pass through a tool."""

    current: Current
    store: Checkpointer
    lease: Lease
    ports: Ports
    answers: tuple[Answered, ...]
    flights: dict[str, threading.Lock]
    signal: PauseSignal | None = None
    process: int = field(default_factory=os.getpid)
    thread: int = field(default_factory=threading.get_ident)
    task: asyncio.Task[object] | None = None
    _asked: int = 0

    def in_own_thread(self) -> bool:
        here = (os.getpid(), threading.get_ident())
        return here == (self.process, self.thread) and self.task is _task()

    def next_position(self) -> int:
        self._asked += 1
        return self._asked - 1

    def pause(self, event: Interrupted | Returned) -> PauseSignal:
        """The signal to raise. A tool that swallows it is found out by this record."""
        self.signal = PauseSignal(event)
        return self.signal

    def doubt(self, function: str, arguments: object, key: str) -> PauseSignal:
        """The signal that asks what became of an `@idempotent` call."""
        if not self.in_own_thread():
            raise OutsideTool(
                f"{function} is in doubt and asks a person, which only the tool's own thread can; "
                "call it there"
            )
        if self.signal is not None:
            return self.signal
        context = {"function": function, "arguments": arguments}
        return self.pause(Interrupted("in_doubt", context, asks="in_doubt", key=key))


_scope: ContextVar[Scope | None] = ContextVar("durable_nb scope", default=None)

_runs_driven = 0
_counting = threading.Lock()


def scope() -> Scope | None:
    """The scope of the tool that is executing in this context."""
    return _scope.get()


@contextmanager
def entered(inner: Scope) -> Iterator[Scope]:
    """Be inside of a tool: in this thread and, for an async tool, this task."""
    inner.thread, inner.task = threading.get_ident(), _task()
    token = _scope.set(inner)
    try:
        yield inner
    finally:
        _scope.reset(token)


@contextmanager
def driving() -> Iterator[None]:
    """While a run is being driven by this process."""
    global _runs_driven
    with _counting:
        _runs_driven += 1
    try:
        yield
    finally:
        with _counting:
            _runs_driven -= 1


def is_driving() -> bool:
    return _runs_driven > 0


def interrupt(
    reason: str,
    context: object = None,
    *,
    on_reject: OnReject = "run",
    expires_in: float | timedelta | None = None,
) -> Resume:
    """Ask a person, from within a tool. Returns their decision, or pauses the run (DESIGN R2, R8).

    The first pass does not return: the run is paused with `context` as it is now, and the process
    may end. On resume the tool runs again from its top, and this call returns the `Resume`. With
    `on_reject="skip"` a rejection does not enter the tool again. A pause that nobody answers within
    `expires_in` seconds is answered with a no, marked as a timeout, by the resume that finds it.

    Raises `OutsideTool` in any thread or task but the tool's own. Arguments that cannot be kept, such
    as a context without a stored form, end the call with an error that the model reads; the tool
    does not go on.
    """
    inner = _scope.get()
    if inner is None:
        raise OutsideTool("interrupt() works only inside of a tool that an agent runs")
    if not inner.in_own_thread():
        raise OutsideTool(
            "interrupt() was called in another thread, task or forked process; call it in the tool's "
            "own thread, where it can pause the tool. Nothing was approved"
        )
    if inner.signal is not None:
        raise inner.signal
    position = inner.next_position()
    for answered in reversed(inner.answers):
        pause = answered.pause
        if (pause.asks, pause.position, pause.reason) == ("approval", position, reason):
            return _decision(answered.answer)
    raise inner.pause(_interrupted(inner, reason, context, position, on_reject, expires_in))


def current() -> Current:
    """The tool call that is executing. Raises `OutsideTool` where there is none."""
    inner = _scope.get()
    if inner is None:
        raise OutsideTool("current() works only inside of a tool that an agent runs")
    return inner.current


def carry(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, taking this tool's scope into the thread that will call it: for `@idempotent`
    and `current()`."""
    context = copy_context()

    def carried(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)

    return carried


def _interrupted(
    inner: Scope,
    reason: object,
    context: object,
    position: int,
    on_reject: OnReject,
    expires_in: float | timedelta | None,
) -> Interrupted | Returned:
    try:
        if not isinstance(reason, str) or not reason:
            raise NotStorable(f"interrupt() needs a reason in text, not {reason!r}")
        if on_reject not in ("run", "skip"):
            raise NotStorable(f"on_reject is 'run' or 'skip', not {on_reject!r}")
        expires_at = None if expires_in is None else _moment_after(inner.ports.clock(), expires_in)
        frozen = thaw(freeze(context, "context"))
        text = str.__str__(reason)  # plain text, also of a member of a StrEnum
        return Interrupted(text, frozen, position, on_reject, expires_at=expires_at)
    except Exception as error:  # noqa: BLE001  # raised here, a tool's `except` would go on unapproved
        return Returned(f"Error: {type(error).__name__}: {error}")


def _moment_after(now: int, wait: float | timedelta) -> int:
    """The µs that lie `wait` after `now`."""
    try:
        span = wait if isinstance(wait, timedelta) else timedelta(seconds=wait)
        expires_at = now + span // timedelta(microseconds=1)
        moment(expires_at)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(
            f"expires_in is seconds or a timedelta that a calendar can hold, not {wait!r}"
        ) from error
    return expires_at


def _decision(answer: Answer) -> Resume:
    return Resume(answer.approved, dict(answer.metadata), answer.reason, answer.edited, answer.by)


def _task() -> asyncio.Task[object] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return None
