"""Runs from a plane, on a machine that never saw them.

Whether a run is still driven elsewhere nobody here can know: restore what you know to be stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing

from durable_nb.llm.retry import Failure
from durable_nb.model.codec import Stored
from durable_nb.model.entries import Run
from durable_nb.model.errors import InvalidInput, PlaneFailed, UnknownExecution
from durable_nb.replica.address import KEY, TIMEOUT, Absent, Address, Given
from durable_nb.replica.parcel import unpack
from durable_nb.stores.open import outbox_of
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
    is here with other rows, `RunIsLive` for one that is driven here, `PlaneFailed` if the plane
    does not answer or lacks rows of it.
    """
    outbox = outbox_of(store)
    with closing(Address(url, key, timeout)) as plane:
        rows = _fetched(plane, execution_id)
    runs = {run.execution_id: run for run, _, _ in rows}
    if execution_id not in runs:
        raise _unknown(plane, execution_id)
    _refuse_gaps(runs, rows)
    outbox.take_in(rows)
    return list(runs)


def _fetched(plane: Address, execution_id: str) -> Sequence[Replica]:
    match plane.get(execution_id):
        case Failure(why):
            raise _failed(plane, why)
        case Absent(reason):
            raise _unknown(plane, execution_id, reason)
        case Given(parcel):
            try:
                return unpack(parcel)
            except InvalidInput as error:
                raise _failed(plane, str(error)) from error


def _failed(plane: Address, why: str) -> PlaneFailed:
    return PlaneFailed(
        f"the plane {plane.url} gave no run: {why}; look at its address and at the key (key=, or "
        f"{KEY}), and try again"
    )


def _unknown(plane: Address, execution_id: str, said: str = "") -> UnknownExecution:
    return UnknownExecution(
        f"the plane {plane.url} has no run {execution_id!r}, or not whole; drain the store that has "
        f"it, with replica.connect(...).flush(...). {said}".rstrip()
    )


def _refuse_gaps(runs: Mapping[str, Run], rows: Sequence[Replica]) -> None:
    """Raise `PlaneFailed` if a run cannot be gone on with from these rows."""
    numbers: dict[str, list[int]] = {execution_id: [] for execution_id in runs}
    for run, row, _ in rows:
        if isinstance(row, Stored):
            numbers[run.execution_id].append(row.number)
    for execution_id, run in runs.items():
        own, first = numbers[execution_id], run.base + 1
        whole = range(first, first + max(len(own), 1))
        if own != list(whole):
            raise _lacks(min(set(whole) - set(own)), execution_id)
        if run.parent is not None and max(numbers.get(run.parent, [0])) < run.base:
            raise _lacks(run.base, run.parent)


def _lacks(number: int, execution_id: str) -> PlaneFailed:
    return PlaneFailed(
        f"the plane lacks entry {number} of run {execution_id!r}: it has not arrived yet, or was "
        "refused; look at store.outbox.quarantined() where the run was. Nothing was taken in"
    )
