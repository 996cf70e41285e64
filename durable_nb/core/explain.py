"""In words: what the next step of a run is, so that a person knows what a click will do."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from durable_nb.core.decide import arguments_of, decide
from durable_nb.core.state import State
from durable_nb.model.commands import AskModel, EndRun, RunTool, Stop, TellModel, Wait
from durable_nb.model.entries import Pause


def runs_again(tool: str) -> str:
    """What a tool does with a call in doubt, where nobody says."""
    return "rerun"


def explain(state: State, on_crash: Callable[[str], str] = runs_again) -> str:
    """One or two sentences: what Approve does for a paused run, what Resume does for a dead one.

    `on_crash` says of a tool what it does with a call in doubt, which no log knows.
    """
    match decide(state):
        case AskModel(turn):
            return f"Resume asks the model again for turn {turn}, with the saved history. No tool is run again."
        case RunTool(step) as command:
            return _resumes(command, on_crash(step.tool))
        case TellModel(step):
            return (
                f"Resume tells the model what was decided about {step.tool}. The tool is not run."
            )
        case EndRun(by):
            return f"Resume ends the run, as {by} decided. Nothing is run."
        case Wait(pause) if pause.asks == "in_doubt":
            call = call_text(pause.tool, arguments_of(state))
            return (
                f"{call} had begun when its process died. Say that it happened and what it "
                "returned, or run it again, or stop the run."
            )
        case Wait(pause):
            call = call_text(pause.tool, arguments_of(state))
            return (
                f"Approve runs {call} again from the top, with your answer. "
                "The model is not asked again."
            )
        case Stop(end):
            return f"The run is {end.status}. There is nothing to resume."


def _resumes(command: RunTool, on_crash: str) -> str:
    """What Resume does at a tool that had begun when its process died."""
    call = call_text(command.step.tool, command.arguments)
    if on_crash == "ask":
        return f"Resume asks a person what became of {call}. Nothing is run before the answer."
    if on_crash == "fail":
        return f"Resume tells the model that {call} is in doubt. The tool is not run."
    saved = "with the recorded decision" if command.answers else "with its saved arguments"
    return f"Resume runs {call} again from the top, {saved}. The model is not asked again."


def rejection(pause: Pause) -> str:
    """One sentence: what Reject does at that pause."""
    if pause.on_reject == "skip":
        return f"Reject does not run {pause.tool} again."
    return f"Reject runs {pause.tool} again, too, and decision.approved is False there."


def call_text(tool: str, arguments: Mapping[str, object]) -> str:
    """A call as Python would write it, cut to a line: `refund(order="1042", amount=20)`."""
    inside = ", ".join(f"{name}={_literal(value)}" for name, value in arguments.items())
    return f"{tool}({inside if len(inside) <= 200 else inside[:199] + '…'})"


def _literal(value: object) -> str:
    if isinstance(value, str):
        text = repr(value)
        return text if '"' in value else f'"{text[1:-1]}"'
    return repr(value)
