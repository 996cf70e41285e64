"""The one loop: decide, perform, advance, append, fold one entry on (DESIGN section 2).

Starting, answering a pause and recovering from a crash differ in the entry that was appended
before, not in the code here.
"""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from durable_nb.core.advance import advance, identify
from durable_nb.core.context import Gauge, excerpt
from durable_nb.core.decide import decide
from durable_nb.core.explain import call_text
from durable_nb.core.state import State, state_of
from durable_nb.llm.protocol import Model
from durable_nb.model.commands import AskModel, EndRun, RunTool, Stop, TellModel, Wait
from durable_nb.model.entries import End
from durable_nb.model.errors import DurableError, PauseSwallowed, StaleLog, StoreError
from durable_nb.model.events import Event, Interrupted, Replied, Returned, Stopped
from durable_nb.model.messages import Asked, Message, Trim
from durable_nb.model.transcript import Transcript
from durable_nb.runtime import engine
from durable_nb.runtime.limits import Limits
from durable_nb.runtime.ports import Ports
from durable_nb.runtime.replies import checked_reply
from durable_nb.runtime.result import RunResult, result_of
from durable_nb.runtime.scope import Current, PauseSignal, Scope, driving, entered
from durable_nb.runtime.tools import Toolbox, result_text
from durable_nb.stores.protocol import Checkpointer, Lease


@dataclass(slots=True)
class Drive:
    """A claimed run: everything that driving it needs, wherever that happens."""

    agent: str
    llm: Model
    tools: Toolbox
    limits: Limits
    store: Checkpointer
    ports: Ports
    lease: Lease
    state: State
    flights: dict[str, threading.Lock] = field(default_factory=dict)
    gauge: Gauge = field(default_factory=Gauge)
    process: int = field(default_factory=os.getpid)


def drive(run: Drive, stop: engine.Stop | None = None) -> RunResult:
    """Go on until the run ends or waits for a person, then let go of it.

    Raises what escapes the run, after writing `End failed`. What is not an `Exception` (an
    interrupt, a cancellation) and what the store refuses leave the run as a crash would. A run
    that was cancelled meanwhile stops at its next entry.
    """
    stop = stop or engine.Stop()
    try:
        with driving():
            return _loop(run, stop)
    except StaleLog:
        return _cancelled(run)
    except StoreError:
        raise
    except Exception as error:
        _fail(run, error)
        raise
    finally:
        if run.process == os.getpid():
            stop.then(lambda: run.store.release(run.lease))


def _loop(run: Drive, stop: engine.Stop) -> RunResult:
    while not isinstance(command := decide(run.state), Wait | Stop):
        stop.check()
        event = _perform(run, command, stop)
        stop.check()
        if run.process != os.getpid():
            raise engine.Abandoned  # a child that a tool forked and that came back from it
        entry = advance(run.state, event)
        run.state = run.state.plus(run.store.append(run.lease, entry, at=run.ports.clock()))
    return result_of(run.lease.execution_id, run.agent, run.state)


def _cancelled(run: Drive) -> RunResult:
    """The result of a run whose log ends with a cancellation that came from elsewhere; otherwise
    the refusal that is being handled goes on."""
    state = state_of(run.store.load(run.lease.execution_id))
    if state.status != "cancelled":
        raise
    return result_of(run.lease.execution_id, run.agent, state)


def _fail(run: Drive, error: Exception) -> None:
    end = End(run.state.turn + 1, "failed", error=_words(error))
    if isinstance(error, DurableError):
        _name(run.lease.execution_id, error)
    try:
        run.store.append(run.lease, end, at=run.ports.clock())
    except StoreError as refused:
        error.add_note(f"the run's end could not be written either: {refused}")


def _name(execution_id: str, error: DurableError) -> None:
    """Have an error that leaves a run say which one: whoever started it may not know its id."""
    said = "; ".join((_words(error), *getattr(error, "__notes__", ())))
    if repr(execution_id) not in said:
        error.add_note(f"run {execution_id!r} is kept; resume it when that is mended")


def _perform(
    run: Drive, command: AskModel | RunTool | TellModel | EndRun, stop: engine.Stop
) -> Event:
    match command:
        case AskModel():
            return _ask(run, command, stop)
        case RunTool():
            return _doubted(run, command) or _run_tool(run, command, stop)
        case TellModel(content=content):
            return _returned(content)
        case EndRun(by):
            return Stopped(f"stopped by {by}")


