"""Entries as users see them: checkpoints with a node, a step type and a status (DESIGN section 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import cast

from durable_nb.core.state import State, state_of
from durable_nb.core.text import aligned
from durable_nb.model.entries import (
    Answer,
    End,
    Entry,
    Log,
    Pause,
    Reentry,
    Row,
    ToolCall,
    Turn,
)
from durable_nb.model.messages import Message

_NEWEST = {"running": "in flight", "crashed": "died here"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One row of a run. `str()` gives the line that listings show."""

    execution_id: str
    number: int
    node_id: str
    node_index: int
    step_type: str
    status: str
    agent_path: str
    created_at: datetime
    entry: Entry
    _log: Log = field(repr=False)

    @property
    def state_snapshot(self) -> dict[str, object]:
        """The messages and tokens up to and including this row, computed when asked for."""
        upto = tuple(row for row in self._log.rows if row.number <= self.number)
        state = state_of(replace(self._log, rows=upto))
        messages: tuple[Message, ...] = tuple(state.transcript)
        return {"turn": state.turn, "messages": messages, "usage": state.usage}

    def __str__(self) -> str:
        return listing([self])


@dataclass(frozen=True, slots=True)
class Pending:
    """A pause that waits for a decision. `context` is as it was frozen at the pause."""

    execution_id: str
    number: int
    reason: str
    context: object
    node_id: str
    agent_path: str
    agent: str
    tool: str
    arguments: Mapping[str, object]
    created_at: datetime
    asks: str = "approval"
    expires_at: datetime | None = None


def checkpoints(log: Log) -> list[Checkpoint]:
    """A run's own rows as users see them, oldest first."""
    return [
        Checkpoint(
            execution_id=log.run.execution_id,
            number=row.number,
            node_id=node_id(row.entry),
            node_index=row.entry.turn,
            step_type=step_type(row.entry),
            status=status(row.entry),
            agent_path=agent_path(log.run.agent, row.entry),
            created_at=moment(row.at),
            entry=row.entry,
            _log=log,
        )
        for row in log.own
    ]


def pauses(log: Log) -> dict[int, Pause]:
    """Every pause that the run itself ever had, by its number."""
    return {row.number: row.entry for row in log.own if isinstance(row.entry, Pause)}


def open_pause(log: Log) -> Pending | None:
    """The pause that the run waits at, if it does."""
    if not isinstance(log.rows[-1].entry, Pause):
        return None
    calls = (at for at, row in enumerate(log.rows) if isinstance(row.entry, ToolCall))
    return pending(log.run.execution_id, log.run.agent, log.rows[max(calls) :])


def pending(execution_id: str, agent: str, step: Sequence[Row]) -> Pending:
    """The open pause that ends `step`: the rows from a `ToolCall` on."""
    call, row = cast("ToolCall", step[0].entry), step[-1]
    pause = cast("Pause", row.entry)
    arguments = dict(call.arguments)
    for earlier in step:
        if isinstance(earlier.entry, Reentry) and earlier.entry.why == "fork":
            arguments = dict(call.arguments)
        if isinstance(earlier.entry, Answer | Reentry):
            arguments.update(earlier.entry.edited or {})
    return Pending(
        execution_id=execution_id,
        number=row.number,
        reason=pause.reason,
        context=pause.context,
        node_id=node_id(pause),
        agent_path=agent_path(agent, pause),
        agent=agent,
        tool=pause.tool,
        arguments=arguments,
        asks=pause.asks,
        expires_at=None if pause.expires_at is None else moment(pause.expires_at),
        created_at=moment(row.at),
    )


def status_of(log: Log, state: State | None = None) -> str:
    """`running`, `paused`, `crashed`, `completed`, `failed` or `cancelled`."""
    status = (state or state_of(log)).status
    if status != "open":
        return status
    return "running" if log.live else "crashed"


def shown_statuses(log: Log) -> list[str]:
    """The statuses of a run's own rows for people. `completed` says that a row is on disk; of the
    newest one they read how far its step is."""
    stored = [status(row.entry) for row in log.own]
    return [*stored[:-1], _NEWEST.get(status_of(log), stored[-1])]


def node_id(entry: Entry) -> str:
    match entry:
        case End():
            return "run_end"
        case Turn() | Reentry(tool=None):
            return f"turn:{entry.turn}"
        case _:
            return f"turn:{entry.turn}/tool:{entry.tool}"


def row_at(rows: Sequence[Row], at: str | int) -> Row | None:
    """The row of that number, or the first `Turn`, `ToolCall` or `End` of that node."""
    for row in rows:
        named = isinstance(row.entry, Turn | ToolCall | End) and node_id(row.entry) == at
        if named or row.number == at:
            return row
    return None


def step_type(entry: Entry) -> str:
    match entry:
        case Turn():
            return "llm_call"
        case ToolCall():
            return "tool_call"
        case Pause():
            return "hitl_pause"
        case Answer() | Reentry():
            return "resume"
        case End():
            return "run_end"


def status(entry: Entry) -> str:
    match entry:
        case Pause():
            return "interrupted"
        case End():
            return entry.status
        case _:
            return "completed"


def agent_path(agent: str, entry: Entry) -> str:
    """Who wrote the entry: `agent:NAME`, and the tool where there is one."""
    tool = getattr(entry, "tool", None)
    return f"agent:{agent}/tool:{tool}" if tool else f"agent:{agent}"


def moment(at: int) -> datetime:
    """Microseconds since 1970 as a UTC datetime."""
    return _EPOCH + timedelta(microseconds=at)


def listing(rows: Sequence[Checkpoint]) -> str:
    """The rows as aligned text, one a line: `#0 turn:0/tool:refund  tool_call  completed`."""
    lines = ((f"#{row.node_index} {row.node_id}", row.step_type, row.status) for row in rows)
    return "\n".join(aligned(lines))
