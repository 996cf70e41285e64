"""Stored rows as a run's log, and a run's first rows: the same on every store."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from durable_nb.model.codec import Stored, decode, encode
from durable_nb.model.entries import Answer, Entry, Reentry, Row, Run


def opening_rows(run: Run, opening: Sequence[Entry], *, at: int, writer: int) -> list[Stored]:
    """A new run's first entries, numbered on from its parent's. Raises `NotStorable`."""
    numbered = enumerate(opening, start=run.base + 1)
    return [encode(Row(number, at, writer, entry)) for number, entry in numbered]


def history(
    run: Run,
    own: Sequence[Stored],
    parent: Callable[[str, int], tuple[Run, Sequence[Stored]]],
) -> tuple[Row, ...]:
    """A run's rows, with those of its parents before them: `parent` finds a run and its rows up
    to a number. A run may go on from a number that its parent has from its own parent."""
    pieces = [[decode(stored, run.execution_id) for stored in own]]
    upto = run.base
    while run.parent is not None:
        upto = min(upto, run.base)
        run, rows = parent(run.parent, upto)
        pieces.append([decode(stored, run.execution_id) for stored in rows])
    return tuple(row for piece in reversed(pieces) for row in piece)


def fingerprint_of(run: Run, rows: Sequence[Row]) -> str:
    """The fingerprint of the agent that drove the run last."""
    for row in reversed(rows):
        if isinstance(row.entry, Answer | Reentry) and row.entry.fingerprint:
            return row.entry.fingerprint
    return run.fingerprint
