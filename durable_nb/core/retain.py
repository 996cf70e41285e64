"""Which runs may be forgotten: ended, old enough, and needed by no other (DESIGN R5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from durable_nb.model.errors import InvalidInput

ENDED = ("completed", "failed", "cancelled")
STATUSES = ("running", "paused", "crashed", *ENDED)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run as pruning sees it. `updated` is when its newest entry was written, in µs."""

    execution_id: str
    parent: str | None
    status: str
    tags: Collection[str]
    updated: int


def prunable(
    runs: Iterable[Candidate], *, before: int, tags: Collection[str] = (), status: str | None = None
) -> list[str]:
    """The ids of runs that ended before `before` (µs), oldest first.

    `runs` are all runs, newest first, so that a fork or follow-up comes before what it needs. Only
    runs that have all of `tags` and, if given, the `status` are taken.
    """
    if status not in (None, *STATUSES):
        raise InvalidInput(f"a run's status is one of {', '.join(STATUSES)}, not {status!r}")
    if isinstance(tags, str):
        raise InvalidInput(f"tags are several texts, as in tags=('demo',), not {tags!r}")
    needed: set[str | None] = set()
    taken = []
    for run in runs:
        wanted = run.status in ENDED and status in (None, run.status) and run.updated < before
        if wanted and set(tags) <= set(run.tags) and run.execution_id not in needed:
            taken.append(run.execution_id)
        else:
            needed.add(run.parent)
    return taken[::-1]
