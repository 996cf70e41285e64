"""What `run` and `resume` return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from durable_nb.core.nodes import agent_path, node_id
from durable_nb.core.state import State
from durable_nb.model.entries import End, Pause
from durable_nb.model.messages import Message, Usage


class PendingInterrupt(TypedDict):
    """The pause that a run waits at. `number` binds an answer to it."""

    reason: str
    context: object
    node_id: str
    agent_path: str
    number: int


@dataclass(frozen=True, slots=True)
class RunResult:
    """How far a run went: `paused`, `completed` or `cancelled` (a failed one raises).

    `output` is the model's last answer; it is None unless the run completed. `usage` is in tokens,
    over the whole run.
    """

    status: str
    output: str | None
    execution_id: str
    messages: tuple[Message, ...]
    usage: Usage
    pending_interrupt: PendingInterrupt | None = None

    def __repr__(self) -> str:
        """Short: the transcript is in `.messages`."""
        pause = self.pending_interrupt
        said = self.output if pause is None else pause["reason"]
        return f"RunResult({self.execution_id!r}, {self.status}: {said!r})"


def result_of(execution_id: str, agent: str, state: State) -> RunResult:
    """The result that a state at rest stands for."""
    entry = state.at.entry
    waits: PendingInterrupt | None = None
    if isinstance(entry, Pause):
        waits = {
            "reason": entry.reason,
            "context": entry.context,
            "node_id": node_id(entry),
            "agent_path": agent_path(agent, entry),
            "number": state.number,
        }
    output = entry.output if isinstance(entry, End) else None
    messages = tuple(state.transcript)
    return RunResult(state.status, output, execution_id, messages, state.usage, waits)
