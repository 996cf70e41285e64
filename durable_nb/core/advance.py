"""`entry = advance(state, event)`: what has to be on disk before anything else happens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from durable_nb.core.state import State
from durable_nb.model.entries import End, Entry, Pause, ToolCall, Turn
from durable_nb.model.events import Event, Interrupted, Replied, Returned, Stopped
from durable_nb.model.messages import Asked, Call, Message, Usage
from durable_nb.model.values import digest


def advance(state: State, event: Event) -> Entry:
    """The entry that the event leads to."""
    match event:
        case Replied() if not event.message.tool_calls:
            said = (event.message,)
            output = event.message.content
            return End(state.turn + 1, "completed", output, None, said, event.usage, event.asked)
        case Replied():
            refusals = (_result(*refused) for refused in event.refused.items())
            return _next(state, (event.message, *refusals), event.usage, event.asked)
        case Returned():
            return _next(state, _settled(state, event))
        case Interrupted():
            return _paused(state, event)
        case Stopped():
            return End(state.turn + 1, "cancelled", error=event.why)


def identify(message: Message, state: State) -> tuple[Message, frozenset[str]]:
    """The reply with an id for each call that is its own in the whole transcript, and the ids that
    had to be made up because the reply repeats one (each call has one result, DESIGN section 4)."""
    seen: set[str] = set()
    repeated: set[str] = set()
    calls = []
    for at, call in enumerate(message.tool_calls):
        minted = f"call_{state.number}_{at}"
        if call.id in seen:
            repeated.add(minted)
        taken = not call.id or call.id in seen or state.transcript.has_asked(call.id)
        own = Call(call.tool, call.arguments, minted) if taken else call
        seen.add(own.id)
        calls.append(own)
    own_ids = Message(message.role, message.content, tuple(calls), extra=message.extra)
    return own_ids, frozenset(repeated)


def _next(
    state: State, said: tuple[Message, ...], usage: Usage = Usage(), asked: Asked = Asked()
) -> Entry:
    """The first call without a result; when all have theirs, the next turn."""
    for call in state.transcript.open_calls(said):
        arguments = cast("Mapping[str, object]", call.arguments)  # text was refused
        return ToolCall(state.turn, call.tool, call.id, arguments, said, usage, asked)
    return Turn(state.turn + 1, said, usage, asked)


def _settled(state: State, event: Returned) -> tuple[Message, ...]:
    """The step's result; after a pause, also one for each sibling, none of which will run (R3)."""
    first, *siblings = state.transcript.open_calls()
    said = [_result(first.id, "\n".join([*_verdicts(state), event.content]))]
    if any(answered.pause.asks == "approval" for answered in state.answers):
        said += [
            _result(call.id, f"[not run: {first.tool} waited for a person; ask again if needed]")
            for call in siblings
        ]
    return tuple(said)


def _verdicts(state: State) -> list[str]:
    """What the model is told of each decision that was not a plain yes (R8)."""
    lines = []
    for answered in state.answers:
        answer = answered.answer
        if answer.outcome is not None:
            continue
        if answer.source == "timeout":
            lines.append(f"[expired: {answer.reason}]")
        elif not answer.approved:
            why = f": {answer.reason}" if answer.reason else ""
            lines.append(f"[rejected by {answer.by}{why}]")
        elif answer.edited:
            changes = ", ".join(f"{name}={value!r}" for name, value in answer.edited.items())
            lines.append(f"[approved with edits: {changes}]")
    return lines


def _paused(state: State, event: Interrupted) -> Pause:
    step = state.step
    assert step is not None, "only a step's tool can interrupt"
    return Pause(
        turn=step.turn,
        tool=step.tool,
        reason=event.reason,
        context=event.context,
        digest=digest(event.context),
        position=event.position,
        on_reject=event.on_reject,
        asks=event.asks,
        key=event.key,
        expires_at=event.expires_at,
    )


def _result(call_id: str, content: str) -> Message:
    return Message("tool", content, tool_call_id=call_id)
