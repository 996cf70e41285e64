"""What a model is told and what it answers, in the stored form of every run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Call:
    """A model's request to run one tool.

    `arguments` is text where the model sent something that is not a JSON object. An empty `id` is
    filled in when the reply is recorded.
    """

    tool: str
    arguments: Mapping[str, object] | str = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a transcript (DESIGN section 4).

    `tool_calls` belongs to `assistant`, `tool_call_id` to `tool`. `extra` keeps what a provider
    needs back; it holds storable values.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[Call, ...] = ()
    tool_call_id: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """What replies have cost.

    `cached_tokens` are those of the input that the provider had kept. `cost` is in US dollars; it
    is None as soon as the price of one of the replies is not known.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        if other == _NOTHING:
            return self
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            other.cost if self == _NOTHING else _sum(self.cost, other.cost),
        )


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


_NOTHING = Usage()


@dataclass(frozen=True, slots=True)
class Trim:
    """What a model was not sent, because the history was too long for it.

    `dropped` counts the messages left out; `before` and `after` are tokens, as estimated. `start`
    is the place in the history of the oldest message that was sent, leaving aside the system prompt
    and the instruction that was followed there.
    """

    dropped: int
    before: int
    after: int
    start: int


@dataclass(frozen=True, slots=True)
class Asked:
    """How a reply was come by: which model gave it, what went wrong before it came (a line for
    each attempt), and what of the history was not sent."""

    model: str = ""
    retries: tuple[str, ...] = ()
    trim: Trim | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer: one assistant message and what it cost.

    `model` is the one that answered, in its provider's words. `retries` has a line for each attempt
    that failed before.
    """

    message: Message
    usage: Usage = Usage()
    model: str = ""
    retries: tuple[str, ...] = ()


def call(tool: str, /, **arguments: object) -> Call:
    """A tool call for a script: `call("refund", order="1042", amount=20)`."""
    return Call(tool, arguments)
