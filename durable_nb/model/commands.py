"""What the loop is to do next, as `core.decide` says it: imperatives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from durable_nb.model.entries import Answer, End, Pause, ToolCall
from durable_nb.model.transcript import Transcript


@dataclass(frozen=True, slots=True)
class Answered:
    """A pause of the step in progress, and what was decided in the entry of that number."""

    number: int
    pause: Pause
    answer: Answer


@dataclass(frozen=True, slots=True)
class AskModel:
    """Ask for the reply to the messages."""

    turn: int
    messages: Transcript


@dataclass(frozen=True, slots=True)
class RunTool:
    """Run the step's tool from the top; `answers` are what its gates return.

    `in_doubt`: the call had begun in a process that is gone, and left no result.
    """

    step: ToolCall
    arguments: Mapping[str, object]
    answers: tuple[Answered, ...] = ()
    in_doubt: bool = False


@dataclass(frozen=True, slots=True)
class TellModel:
    """Take this as the step's result; its tool is not entered."""

    step: ToolCall
    content: object


@dataclass(frozen=True, slots=True)
class EndRun:
    """A person said to stop."""

    by: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Return to the caller: a person has to decide."""

    pause: Pause


@dataclass(frozen=True, slots=True)
class Stop:
    """Return to the caller: the run is over."""

    end: End


Command: TypeAlias = AskModel | RunTool | TellModel | EndRun | Wait | Stop
