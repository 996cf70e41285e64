"""A run's steps as the inspector shows them, a page at a time: pure.

Only the steps of the page are drawn, whatever the run's length. Pages are counted from the newest
step back, and the steps of one are shown oldest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from durable_nb.core.calls import ModelCall, call_notes, came_of
from durable_nb.core.compare import message_text
from durable_nb.core.explain import call_text
from durable_nb.core.nodes import (
    agent_path,
    node_id,
    row_at,
    status,
    step_type,
)
from durable_nb.core.text import visible
from durable_nb.model.entries import Answer, End, Log, Pause, Reentry, Row, ToolCall, Turn
from durable_nb.model.errors import InvalidInput
from durable_nb.model.messages import Message
from durable_nb.notebook.inspector.details import details
from durable_nb.notebook.parts import Step, Timeline, Tone
from durable_nb.notebook.timeline import after_failures, detail, one_line, paid_calls, tool_errors
from durable_nb.notebook.words import elapsed, head, word

PAGE = 50  # steps
WIDE = 48  # characters of a node or an agent's path in a line

_NEWEST = {"running": "in flight", "crashed": "died here", "failed": "failed"}


@dataclass(frozen=True, slots=True)
class Page:
    """Which of a run's own steps are shown: `rows`, of page `number` of `pages`; `opened` is the
    number of the step that is shown with all there is to it."""

    number: int
    pages: int
    rows: tuple[Row, ...]
    first: int
    total: int
    opened: int | None = None


def page_of(log: Log, number: int = 1, step: int | str | None = None) -> Page:
    """The page of that number, or the one that has the step. Raises `InvalidInput`."""
    own = log.own
    pages = -(-len(own) // PAGE)
    opened = None if step is None else _place(log, own, step)
    if opened is not None:
        number = 1 + (len(own) - 1 - opened) // PAGE
    if not 1 <= number <= pages:
        have = "1 page" if pages == 1 else f"{pages} pages, of which 1 has the newest steps"
        raise InvalidInput(f"run {log.run.execution_id!r} has {have}; there is no page {number}")
    end = len(own) - (number - 1) * PAGE
    first = max(0, end - PAGE)
    shown = None if opened is None else own[opened].number
    return Page(number, pages, own[first:end], first, len(own), shown)


def timeline_of(log: Log, page: Page, run_status: str) -> Timeline:
    """The steps of a page, and how to come to the others."""
    title = f"{page.total} step{'' if page.total == 1 else 's'}"
    if page.pages > 1:
        last = page.first + len(page.rows)
        title = f"steps {page.first + 1:,}–{last:,} of {page.total:,}, page {page.number} of {page.pages:,}"
    return Timeline(title, tuple(_steps(log, page, run_status)), tuple(_more(log, page)))


def step_label(log: Log, row: Row) -> str:
    """A step in a list to choose from: `3 · turn:0/tool:refund · hitl_pause`."""
    node = head(visible(node_id(row.entry)), WIDE)
    return f"{row.number} · {node} · {step_type(row.entry)}"


def _place(log: Log, own: Sequence[Row], step: int | str) -> int:
    """The place among a run's own rows of a number or a node."""
    row = row_at(own, step)
    if row is not None:
        return own.index(row)
    run = word(log.run.execution_id)
    if row_at(log.rows, step) is not None:
        parent = word(str(log.run.parent))
        raise InvalidInput(
            f"step {step} came before run {run} left {parent}; %durable show {parent} --step {step}"
        )
    raise InvalidInput(
        f"run {run} has no step {step!r}; there are numbers from {own[0].number} to {own[-1].number}"
    )


def _more(log: Log, page: Page) -> Iterator[tuple[str, str]]:
    run = word(log.run.execution_id)
    if page.number < page.pages:
        yield f"%durable show {run} --page {page.number + 1}", "older steps"
    if page.number > 1:
        yield f"%durable show {run} --page {page.number - 1}", "newer steps"


@dataclass(frozen=True, slots=True)
class _Around:
    """What of the whole log a page's lines need."""

    log: Log
    calls: Mapping[int, ModelCall]
    errors: Mapping[int, str]
    failed: set[int]
    results: Mapping[str, Message]
    state: str


