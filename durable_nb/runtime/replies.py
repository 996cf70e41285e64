"""What a model may answer. Anything else fails its run before it reaches the log, where it would stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from durable_nb.model.errors import InvalidInput
from durable_nb.model.messages import Call, Message, Reply, Usage

Kinds: TypeAlias = type | tuple[type, ...]

_PARTS: Mapping[type, Mapping[str, Kinds]] = {
    Reply: {"message": Message, "usage": Usage, "model": str, "retries": tuple},
    Message: {"content": str, "tool_calls": (tuple, list), "extra": Mapping},
    Usage: {
        "input_tokens": int,
        "output_tokens": int,
        "cached_tokens": int,
        "cost": (float, int, type(None)),
    },
    Call: {"tool": str, "id": str},
}


def checked_reply(llm: object, answer: object) -> Reply:
    """The answer, if it is a reply as the log keeps them. Raises `InvalidInput` saying what is not."""
    if not isinstance(answer, Reply):
        raise InvalidInput(f"{llm!r} answered {answer!r}; complete() returns an assistant Reply")
    for wrong in _wrong(answer):
        raise InvalidInput(f"{llm!r} answered with {wrong}; complete() returns an assistant Reply")
    return answer


def _wrong(reply: Reply) -> Iterator[str]:
    yield from _wrong_parts(reply, Reply)
    yield from _wrong_parts(reply.message, Message)
    yield from _wrong_parts(reply.usage, Usage)
    if reply.message.role != "assistant":
        yield f"a Message whose role is {reply.message.role!r}"
    for call in reply.message.tool_calls:
        yield from _wrong_parts(call, Call)


def _wrong_parts(value: Any, kind: type) -> Iterator[str]:
    if not isinstance(value, kind):
        yield f"{value!r} for a {kind.__name__}"
        return
    for name, wanted in _PARTS[kind].items():
        part = getattr(value, name)
        if not isinstance(part, wanted):
            yield f"{name}={part!r} in a {kind.__name__}"
