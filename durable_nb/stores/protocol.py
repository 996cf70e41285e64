"""What an agent needs of a store. Time and chance come in as arguments; see the contract tests.

A **claim** is an append that won: `(execution_id, number)` is unique, and whoever wrote the newest
entry drives. A `Lease` is the right to append; it dies with its process (DESIGN section 7).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from durable_nb.core.nodes import Checkpoint, Pending
from durable_nb.model.entries import Answer, End, Entry, Log, Reentry, Row, Run
from durable_nb.model.values import Json


@dataclass(slots=True)
class Lease:
    """The right to append to one run. `number` is the newest entry that its holder knows of."""

    execution_id: str
    run: int
    writer: int
    number: int
    frame: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """An `@idempotent` function's result, in its frozen form: a kept None is a result too."""

    value: Json


@dataclass(frozen=True, slots=True)
class Begun:
    """An `@idempotent` function had begun and left no result: whether it happened is in doubt."""

    at: int
    number: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """An `@idempotent` function has not been called with this key."""


Effect: TypeAlias = Kept | Begun | Unknown


class RunRow(NamedTuple):
    """One line of a list of runs, as tables hold it: times in microseconds, tags as JSON."""

    execution_id: str
    session: str
    agent: str
    status: str
    prompt: str
    steps: int
    created: int
    updated: int
    tags: str
    workdir: str | None
    parent: str | None


@dataclass(frozen=True, slots=True)
class RunStatus:
    """One line of a list of runs, for people. `steps` counts rows; times are UTC."""

    execution_id: str
    agent: str
    status: str
    session: str
    prompt: str
    steps: int
    created_at: datetime
    updated_at: datetime
    tags: tuple[str, ...] = ()
    workdir: str | None = None
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation: a run and its follow-ups. `newest` is the run that a prompt continues."""

    session: str
    newest: str
    status: str
    agent: str
    prompt: str
    runs: int
    created_at: datetime
    updated_at: datetime


class Branch(NamedTuple):
    """A run that goes on from another one, after that one's entry `number`."""

    execution_id: str
    number: int


@dataclass(frozen=True, slots=True)
class EffectRow:
    """What a run's `@idempotent` function did. `kept_at` is None for a call in doubt, or begun."""

    function: str
    key: str
    attempts: int
    begun_at: datetime
    kept_at: datetime | None


class Checkpointer(Protocol):
    """A store of runs. Every method may be called from any thread.

    All raise `StoreUnusable`, `StoreBusy` or `StoreCorrupt` for what is wrong with the store.
    """

    def create(self, run: Run, *opening: Entry, at: int, writer: int) -> Lease:
        """Write a run and its first entries, and drive it. Raises `ExecutionExists`."""

    def claim(
        self,
        execution_id: str,
        entry: Answer | Reentry | End,
        *,
        after: int,
        at: int,
        writer: int,
        take_over: bool = False,
        definition: str = "",
    ) -> tuple[Lease, Row]:
        """Append the entry that makes the caller the driver, if `after` is the newest number.

        `definition` is the text behind the entry's fingerprint. Raises `StaleLog` if `after` is
        not the newest, `RunIsLive` if a living process drives the run, unless `take_over` says
        that it is known to be stopped. Nothing is written then.
        """

    def append(self, lease: Lease, entry: Entry, *, at: int) -> Row:
        """Append the next entry. Raises `StaleLog` if another writer's entry is newer."""

    def release(self, lease: Lease) -> None:
        """Stop driving. The run is free for others."""

    def load(self, execution_id: str) -> Log:
        """The run with all its history. Raises `UnknownExecution`."""

    def effect(self, lease: Lease, key: str) -> Effect:
        """What is known of an `@idempotent` call in this run."""

    def begin(self, lease: Lease, key: str, function: str, *, at: int) -> None:
        """Mark a call as begun. Raises `StaleLog` if another writer's entry is newer."""

    def keep(self, lease: Lease, key: str, value: Json, *, at: int) -> None:
        """Keep a call's frozen result. Raises `StaleLog` if another writer's entry is newer."""

    def runs(self) -> Sequence[RunStatus]:
        """All runs, newest first."""

    def list(self, execution_id: str) -> Sequence[Checkpoint]:
        """A run's own rows, oldest first. Raises `UnknownExecution`."""

    def get_last(self, execution_id: str) -> Checkpoint:
        """A run's newest row. Raises `UnknownExecution`."""

    def list_pending_interrupts(self) -> Sequence[Pending]:
        """Every pause that waits for a decision, oldest first."""

    def effects(self, execution_id: str) -> Sequence[EffectRow]:
        """What the run's `@idempotent` functions did, in the order in which they began, a call that
        was begun again by its last time. Raises `UnknownExecution`."""

    def session(self, execution_id: str) -> Sequence[str]:
        """The runs of the conversation that a run belongs to, oldest first."""

    def branches(self, execution_id: str) -> Sequence[Branch]:
        """The forks and follow-ups that go on from a run, oldest first."""

    def sessions(self, *, limit: int | None = None, offset: int = 0) -> Sequence[Session]:
        """The conversations, the one with the newest run first."""

    def cancel(self, execution_id: str, *, by: str | None = None) -> None:
        """End a run as cancelled; a live owner stops at its next entry."""

    def delete_execution(self, execution_id: str) -> None:
        """Forget a run, whatever its status. Raises `RunIsLive` for one that is driven and
        `InvalidInput` for one that a fork or follow-up needs."""

    def prune(
        self,
        older_than: timedelta | float,
        *,
        tags: Collection[str] = (),
        status: str | None = None,
        dry_run: bool = False,
    ) -> Sequence[str]:
        """Forget whole runs that ended longer ago than `older_than` (seconds, or a timedelta),
        with their effects. Returns their ids, oldest first; with `dry_run`, those that would go.

        Never a paused, crashed or live one, never what a fork or follow-up still needs.
        """

    def close(self) -> None:
        """Let go of files and locks. Anything but another `close` raises `StoreUnusable` after."""


@runtime_checkable
class Readable(Protocol):
    """A store that can be explored without disturbing who writes to it (DESIGN R10)."""

    def stamp(self) -> object:
        """Equal stamps mean that nothing has changed in between."""

    def removals(self) -> int:
        """How often runs were removed: rows that were read before may be gone, or be others now."""

    def settled(self) -> int:
        """The place before which all rows can be read and none will be added. A row's place is
        where it stands among all rows; of writers at work, an earlier one may commit later."""

    def entry_rows(
        self, *, since: int = 0, execution_id: str | None = None
    ) -> Iterable[tuple[Any, ...]]:
        """`(place, execution_id, agent, frame, number, kind, turn, tool, at, body)` of the rows
        from a place on, in their order; of one run, by number."""

    def waiting_rows(self) -> Iterable[tuple[Any, ...]]:
        """Those of the entries that are pauses which wait for a decision, oldest first."""

    def run_rows(self) -> Iterable[tuple[Any, ...]]:
        """All runs in the order of a `RunRow`, newest first."""

    def effect_rows(self, execution_id: str | None = None) -> Iterable[tuple[Any, ...]]:
        """`(execution_id, function, key, number, newest, attempts, begun, kept, value)` of what
        `@idempotent` functions did. `newest` is the run's newest number, for a call without a
        result."""
