"""A run's steps as lines of its card: pure.

A row's stored status says that the row is on disk. Of the newest row a card says how far its step
is, and on a tool's line what the tool raised.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from durable_nb.core.nodes import Checkpoint, checkpoints, shown_statuses
from durable_nb.core.text import aligned, literal
from durable_nb.model.entries import Answer, End, Log, Pause, Reentry, Row, ToolCall
from durable_nb.notebook.words import head

DETAIL = 160  # characters of a timeline's last column

_RAISED = re.compile(r"(?:\[(?:rejected|approved) .*\]\n)?(Error: .*)", re.DOTALL)


def timeline(log: Log, *, times: bool) -> list[str]:
    """A run's rows, aligned: `#0 turn:0/tool:refund  hitl_pause  interrupted  manager_approval`."""
    rows = checkpoints(log)
    errors, failed = dict(tool_errors(log)), _after_failures(log)
    return aligned(
        _columns(row, status, errors.get(row.number) or _detail(row, row.number in failed), times)
        for row, status in zip(rows, shown_statuses(log), strict=True)
    )


def tool_errors(log: Log) -> list[tuple[int, str]]:
    """What tools raised, each with the number of the row of its call; a call that could not run has
    none, and is with the row that brought its error."""
    found: list[tuple[int, str]] = []
    calls: dict[str | None, int] = {}
    for row in log.own:
        found += [(calls.get(call, row.number), error) for call, error in _raised(row)]
        if isinstance(row.entry, ToolCall):
            calls[row.entry.call_id] = row.number
    return found


def verdict(answer: Answer) -> str:
    return f"{'approved' if answer.approved else 'rejected'} by {answer.by}"


def _raised(row: Row) -> Iterable[tuple[str | None, str]]:
    for message in getattr(row.entry, "messages", ()):
        if message.role == "tool" and (error := _RAISED.match(message.content)):
            yield message.tool_call_id, error[1]


def _after_failures(log: Log) -> set[int]:
    """The numbers of the rows that come after an `End failed`."""
    return {
        row.number
        for before, row in zip(log.rows, log.rows[1:], strict=False)
        if isinstance(before.entry, End) and before.entry.status == "failed"
    }


def _columns(row: Checkpoint, status: str, detail: str, times: bool) -> tuple[str, ...]:
    when = (f"{row.created_at:%H:%M:%S}",) if times else ()
    place = f"#{row.node_index} {row.node_id}"
    return (*when, place, row.step_type, status, head(" ".join(detail.split()), DETAIL))


def _detail(row: Checkpoint, failed: bool) -> str:
    match row.entry:
        case Pause(reason=reason):
            return f"{reason} (pause {row.number})"
        case Answer(edited=edited, reason=reason) as answer:
            changes = "".join(f", {name}={literal(new)}" for name, new in (edited or {}).items())
            return verdict(answer) + changes + (f": {reason}" if reason else "")
        case Reentry(by=by, why="fork"):
            return f"by {by}, in a fork"
        case Reentry(by=by):
            return f"by {by}, after a {'failure' if failed else 'crash'}"
        case End(error=str(error)):
            return error
        case _:
            return ""
