"""A model that plays a script: offline, and the same in every process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from durable_nb.llm.protocol import ToolSpec
from durable_nb.model.errors import InvalidInput
from durable_nb.model.messages import Call, Message, Reply

Said: TypeAlias = str | Call | Sequence[Call] | Reply
Script: TypeAlias = Sequence[Said | Exception] | Callable[[Sequence[Message]], Said]


class ScriptedModel:
    """Reply number n answers a history that holds n replies, so any process can go on with it.

    A reply is text, a `call(...)`, a list of calls (one turn, several tools) or a `Reply`. An
    exception in the list is not a reply: it is raised once per object, before the reply after it.
    A function of the messages may stand for the list. `delay` is in seconds.
    """

    def __init__(self, script: Script, *, delay: float = 0.0) -> None:
        if isinstance(script, str):
            raise InvalidInput(f"a script is a list of replies: ScriptedModel([{script!r}])")
        self._script = script
        self._replies, self._failures = ([], {}) if callable(script) else _sorted_out(script)
        self.delay = delay
        self.asked = 0
        """How often this object was asked in this process."""

    def __repr__(self) -> str:
        length = "a function" if callable(self._script) else f"{len(self._script)} items"
        return f"ScriptedModel({length})"

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Reply:
        """The next reply. Raises `InvalidInput` where the script has ended."""
        self.asked += 1
        if self.delay:
            time.sleep(self.delay)
        if callable(self._script):
            return _reply(self._script(messages))
        wanted = _count(messages)
        if failures := self._failures.get(wanted):
            raise failures.pop(0)
        if wanted >= len(self._replies):
            raise InvalidInput(
                f"the script has ended: the run asked for reply {wanted + 1} of "
                f"{len(self._replies)}; let the last one be text, which ends the run"
            )
        return _reply(self._replies[wanted])


def _sorted_out(
    script: Sequence[Said | Exception],
) -> tuple[list[Said], dict[int, list[Exception]]]:
    """The replies in order, and before which of them which exceptions are raised."""
    replies: list[Said] = []
    failures: dict[int, list[Exception]] = {}
    for line in script:
        if isinstance(line, Exception):
            failures.setdefault(len(replies), []).append(line)
        else:
            replies.append(line)
    return replies, failures


def _count(messages: Sequence[Message]) -> int:
    """How many replies a history holds; a run's transcript keeps count."""
    counted: int | None = getattr(messages, "replies", None)
    if counted is not None:
        return counted
    return sum(message.role == "assistant" for message in messages)


def _reply(said: Said) -> Reply:
    match said:
        case Reply():
            return said
        case str():
            return Reply(Message("assistant", said))
        case Call():
            return Reply(Message("assistant", tool_calls=(said,)))
        case [*calls] if calls and all(isinstance(each, Call) for each in calls):
            return Reply(Message("assistant", tool_calls=tuple(calls)))
        case _:
            raise InvalidInput(
                f"a script holds text, call(...), lists of calls and exceptions, not {said!r}"
            )
