"""What a log says of its pauses, for whoever wants to answer one: pure."""

from __future__ import annotations

from typing import cast

from durable_nb.core.nodes import open_pause, pauses, status_of
from durable_nb.core.state import State
from durable_nb.core.text import visible
from durable_nb.model.decisions import Resume
from durable_nb.model.entries import Answer, Log, Pause
from durable_nb.model.errors import InvalidInput
from durable_nb.notebook.cards import Question
from durable_nb.notebook.timeline import verdict
from durable_nb.notebook.words import head, word


def question(log: Log, state: State) -> Question | None:
    """What a click could answer now."""
    match status_of(log, state):
        case "paused":
            asks = cast(Pause, state.at.entry).asks
            return Question(state.number, pause=state.number, in_doubt=asks == "in_doubt")
        case "crashed" | "failed":
            return Question(state.number, pause=None)
        case _:
            return None


def gate(log: Log, pause: int | None) -> int | None:
    """The number of the pause that is meant: `pause`, else the only one that this run ever had.

    None where there never was one. Raises `InvalidInput` where there are several, and for one that
    the run never had.
    """
    had, run = pauses(log), word(log.run.execution_id)
    if pause is None and len(had) > 1:
        listed = ", ".join(_with_its_fate(log, number, each) for number, each in had.items())
        raise InvalidInput(
            f"run {run} has had several pauses: {listed}; say which one you mean with --pause N"
        )
    if pause is not None and pause not in had:
        raise InvalidInput(f"run {run} has no pause {pause}; {_that_waits(log)}")
    return next(iter(had), None) if pause is None else pause


def _with_its_fate(log: Log, number: int, pause: Pause) -> str:
    answer = answer_to(log, number)
    if answer is not None:
        return f"{number} ({_asked(pause.reason)}: {verdict(answer)})"
    return (
        f"{number} ({_asked(pause.reason)}: {'open' if number == log.rows[-1].number else 'over'})"
    )


def _asked(reason: str) -> str:
    return visible(head(reason, 80))


def _that_waits(log: Log) -> str:
    """Which pause could be answered instead."""
    if (waits := open_pause(log)) is None:
        return "none is open"
    run = f"{word(log.run.execution_id)} --pause {waits.number}"
    return f"pause {waits.number} ({_asked(waits.reason)}) is open: %durable approve {run}"


def answer_to(log: Log, pause: int | None) -> Answer | None:
    """What was decided about that pause."""
    answers = (row.entry for row in log.own if isinstance(row.entry, Answer))
    return next((answer for answer in answers if answer.pause == pause), None)


def same(recorded: Answer, decision: Resume) -> bool:
    """Whether a decision says no more and no less than the recorded one. Who and why may differ."""
    edited = dict(recorded.edited or {}), dict(decision.edited or {})
    said = (recorded.approved, recorded.outcome), (decision.approved, decision.outcome)
    return said[0] == said[1] and edited[0] == edited[1]


def already(recorded: Answer) -> str:
    done = "approved" if recorded.approved else "rejected"
    return f"{recorded.by} had {done} pause {recorded.pause} before; nothing was decided now."
