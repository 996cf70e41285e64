"""What a log says of its pauses, for whoever wants to answer one: pure."""

from __future__ import annotations

from typing import cast

from durable_nb.core.nodes import status_of
from durable_nb.core.state import State
from durable_nb.model.decisions import Resume
from durable_nb.model.entries import Answer, Log, Pause
from durable_nb.model.errors import InvalidInput
from durable_nb.notebook.cards import Question
from durable_nb.notebook.words import word


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

    None where there never was one. Raises `InvalidInput` where there are several.
    """
    if pause is not None:
        return pause
    pauses = {row.number: row.entry for row in log.own if isinstance(row.entry, Pause)}
    if len(pauses) > 1:
        listed = ", ".join(f"{number} ({each.reason})" for number, each in pauses.items())
        raise InvalidInput(
            f"run {word(log.run.execution_id)} has had several pauses: {listed}; say which one "
            "you mean with --pause N"
        )
    return next(iter(pauses), None)


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
    verdict = "approved" if recorded.approved else "rejected"
    return f"{recorded.by} had {verdict} pause {recorded.pause} before; nothing was decided now."
