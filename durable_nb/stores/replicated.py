"""What a store offers beside `Checkpointer` if its runs can be copied to a plane. It is optional:
a store without it does not replicate, and agents do not miss it.

A row **waits** from the moment it is written until the plane has acknowledged it or refused it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from durable_nb.model.codec import Stored
from durable_nb.model.entries import Run


class Remembered(NamedTuple):
    """What an `@idempotent` call of a run has left, as tables hold it: `kept` and `value` are None
    while it is in doubt. Of two states of one call, that with a result is the newer one."""

    key: str
    function: str
    number: int
    attempts: int
    begun: int
    kept: int | None
    value: str | None


Copied: TypeAlias = Stored | Remembered


class Replica(NamedTuple):
    """A row as it travels: with its run, and with the text behind the fingerprint in an answer's or
    a reentry's body, or `""`."""

    run: Run
    row: Copied
    definition: str = ""


class Quarantined(NamedTuple):
    """A row that the plane refused, and why. `key` is that of an `@idempotent` call."""

    execution_id: str
    number: int
    key: str | None
    reason: str


class Outbox(Protocol):
    """The rows that wait, and those that come back. Every method may be called from any thread."""

    def waiting(self, *, limit: int) -> Sequence[Replica]:
        """Rows that wait, in the order in which they were written. What an `@idempotent` call left
        comes after the entry that it began at was marked."""

    def count(self, execution_id: str | None = None) -> int:
        """How many rows wait, in the whole store or of one run."""

    def acknowledge(self, rows: Sequence[Replica]) -> None:
        """The plane has these rows. One that changed meanwhile goes on waiting."""

    def quarantine(self, row: Replica, reason: str) -> None:
        """The plane refused this row. It waits no more, so that later ones go on."""

    def quarantined(self) -> Sequence[Quarantined]:
        """The rows that a plane refused."""

    def copy(self, execution_id: str) -> Sequence[Replica]:
        """All of a run's own rows as they travel. Raises `UnknownExecution`."""

    def take_in(self, rows: Sequence[Replica]) -> None:
        """Write what is not here yet, all or nothing; it does not wait. Rows that are here already
        change nothing. Raises `ExecutionExists` if a run is here with other rows, `RunIsLive` if
        one that would go on is driven by a living process."""

    def stamp(self) -> object:
        """Equal stamps mean that nothing has changed in between."""


@runtime_checkable
class ReplicatedCheckpointer(Protocol):
    """A store whose runs can be copied to a plane, and be taken in from one."""

    @property
    def outbox(self) -> Outbox:
        """The store's outbox. Nothing leaves it unless a courier is connected."""
