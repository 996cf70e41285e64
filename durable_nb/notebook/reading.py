"""A run's log as its store has it now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable_nb.model.errors import UnknownExecution
from durable_nb.stores.protocol import Readable

if TYPE_CHECKING:
    from durable_nb.model.entries import Log
    from durable_nb.stores.protocol import Checkpointer


class Reading:
    """The newest read of one run. While nothing happens in the store it is the same object, and
    nothing is read."""

    def __init__(self, store: Checkpointer, execution_id: str) -> None:
        self._store, self._execution_id = store, execution_id
        self._newest: tuple[object, Log] | None = None

    def log(self) -> Log:
        """Raises `UnknownExecution`, and what is wrong with the store."""
        if not isinstance(self._store, Readable):
            return self._store.load(self._execution_id)
        stamp = self._store.stamp()  # before the read: what happens meanwhile is read next time
        newest = self._newest
        if newest is None or newest[0] != stamp:
            newest = self._newest = stamp, self._store.load(self._execution_id)
        return newest[1]


def stored(store: Checkpointer, execution_id: str) -> Log | None:
    """The run's log, if there is such a run."""
    try:
        return store.load(execution_id)
    except UnknownExecution:
        return None
