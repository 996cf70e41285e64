"""`command = decide(state)`: what a run does now, whether it started, was answered or died."""

from __future__ import annotations

from typing import cast

from durable_nb.core.state import State
from durable_nb.model.commands import AskModel, Command, RunTool, SkipTool, Stop, Wait
from durable_nb.model.entries import Answer, End, Pause, ToolCall, Turn


def decide(state: State) -> Command:
    """The next step. The entry at the program counter picks the case (DESIGN section 2)."""
    match entry := state.at.entry:
        case Turn():
            return AskModel(entry.turn, state.transcript)
        case ToolCall():
            return RunTool(entry, entry.arguments)
        case Answer():
            return _answered(state, cast("ToolCall", state.step))
        case Pause():
            return Wait(entry)
        case End():
            return Stop(entry)
        case _:
            raise AssertionError(f"{entry} is never at the program counter")


def _answered(state: State, step: ToolCall) -> Command:
    newest = state.answers[-1]
    if newest.pause.on_reject == "skip" and not newest.answer.approved:
        return SkipTool(step)
    return RunTool(step, arguments_of(state), state.answers)


def arguments_of(state: State) -> dict[str, object]:
    """The step's arguments, with what approvers edited over what the model asked for."""
    arguments = dict(cast("ToolCall", state.step).arguments)
    for answered in state.answers:
        arguments.update(answered.answer.edited or {})
    return arguments