def _ask(run: Drive, command: AskModel, stop: engine.Stop) -> Replied:
    run.limits.check(run.lease.execution_id, run.state)
    sent, trim = _sent(run, command.messages)
    reply = checked_reply(run.llm, _settled(run.llm.complete(sent, run.tools.specs), stop))
    message, repeated = identify(reply.message, run.state)
    refused = {}
    for call in message.tool_calls:
        why = _REPEATED if call.id in repeated else run.tools.refusal(call)
        if why is not None:
            refused[call.id] = why
    return Replied(message, reply.usage, refused, Asked(reply.model, reply.retries, trim))


def _sent(run: Drive, history: Transcript) -> tuple[Sequence[Message], Trim | None]:
    """What the model is sent of a history, and what that leaves out."""
    if run.limits.context is None:
        return history, None
    room = run.limits.context - run.tools.tokens
    return excerpt(history, room, run.gauge, start=run.state.start)


_REPEATED = "Error: this call repeats the id of another call of the same reply; it was not run"


def _doubted(run: Drive, command: RunTool) -> Event | None:
    """What stands in for running a call in doubt again, if its tool asks for that (R4)."""
    policy = run.tools[command.step.tool].on_crash
    if not command.in_doubt or policy == "rerun":
        return None
    call = call_text(command.step.tool, command.arguments)
    if policy == "fail":
        return Returned(f"[in doubt: {call} had begun when its process died; it was not run again]")
    arguments = dict(command.arguments)
    context = {"tool": command.step.tool, "arguments": arguments}
    return Interrupted("in_doubt", context, asks="in_doubt")


def _run_tool(run: Drive, command: RunTool, stop: engine.Stop) -> Event:
    tool = run.tools[command.step.tool]
    try:
        arguments = tool.validate(deepcopy(command.arguments))  # a tool may change what it got
    except ValueError as error:
        return Returned(f"Error: {error}")
    current = Current(run.lease.execution_id, command.step.call_id, tool.name, run.state.workdir)
    inner = Scope(current, run.store, run.lease, run.ports, command.answers, run.flights)
    try:
        value = _within(inner, tool.function, arguments, stop)
    except BaseException as error:  # noqa: BLE001  # what is not a tool's to raise goes on
        return _left(inner, tool.name, error)
    if inner.signal is not None:
        raise _swallowed(tool.name)
    return _returned(value)


def _within(
    inner: Scope, function: Callable[..., Any], arguments: Mapping[str, Any], stop: engine.Stop
) -> Any:
    """Call the tool inside of its scope: here, or on the engine's loop if it is async."""
    with entered(inner):
        value = function(**arguments)
        if not inspect.isawaitable(value):
            return value

    async def awaited() -> Any:
        with entered(inner):
            return await value

    return engine.call(awaited(), stop)


def _left(inner: Scope, tool: str, error: BaseException) -> Event:
    """What an exception that left the tool means: a pause, a failed run, or a result to read."""
    if inner.signal is not None and _carries(error, inner.signal):
        return inner.signal.event
    if not isinstance(error, Exception):
        raise error
    if inner.signal is not None:
        raise _swallowed(tool) from error
    return Returned(f"Error: {_words(error)}")


def _words(error: Exception) -> str:
    """An error as text; one whose own words fail is named."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as failed:  # noqa: BLE001  # a tool's error class may do anything
        return f"{type(error).__name__} (its text cannot be had: {type(failed).__name__})"


def _carries(error: BaseException, signal: PauseSignal) -> bool:
    """Whether the signal left the tool, by itself or in the group that a task group makes."""
    if isinstance(error, BaseExceptionGroup):
        return any(_carries(each, signal) for each in error.exceptions)
    return error is signal


def _swallowed(tool: str) -> PauseSwallowed:
    return PauseSwallowed(
        f"{tool} caught the signal of its interrupt() and went on; nothing was approved. Catch "
        "Exception instead of everything, then resume the run"
    )


def _returned(value: Any) -> Returned:
    try:
        return Returned(result_text(value))
    except ValueError as error:
        return Returned(
            f"Error: the result is a {type(value).__name__}, which has no text form ({error})"
        )


def _settled(answer: Any, stop: engine.Stop) -> Any:
    """A sync model's answer as it is; an async one's, awaited on the engine's loop."""
    if not inspect.isawaitable(answer):
        return answer

    async def awaited() -> Any:
        return await answer

    return engine.call(awaited(), stop, dropped=True)
