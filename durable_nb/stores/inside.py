"""What a doctor is shown of a store, whichever backend it is: read, and nothing changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from durable_nb.model.codec import Stored


class Begun(NamedTuple):
    """An `@idempotent` call that had begun and has left no result. `at` is in microseconds."""

    execution_id: str
    number: int
    function: str
    at: int


@dataclass(frozen=True, slots=True)
class Inside:
    """`faults` is what the database itself finds wrong. `rows` are all entries, a run's in the
    order of their numbers, read part by part. `owners` says who holds a claim, by the claim's
    `writer`."""

    version: int
    faults: Sequence[str]
    rows: Iterable[tuple[str, Stored]]
    begun: Sequence[Begun]
    owners: Mapping[int, str]
    wal_bytes: int | None = None
