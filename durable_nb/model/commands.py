"""What the loop is to do next, as `core.decide` says it: imperatives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from durable_nb.model.entries import Answer, End, Pause, ToolCall
from durable_nb.model.transcript import Transcript


@dataclass(frozen=True, slots=True)
class Answered:
    """A pause of the step in progress, and what was decided."""

    pause: Pause
    answer: Answer


@dataclass(frozen=True, slots=True)
class AskModel:
    turn: int
    messages: Transcript


@dataclass(frozen=True, slots=True)
class RunTool:
    """Run the step's tool from the top with `arguments`; `answers` are what its gates return."""

    step: ToolCall
    arguments: Mapping[str, object]
    answers: tuple[Answered, ...] = ()


@dataclass(frozen=True, slots=True)
class SkipTool:
    """A rejected gate said that its tool is not to be entered again."""

    step: ToolCall


@dataclass(frozen=True, slots=True)
class Wait:
    """Return to the caller: a person has to decide."""

    pause: Pause


@dataclass(frozen=True, slots=True)
class Stop:
    """Return to the caller: the run is over."""

    end: End


Command: TypeAlias = AskModel | RunTool | SkipTool | Wait | Stop
