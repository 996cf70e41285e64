"""`state = fold(rows)`: everything a run's log says, in one value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

from durable_nb.model.commands import Answered
from durable_nb.model.entries import Answer, End, Log, Pause, Reentry, Row, ToolCall, Turn
from durable_nb.model.messages import Message, Usage
from durable_nb.model.transcript import Transcript


@dataclass(frozen=True, slots=True)
class State:
    """A run between two steps.

    `at` is the program counter: the newest row that is neither a `Reentry` nor an `End failed`.
    `step` is the tool call in progress, `answers` what was decided in it and `edited` what a fork
    changed of its arguments. `claim` is the newest row that made somebody the driver. `prompt`
    waits for the next `Turn`. `start` is where the history was cut when it was last too long to be
    sent.
    """

    newest: Row
    at: Row
    claim: Row
    transcript: Transcript
    step: ToolCall | None = None
    answers: tuple[Answered, ...] = ()
    usage: Usage = Usage()
    workdir: str | None = None
    prompt: str | None = None
    start: int = 0

    @property
    def number(self) -> int:
        return self.newest.number

    @property
    def turn(self) -> int:
        return self.at.entry.turn

    @property
    def status(self) -> str:
        """`paused`, `completed`, `failed`, `cancelled`; `open` while a step is in flight."""
        match self.newest.entry:
            case Pause():
                return "paused"
            case End(status=status):
                return status
            case _:
                return "open"

    @property
    def died(self) -> bool:
        """Whether the step at the program counter had begun before, in a process that is gone."""
        newest = self.newest.entry
        return isinstance(newest, Reentry) and newest.why == "crash"

    def plus(self, row: Row) -> State:
        """The state one row on."""
        match entry := row.entry:
            case Turn():
                return self._at_turn(row, entry)
            case ToolCall():
                return self._said(row, entry, entry.messages, entry)
            case Pause():
                return replace(self, newest=row, at=row)
            case Answer():
                answered = Answered(row.number, cast(Pause, self.at.entry), entry)
                answers = (*self.answers, answered)
                return replace(self._claimed(row, entry), at=row, answers=answers)
            case Reentry():
                return self._reentered(row, entry)
            case End(status="failed"):
                return replace(self, newest=row)
            case End():
                return self._said(row, entry, entry.messages, None)

    def _at_turn(self, row: Row, entry: Turn) -> State:
        said = entry.messages
        if self.prompt is not None:
            said = (*said, Message("user", self.prompt))
        return self._said(row, entry, said, None)

    def _said(
        self,
        row: Row,
        entry: Turn | ToolCall | End,
        messages: tuple[Message, ...],
        step: ToolCall | None,
    ) -> State:
        trim = entry.asked.trim
        return State(
            newest=row,
            at=row,
            claim=self.claim,
            transcript=self.transcript.plus(messages),
            step=step,
            usage=self.usage + entry.usage,
            workdir=self.workdir,
            prompt=None if step is None else self.prompt,
            start=self.start if trim is None else trim.start,
        )

    def _claimed(self, row: Row, entry: Answer | Reentry) -> State:
        return replace(self, newest=row, claim=row, workdir=entry.workdir or self.workdir)

    def _reentered(self, row: Row, entry: Reentry) -> State:
        """A fork inherits no approval. At a `Turn` a prompt is said at once; in a step it waits
        until all calls are settled."""
        state = self._claimed(row, entry)
        if entry.why == "fork":
            state = replace(state, answers=(), step=_edited(self.step, entry))
        if entry.prompt is None:
            return state
        if isinstance(self.at.entry, Turn):
            return replace(state, transcript=self.transcript.plus((Message("user", entry.prompt),)))
        return replace(state, prompt=entry.prompt)


def _edited(step: ToolCall | None, fork: Reentry) -> ToolCall | None:
    if step is None or not fork.edited:
        return step
    return replace(step, arguments={**step.arguments, **fork.edited})


def fold(rows: Iterable[Row]) -> State:
    """The state that rows, oldest first, add up to. The first is always a `Turn`."""
    later = iter(rows)
    first = next(later)
    opening = cast(Turn, first.entry)
    state = State(first, first, first, Transcript(opening.messages), usage=opening.usage)
    for row in later:
        state = state.plus(row)
    return state


def state_of(log: Log) -> State:
    """A run's state. What its parent spent is the parent's, where it works is its own."""
    own = log.own
    inherited = log.rows[: len(log.rows) - len(own)]
    state = replace(fold(inherited or own[:1]), workdir=log.run.workdir)
    if inherited:
        state = replace(state, usage=Usage(), claim=own[0])
    for row in own if inherited else own[1:]:
        state = state.plus(row)
    return state
