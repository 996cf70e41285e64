"""Runs from a plane, on a machine that never saw them.

Whether a run is still driven elsewhere nobody here can know: restore what you know to be stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import groupby

from durable_nb.llm.retry import Failure
from durable_nb.model.codec import Stored
from durable_nb.model.entries import Run
from durable_nb.model.errors import InvalidInput, PlaneFailed, UnknownExecution
from durable_nb.replica.address import TIMEOUT, Address
from durable_nb.replica.courier import outbox_of
from durable_nb.replica.parcel import unpack
from durable_nb.stores.protocol import Checkpointer
from durable_nb.stores.replicated import Replica


def restore_from_plane(
    execution_id: str,
    url: str,
    *,
    store: Checkpointer | None = None,
    key: str | None = None,
    timeout: float = TIMEOUT,
) -> Sequence[str]:
    """Bring a run from the plane at `url` into a store, or into the default one, so that it can be
    resumed here: with the runs that it goes on from, those of its session, and what its
    `@idempotent` functions remember. Returns their ids. Done again, it brings what is new.

    Raises `UnknownExecution` for a run that the plane does not have, `ExecutionExists` for one that
    is here with other rows, `PlaneFailed` if the plane does not answer or lacks rows of it.
    """
    outbox = outbox_of(store)
    with closing(Address(url, key, timeout)) as plane:
        rows = _fetched(plane, execution_id)
    runs = [run for run, _ in groupby(rows, key=lambda each: each.run)]
    _refuse_gaps(runs, rows)
    outbox.take_in(rows)
    return [run.execution_id for run in runs]


def _fetched(plane: Address, execution_id: str) -> Sequence[Replica]:
    answer = plane.get(execution_id)
    if isinstance(answer, Failure):
        raise PlaneFailed(f"the plane {plane.url} gave no run: {answer.why}; try again")
    if answer.status_code == 404 and "unknown" in answer.text:
        raise UnknownExecution(
            f"the plane {plane.url} has no run {execution_id!r}: it was never drained there, or "
            f"not whole ({plane.said(answer)})"
        )
    if answer.status_code != 200:
        raise PlaneFailed(f"the plane {plane.url} gave no run: {plane.said(answer)}")
    try:
        return unpack(answer.content)
    except InvalidInput as error:
        raise PlaneFailed(f"the plane {plane.url} gave something else: {error}") from error


def _refuse_gaps(runs: Sequence[Run], rows: Sequence[Replica]) -> None:
    """Raise `PlaneFailed` if a run cannot be gone on with from these rows."""
    newest: dict[str, int] = {}
    for run in runs:
        own = [row.number for each, row, _ in rows if each == run and isinstance(row, Stored)]
        if own != list(range(run.base + 1, run.base + 1 + len(own))) or not own:
            lacking = next((n for n, has in enumerate(own, run.base + 1) if n != has), run.base + 1)
            raise PlaneFailed(
                f"the plane lacks entry {lacking} of run {run.execution_id!r}: it has not arrived "
                "yet, or was refused; look at courier.status() where the run was"
            )
        newest[run.execution_id] = own[-1]
        if run.parent is not None and newest.get(run.parent, -1) < run.base:
            raise PlaneFailed(
                f"the plane lacks entries of run {run.parent!r}, which {run.execution_id!r} goes "
                "on from; drain the store that has them"
            )
