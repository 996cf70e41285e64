"""A run's steps as lines of its card: pure.

A row's stored status says that the row is on disk. Of the newest row a card says how far its step
is, on a tool's line what the tool raised, and where the model was asked what that cost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from durable_nb.core.calls import ModelCall, call_notes, came_of, model_calls
from durable_nb.core.nodes import Checkpoint, checkpoints, shown_statuses
from durable_nb.core.text import aligned, literal
from durable_nb.model.entries import Answer, End, Entry, Log, Outcome, Pause, Reentry, Row, ToolCall
from durable_nb.notebook.words import head

DETAIL = 160  # characters of what was said in a row, or happened before

_RAISED = re.compile(r"(?:\[(?:rejected|approved) .*\]\n)?(Error: .*)", re.DOTALL)


def timeline(log: Log) -> list[str]:
    """A run's rows, aligned: `#0 turn:0/tool:refund  hitl_pause  interrupted  manager_approval`.

    Where the model was asked more than once, or was not sent everything, lines under it say so.
    """
    rows, calls = checkpoints(log), paid_calls(log)
    details = _details(log, rows, calls)
    lines = aligned(
        (f"#{row.node_index} {row.node_id}", row.step_type, status, detail)
        for row, status, detail in zip(rows, shown_statuses(log), details, strict=True)
    )
    return [
        "\n".join((line, *_under(calls.get(row.number))))
        for row, line in zip(rows, lines, strict=True)
    ]


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
    said = _OUTCOMES[answer.outcome] if answer.outcome else ""
    return f"{said or ('approved' if answer.approved else 'rejected')} by {answer.by}"


_OUTCOMES: Mapping[Outcome, str] = {
    "happened": "said to have happened",
    "run_again": "run again",
    "stop": "stopped",
}


def paid_calls(log: Log) -> dict[int, ModelCall]:
    """The calls of the model by the row that each was asked at, but for the newest row: its status
    says what there is to say."""
    newest = log.rows[-1].number
    return {call.row: call for call in model_calls(log) if call.row != newest}


def _details(log: Log, rows: Iterable[Checkpoint], calls: Mapping[int, ModelCall]) -> Iterator[str]:
    """What each row's line says beside its step."""
    errors, failed = dict(tool_errors(log)), after_failures(log)
    for row in rows:
        about = errors.get(row.number) or detail(row.number, row.entry, failed)
        asked = came_of(calls[row.number]) if row.number in calls else ""
        yield "  ".join(filter(None, (one_line(about), asked)))


def _under(call: ModelCall | None) -> Iterator[str]:
    for note in call_notes(call) if call else ():
        yield f"    {one_line(note)}"


def one_line(text: str) -> str:
    return head(" ".join(text.split()), DETAIL)


def _raised(row: Row) -> Iterable[tuple[str | None, str]]:
    for message in getattr(row.entry, "messages", ()):
        if message.role == "tool" and (error := _RAISED.match(message.content)):
            yield message.tool_call_id, error[1]


def after_failures(log: Log) -> set[int]:
    """The numbers of the rows that come after an `End failed`."""
    return {
        row.number
        for before, row in zip(log.rows, log.rows[1:], strict=False)
        if isinstance(before.entry, End) and before.entry.status == "failed"
    }


def detail(number: int, entry: Entry, failed: set[int]) -> str:
    """What the line of a row says beside its step; `failed` are the rows that come after an end."""
    match entry:
        case Pause(reason=reason):
            return f"{reason} (pause {number})"
        case Answer(edited=edited, reason=reason) as answer:
            changes = "".join(f", {name}={literal(new)}" for name, new in (edited or {}).items())
            return verdict(answer) + changes + (f": {reason}" if reason else "")
        case Reentry(by=by, why="fork"):
            return f"by {by}, in a fork"
        case Reentry(by=by):
            return f"by {by}, after a {'failure' if number in failed else 'crash'}"
        case End(error=str(error)):
            return error
        case _:
            return ""
