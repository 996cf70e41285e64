"""The six kinds of entry of a run's log (DESIGN section 2), and the row that holds one.

An entry is written before the step it names, and never changes. `turn` is the zero-based model
turn. `messages` are those new since the entry before; `usage` is the cost of the reply among them,
and `asked` how it was come by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from durable_nb.model.messages import Asked, Message, Usage

OnReject: TypeAlias = Literal["run", "skip"]
Ending: TypeAlias = Literal["completed", "failed", "cancelled"]
Asks: TypeAlias = Literal["approval", "in_doubt"]
Outcome: TypeAlias = Literal["happened", "run_again", "stop"]
Source: TypeAlias = Literal["human", "timeout"]
Why: TypeAlias = Literal["crash", "fork"]


@dataclass(frozen=True, slots=True)
class Turn:
    """The model is about to be asked."""

    turn: int
    messages: tuple[Message, ...] = ()
    usage: Usage = Usage()
    asked: Asked = Asked()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool is about to run with these arguments."""

    turn: int
    tool: str
    call_id: str
    arguments: Mapping[str, object]
    messages: tuple[Message, ...] = ()
    usage: Usage = Usage()
    asked: Asked = Asked()


@dataclass(frozen=True, slots=True)
class Pause:
    """A person is asked: for approval by the tool, or what became of a call in doubt.

    `position` counts the `interrupt()` calls of its step from zero. `key` is that of the
    `@idempotent` call in doubt; None where the tool call itself is. `expires_at` is in µs.
    """

    turn: int
    tool: str
    reason: str
    context: object
    digest: str
    position: int = 0
    on_reject: OnReject = "run"
    asks: Asks = "approval"
    key: str | None = None
    expires_at: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A decision: the claim of one pause.

    `edited` are arguments of the tool, by name, that replace the saved ones. `shown` is the digest
    of the arguments that the person saw, `ran` of those that the tool runs with. `outcome` and
    `result` answer for a call in doubt. `changed` names what of the agent is not as it was when
    the pause was written; `fingerprint` is the agent's now, `workdir` where the run goes on.
    """

    turn: int
    tool: str
    pause: int
    approved: bool
    by: str
    reason: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    edited: Mapping[str, object] | None = None
    source: Source = "human"
    shown: str = ""
    ran: str = ""
    outcome: Outcome | None = None
    result: object = None
    changed: tuple[str, ...] = ()
    fingerprint: str = ""
    workdir: str | None = None


@dataclass(frozen=True, slots=True)
class Reentry:
    """The claim of a crashed or failed run, or the first entry of a fork.

    `of` is the number of the entry that is re-entered, `edited` a fork's changes to its arguments.
    `prompt` is said before the model is asked next. The rest is as in `Answer`.
    """

    turn: int
    tool: str | None
    of: int
    by: str
    why: Why = "crash"
    prompt: str | None = None
    edited: Mapping[str, object] | None = None
    changed: tuple[str, ...] = ()
    fingerprint: str = ""
    workdir: str | None = None


@dataclass(frozen=True, slots=True)
class End:
    """How the run ended. `turn` is one more than the last turn's."""

    turn: int
    status: Ending
    output: str | None = None
    error: str | None = None
    messages: tuple[Message, ...] = ()
    usage: Usage = Usage()
    asked: Asked = Asked()


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
    """What is stored once for a run. `prompt` is the head of the first prompt, for lists.

    A fork or follow-up has a `parent`, whose entries up to the number `base` come before its own.
    """

    execution_id: str
    agent: str
    prompt: str
    created_at: int
    session: str
    definition: str = "{}"
    fingerprint: str = ""
    workdir: str | None = None
    tags: tuple[str, ...] = ()
    parent: str | None = None
    base: int = 0


@dataclass(frozen=True, slots=True)
class Log:
    """A run as one read saw it. `rows` is its whole history, oldest first, a parent's included.

    `live`: somebody drives it. `definition`: what the agent was made of when it was last driven.
    """

    run: Run
    rows: tuple[Row, ...]
    live: bool
    definition: str = "{}"

    @property
    def own(self) -> tuple[Row, ...]:
        """The rows that this run wrote itself."""
        return tuple(row for row in self.rows if row.number > self.run.base)
