"""`command = decide(state)`: what a run does now, whether it started, was answered or died."""

from __future__ import annotations

from typing import cast

from durable_nb.core.state import State
from durable_nb.model.commands import AskModel, Command, EndRun, RunTool, Stop, TellModel, Wait
from durable_nb.model.entries import Answer, End, Pause, ToolCall, Turn


def decide(state: State) -> Command:
    """The next step. The entry at the program counter picks the case (DESIGN section 2)."""
    match entry := state.at.entry:
        case Turn():
            return AskModel(entry.turn, state.transcript)
        case ToolCall():
            return RunTool(_step(state), arguments_of(state), in_doubt=state.died)
        case Answer():
            return _answered(state)
        case Pause():
            return Wait(entry)
        case End():
            return Stop(entry)
        case _:
            raise AssertionError(f"{entry} is never at the program counter")


def _answered(state: State) -> Command:
    newest, step = state.answers[-1], _step(state)
    answer, pause = newest.answer, newest.pause
    if answer.outcome == "stop":
        return EndRun(answer.by)
    if answer.outcome == "happened" and pause.key is None:
        return TellModel(step, answer.result)
    if pause.on_reject == "skip" and not answer.approved and answer.outcome is None:
        return TellModel(step, f"{step.tool} was not run")
    return RunTool(step, arguments_of(state), state.answers, in_doubt=state.died)


def arguments_of(state: State) -> dict[str, object]:
    """The step's arguments, with what approvers edited over what the model asked for."""
    arguments = dict(_step(state).arguments)
    for answered in state.answers:
        arguments.update(answered.answer.edited or {})
    return arguments


def _step(state: State) -> ToolCall:
    return cast(ToolCall, state.step)
