"""The six kinds of entry of a run's log (DESIGN section 2), and the row that holds one.

An entry is written before the step it names, and never changes. `turn` is the zero-based model
turn. `messages` are those new since the entry before; `usage` is the cost of the reply among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from durable_nb.model.messages import Message, Usage

OnReject: TypeAlias = Literal["run", "skip"]
Ending: TypeAlias = Literal["completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Turn:
    """The model is about to be asked."""

    turn: int
    messages: tuple[Message, ...] = ()
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool is about to run with these arguments."""

    turn: int
    tool: str
    call_id: str
    arguments: Mapping[str, object]
    messages: tuple[Message, ...] = ()
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Pause:
    """A tool asked for a person. `position` counts the `interrupt()` calls of its step from zero."""

    turn: int
    tool: str
    reason: str
    context: object
    digest: str
    position: int = 0
    on_reject: OnReject = "run"


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's decision: the claim of one pause.

    `edited` are arguments of the tool, by name, that replace the saved ones. `shown` is the digest
    of the arguments that the person saw, `ran` of those that the tool runs with.
    """

    turn: int
    tool: str
    pause: int
    approved: bool
    by: str
    reason: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    edited: Mapping[str, object] | None = None
    source: str = "human"
    shown: str = ""
    ran: str = ""


@dataclass(frozen=True, slots=True)
class Reentry:
    """The claim of a crashed or failed run. `of` is the number of the entry that is re-entered."""

    turn: int
    tool: str | None
    of: int
    by: str


@dataclass(frozen=True, slots=True)
class End:
    """How the run ended. `turn` is one more than the last turn's."""

    turn: int
    status: Ending
    output: str | None = None
    error: str | None = None
    messages: tuple[Message, ...] = ()
    usage: Usage = Usage()


Entry: TypeAlias = Turn | ToolCall | Pause | Answer | Reentry | End


@dataclass(frozen=True, slots=True)
class Row:
    """An entry in its place: `number` orders a run's rows, `at` (µs since 1970, UTC) does not."""

    number: int
    at: int
    writer: int
    entry: Entry
    frame: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """What is stored once for a run. `prompt` is the head of the first prompt, for lists."""

    execution_id: str
    agent: str
    prompt: str
    created_at: int
    session: str
    definition: str = "{}"
    fingerprint: str = ""
    workdir: str | None = None
    tags: tuple[str, ...] = ()
    base: int = 0


@dataclass(frozen=True, slots=True)
class Log:
    """A run and all its rows, oldest first, as one read saw them. `live`: somebody drives it."""

    run: Run
    rows: tuple[Row, ...]
    live: bool
