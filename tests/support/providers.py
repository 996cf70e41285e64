"""What providers demand of a transcript, and a scripted model that refuses as they do.

OpenAI: each call of a reply has its result directly after the reply, and no result lacks its call.
Anthropic: ids of calls are unique in the whole transcript, the first message after the system's is
the user's, and only results and the last message may be empty.
"""

from __future__ import annotations

from collections.abc import Sequence

from durable_nb import Message, Reply, ScriptedModel
from durable_nb.core.state import fold
from durable_nb.llm.protocol import ToolSpec
from durable_nb.stores.protocol import Checkpointer


def faults(messages: Sequence[Message], *, in_flight: bool = False) -> list[str]:
    """What providers would refuse. `in_flight`: calls of the last reply may still be open."""
    found, open_ids = _unpaired(messages)
    if open_ids and not in_flight:
        found.append(f"{open_ids} have no result at the end")
    return found + _misplaced(messages) + _repeated(messages)


def _unpaired(messages: Sequence[Message]) -> tuple[list[str], list[str]]:
    """Calls and results that do not follow one another; and the calls that are still open."""
    found: list[str] = []
    open_ids: list[str] = []
    for at, message in enumerate(messages):
        if message.role != "tool":
            if open_ids:
                found.append(f"{at}: {message.role} speaks while {open_ids} have no result")
            open_ids = [call.id for call in message.tool_calls]
        elif message.tool_call_id in open_ids:
            open_ids.remove(message.tool_call_id)
        else:
            found.append(f"{at}: a result for {message.tool_call_id!r}, which is not open")
    return found, open_ids


def _misplaced(messages: Sequence[Message]) -> list[str]:
    roles = [message.role for message in messages]
    spoken = [role for role in roles if role != "system"]
    found = [] if spoken[:1] == ["user"] else [f"the first to speak is {spoken[:1]}, not the user"]
    found += ["the system speaks after the start"] * ("system" in roles[1:])
    said = [message for message in messages[:-1] if message.role != "tool"]
    silent = [message for message in said if not message.content and not message.tool_calls]
    return found + [f"an empty message of {message.role}" for message in silent]


def _repeated(messages: Sequence[Message]) -> list[str]:
    ids = [call.id for message in messages for call in message.tool_calls]
    return [f"the call id {id_!r} is not one call's own" for id_ in ids if ids.count(id_) > 1] + [
        "a call without an id"
    ] * ("" in ids)


def assert_all_valid(store: Checkpointer) -> None:
    """Every transcript in the store obeys both providers."""
    for run in store.runs():
        state = fold(store.load(run.execution_id).rows)
        unfinished = run.status != "completed"
        assert faults(state.transcript, in_flight=unfinished) == [], run


class StrictModel(ScriptedModel):
    """A `ScriptedModel` that refuses what OpenAI or Anthropic would refuse."""

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Reply:
        assert faults(messages) == []
        return super().complete(messages, tools)
