"""What waits in a store, though a run of it be damaged: that one is named, the others stay readable."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from durable_nb.core.nodes import Pending, open_pause
from durable_nb.model.errors import StoreCorrupt
from durable_nb.stores.protocol import Checkpointer


class Damaged(NamedTuple):
    """A run that waits, and why nobody can read at what."""

    execution_id: str
    agent: str
    since: datetime
    error: StoreCorrupt


class Found(NamedTuple):
    """The pauses that wait for a decision, oldest first, and what of them cannot be read."""

    pauses: Sequence[Pending]
    damaged: Sequence[Damaged] = ()


def what_waits(store: Checkpointer) -> Found:
    """Raises what is wrong with the store as a whole."""
    try:
        return Found(store.list_pending_interrupts())
    except StoreCorrupt:
        return _one_by_one(store)


def _one_by_one(store: Checkpointer) -> Found:
    pauses, damaged = [], []
    for run in store.runs():
        if run.status != "paused":
            continue
        try:
            pause = open_pause(store.load(run.execution_id))
        except StoreCorrupt as error:
            damaged.append(Damaged(run.execution_id, run.agent, run.updated_at, error))
        else:
            pauses += [pause] if pause else []  # None: somebody has just decided
    return Found(sorted(pauses, key=lambda each: each.created_at), damaged)
