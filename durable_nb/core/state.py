"""`state = fold(rows)`: everything a run's log says, in one value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

from durable_nb.model.commands import Answered
from durable_nb.model.entries import Answer, End, Entry, Pause, Reentry, Row, ToolCall, Turn
from durable_nb.model.messages import Usage
from durable_nb.model.transcript import Transcript


@dataclass(frozen=True, slots=True)
class State:
    """A run between two steps.

    `at` is the program counter: the newest row that is neither a `Reentry` nor an `End failed`.
    `step` is the tool call in progress and `answers` what its gates were told. `claim` is the
    newest row that made somebody the driver.
    """

    newest: Row
    at: Row
    claim: Row
    transcript: Transcript
    step: ToolCall | None = None
    answers: tuple[Answered, ...] = ()
    usage: Usage = Usage()

    @property
    def number(self) -> int:
        return self.newest.number

    @property
    def turn(self) -> int:
        return self.at.entry.turn

    @property
    def status(self) -> str:
        """`paused`, `completed`, `failed`, `cancelled`; `open` while a step is in flight."""
        return status_of(self.newest.entry)

    def plus(self, row: Row) -> State:
        """The state one row on."""
        match entry := row.entry:
            case Turn():
                return self._said(row, entry, step=None)
            case ToolCall():
                return self._said(row, entry, step=entry)
            case Pause():
                return replace(self, newest=row, at=row)
            case Answer():
                answered = Answered(cast("Pause", self.at.entry), entry)
                return replace(
                    self, newest=row, at=row, claim=row, answers=(*self.answers, answered)
                )
            case Reentry():
                return replace(self, newest=row, claim=row)
            case End(status="failed"):
                return replace(self, newest=row)
            case End():
                return self._said(row, entry, step=None)

    def _said(self, row: Row, entry: Turn | ToolCall | End, *, step: ToolCall | None) -> State:
        return State(
            newest=row,
            at=row,
            claim=self.claim,
            transcript=self.transcript.plus(entry.messages),
            step=step,
            usage=self.usage + entry.usage,
        )


def fold(rows: Iterable[Row]) -> State:
    """The state that a run's rows, oldest first, add up to. The first is always a `Turn`."""
    later = iter(rows)
    first = next(later)
    opening = cast("Turn", first.entry)
    state = State(first, first, first, Transcript(opening.messages), usage=opening.usage)
    for row in later:
        state = state.plus(row)
    return state


def status_of(newest: Entry) -> str:
    """What a run's newest entry says of it, apart from who drives it."""
    match newest:
        case Pause():
            return "paused"
        case End(status=status):
            return status
        case _:
            return "open"
