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
    """Tokens that replies have cost."""

    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer: one assistant message and what it cost."""

    message: Message
    usage: Usage = Usage()


def call(tool: str, /, **arguments: object) -> Call:
    """A tool call for a script: `call("refund", order="1042", amount=20)`."""
    return Call(tool, arguments)
