"""What a log says of its pauses, for whoever wants to answer one: pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

from durable_nb.core.decide import arguments_of
from durable_nb.core.nodes import Pending, open_pause, pauses, status_of
from durable_nb.core.state import State
from durable_nb.core.text import visible
from durable_nb.model.decisions import Resume
from durable_nb.model.entries import Answer, Log, Pause
from durable_nb.model.errors import InvalidInput
from durable_nb.notebook.timeline import verdict
from durable_nb.notebook.words import head, word

Asks: TypeAlias = Literal["approval", "text", "value", "go on", "stop"]


@dataclass(frozen=True, slots=True)
class Question:
    """What a person can decide about a run at its entry `number`.

    `asks` for approval of a call, for what a call in doubt returned (the `text` that the model
    reads, or a JSON `value` for the function that called), or only whether to go on, or to stop.
    """

    execution_id: str
    number: int
    asks: Asks
    tool: str = ""
    arguments: Mapping[str, object] = field(default_factory=dict)

    @property
    def pause(self) -> int | None:
        """The pause that an answer is bound to."""
        return None if self.asks in ("go on", "stop") else self.number


def question(log: Log, state: State, *, now: int = 0, ours: bool = False) -> Question | None:
    """What a click could answer, at a time in µs: an expired pause has its answer. What a click
    started is `ours` to stop."""
    execution_id, number = log.run.execution_id, state.number
    match status_of(log, state):
        case "paused":
            pause = cast(Pause, state.at.entry)
            if has_expired(pause, now):
                return Question(execution_id, number, "go on")
            return Question(execution_id, number, _asks(pause), pause.tool, arguments_of(state))
        case "crashed" | "failed":
            return Question(execution_id, number, "go on")
        case "running" if ours:
            return Question(execution_id, state.claim.number, "stop")
        case _:
            return None


def has_expired(pause: Pause, now: int) -> bool:
    return pause.expires_at is not None and pause.expires_at <= now


def _asks(pause: Pause) -> Asks:
    if pause.asks == "approval":
        return "approval"
    return "text" if pause.key is None else "value"


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
    return f"pause {waits.number} ({_asked(waits.reason)}) is open: {how_to_decide(waits)}"


def how_to_decide(waits: Pending) -> str:
    """What to type for the answer, or one of them, and what else there is."""
    run = f"{word(waits.execution_id)} --pause {waits.number}"
    if waits.asks == "in_doubt":
        return f"%durable answer {run} --run-again (or --stop, or --happened JSON)"
    return f"%durable approve {run} (or reject)"


def answer_to(log: Log, pause: int | None) -> Answer | None:
    """What was decided about that pause."""
    answers = (row.entry for row in log.own if isinstance(row.entry, Answer))
    return next((answer for answer in answers if answer.pause == pause), None)


def same(recorded: Answer, decision: Resume) -> bool:
    """Whether a decision says no more and no less than the recorded one. Who and why may differ."""
    before = recorded.approved, recorded.outcome, recorded.result, dict(recorded.edited or {})
    now = decision.approved, decision.outcome, decision.result, dict(decision.edited or {})
    return before == now


def already(recorded: Answer) -> str:
    done = "answered" if recorded.outcome else "approved" if recorded.approved else "rejected"
    return f"{recorded.by} had {done} pause {recorded.pause} before; nothing was decided now."