def _steps(log: Log, page: Page, run_status: str) -> Iterator[Step]:
    own, end = log.own, page.first + len(page.rows)
    around = _Around(
        log,
        paid_calls(log),
        dict(tool_errors(log)),
        after_failures(log),
        _results(own[page.first :]),
        run_status,
    )
    for row, after in zip(page.rows, (*own[page.first + 1 : end], _next(own, end)), strict=True):
        yield _step(row, after, around, row.number == page.opened)


def _next(own: Sequence[Row], place: int) -> Row | None:
    return own[place] if place < len(own) else None


def _results(rows: Iterable[Row]) -> dict[str, Message]:
    """What the model was told of each call, by the call's id."""
    return {
        str(message.tool_call_id): message
        for row in rows
        for message in getattr(row.entry, "messages", ())
        if message.role == "tool"
    }


def _step(row: Row, after: Row | None, around: _Around, opened: bool) -> Step:
    entry, call = row.entry, around.calls.get(row.number)
    shown = _status(row, after, around)
    tone, glyph = _mark(row, shown, around)
    columns = (
        str(row.number),
        _short(node_id(entry)),
        step_type(entry),
        shown,
        _short(agent_path(around.log.run.agent, entry)),
        _took(row, after, around.state),
        came_of(call) if call else "",
    )
    under = (*_said(row, after, around), *(call_notes(call) if call else ()))
    result = around.results.get(entry.call_id) if isinstance(entry, ToolCall) else None
    parts = details(
        around.log, row, reply=_reply(row, after), result=result, call=call, opened=opened
    )
    return Step(tone, glyph, columns, tuple(map(one_line, under)), parts, opened)


def _short(name: str) -> str:
    return visible(name if len(name) <= WIDE else f"{name[: WIDE - 1]}…")


def _status(row: Row, after: Row | None, around: _Around) -> str:
    stored = status(row.entry)
    return _NEWEST.get(around.state, stored) if after is None else stored


def _mark(row: Row, shown: str, around: _Around) -> tuple[Tone | None, str]:
    """The colour and glyph of a line: a hint beside its words, never instead of them."""
    if row.number in around.errors or shown in ("failed", "died here"):
        return "red", "↯" if shown == "died here" else "✗"
    if shown == "in flight":
        return "blue", "▸"
    match row.entry:
        case Pause():
            return "amber", "●"
        case Answer(approved=approved, outcome=None):
            return ("green", "✓") if approved else ("slate", "✗")
        case End(status=ending):
            return ("green", "✓") if ending == "completed" else ("slate", "■")
        case _:
            return None, "·"


def _took(row: Row, after: Row | None, state: str) -> str:
    """How long it was until the next row; what a process left by dying took nobody knows."""
    if after is None or isinstance(row.entry, End):
        return ""
    if isinstance(after.entry, Reentry) and not isinstance(row.entry, Pause):
        return "cut off"
    time = elapsed(max(0, after.at - row.at))
    return f"waited {time}" if isinstance(row.entry, Pause) else time


def _said(row: Row, after: Row | None, around: _Around) -> Iterator[str]:
    """The line under a step: what was done, and what came of it."""
    match entry := row.entry:
        case Turn() | Reentry(tool=None):
            yield from filter(None, (detail(row.number, entry, around.failed),))
            if (reply := _reply(row, after)) is not None:
                yield f"→ {message_text(reply)}"
        case ToolCall(tool=tool, arguments=arguments, call_id=call_id):
            result = around.results.get(call_id)
            told = "" if result is None else f" → {result.content}"
            yield f"{call_text(tool, arguments)}{told}"
            if _died(after, around):
                yield "in doubt: it had begun when its process died"
        case End(output=str(output)):
            yield output
        case _:
            yield from filter(None, (detail(row.number, entry, around.failed),))
    if row.number in around.errors and not isinstance(entry, ToolCall):
        yield around.errors[row.number]


def _died(after: Row | None, around: _Around) -> bool:
    """Whether the process that began a step was gone before the next row."""
    if after is None:
        return around.state == "crashed"
    return isinstance(after.entry, Reentry) and after.entry.why == "crash"


def _reply(row: Row, after: Row | None) -> Message | None:
    """What the model said when it was asked at this row."""
    asked = isinstance(row.entry, Turn) or (
        isinstance(row.entry, Reentry) and row.entry.tool is None
    )
    if not asked or after is None or not isinstance(after.entry, Turn | ToolCall | End):
        return None
    said = [each for each in after.entry.messages if each.role == "assistant"]
    return said[0] if said else None
