"""Where a fork leaves its parent and what it begins with; how a conversation goes on (R5, R7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from durable_nb.core.nodes import node_id, row_at
from durable_nb.core.state import State
from durable_nb.model.entries import Answer, End, Pause, Reentry, Row, ToolCall, Turn
from durable_nb.model.errors import ForkRefused, InvalidInput
from durable_nb.model.messages import Message


@dataclass(frozen=True, slots=True)
class Branch:
    """A fork's first entries, which come after the parent's entry `base`."""

    base: int
    opening: tuple[Reentry | Pause, ...]


def branch(
    execution_id: str,
    rows: Sequence[Row],
    *,
    at: str | int | None,
    prompt: str | None,
    edit: Mapping[str, object] | None,
    by: str,
) -> Branch:
    """How a fork of the history `rows` begins.

    `at` is a node (its first `Turn` or `ToolCall`) or a number; None is the newest entry that is
    not an end, or, for an edit of a run that waits, the call that waits. Raises `ForkRefused` for
    what is not a step, and `InvalidInput` for an edit of arguments that the step does not have.
    """
    row = _step(execution_id, rows, _found(execution_id, rows, at))
    if at is None and edit is not None and isinstance(row.entry, Pause):
        row = _call(rows, row)
    entry = row.entry
    if edit is not None and not isinstance(entry, ToolCall):
        raise InvalidInput(
            f"{node_id(entry)} (entry {row.number}) has no arguments to edit; fork at a tool call"
        )
    tool = getattr(entry, "tool", None)
    reentry = Reentry(
        entry.turn, tool, of=row.number, by=by, why="fork", prompt=prompt, edited=edit
    )
    if isinstance(entry, Pause):
        return Branch(row.number, (reentry, entry))
    return Branch(row.number, (reentry,))


def follow_up(state: State, prompt: str) -> Turn:
    """The first entry of a session's next run, after one that is completed or cancelled."""
    unanswered = [
        Message("tool", "[not run: cancelled]", tool_call_id=call.id)
        for call in state.transcript.open_calls()
    ]
    waiting = [] if state.prompt is None else [Message("user", state.prompt)]
    return Turn(0, (*unanswered, *waiting, Message("user", prompt)))


def _found(execution_id: str, rows: Sequence[Row], at: str | int | None) -> Row:
    if at is None:
        return next(row for row in reversed(rows) if not isinstance(row.entry, End))
    if (row := row_at(rows, at)) is not None:
        return row
    nodes = dict.fromkeys(node_id(row.entry) for row in rows)
    raise ForkRefused(
        f"run {execution_id!r} has no entry {at!r}; fork at a number from 1 to {rows[-1].number}, or "
        f"at one of {', '.join(nodes)}"
    )


def _call(rows: Sequence[Row], pause: Row) -> Row:
    """The call that made a pause."""
    before = (row for row in reversed(rows) if row.number < pause.number)
    return next(row for row in before if isinstance(row.entry, ToolCall))


def _step(execution_id: str, rows: Sequence[Row], row: Row) -> Row:
    """The step that an entry belongs to: an approval is never inherited."""
    match entry := row.entry:
        case End():
            raise ForkRefused(
                f"entry {row.number} of run {execution_id!r} is how it {entry.status}, not a step; "
                "fork at a turn or a tool call"
            )
        case Answer(pause=number) | Reentry(of=number):
            return _step(execution_id, rows, next(each for each in rows if each.number == number))
        case Pause():
            return replace(row, entry=replace(entry, expires_at=None))
        case _:
            return row
