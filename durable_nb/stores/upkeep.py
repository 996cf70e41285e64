"""What people do to runs from outside: cancel, prune, look at sessions. The same on every store."""

from __future__ import annotations

import secrets
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from durable_nb.core.nodes import moment
from durable_nb.core.state import state_of
from durable_nb.model.entries import End
from durable_nb.model.errors import AlreadyResumed, InvalidInput, StaleLog

if TYPE_CHECKING:
    from durable_nb.stores.protocol import Checkpointer

_MANY = 2**62


def cancel(store: Checkpointer, execution_id: str, by: str | None) -> None:
    """End a run as cancelled, whoever drives it: a live owner stops at its next entry.

    Raises `UnknownExecution`, and `AlreadyResumed` for a run that is completed or cancelled.
    """
    while True:
        state = state_of(store.load(execution_id))
        if state.status in ("completed", "cancelled"):
            raise AlreadyResumed(
                f"run {execution_id!r} is {state.status} since "
                f"{moment(state.newest.at):%Y-%m-%d %H:%M:%S} UTC; there is nothing to cancel"
            )
        end = End(state.turn + 1, "cancelled", error=f"cancelled by {by or 'somebody'}")
        at, writer = now(), secrets.randbits(62)
        try:
            lease, _ = store.claim(
                execution_id, end, after=state.number, at=at, writer=writer, take_over=True
            )
        except StaleLog:
            continue  # it has moved on: end it where it is now
        store.release(lease)
        return


def cutoff(older_than: timedelta | float) -> int:
    """The moment (µs) that lies `older_than` (seconds, or a timedelta) before now."""
    try:
        age = older_than if isinstance(older_than, timedelta) else timedelta(seconds=older_than)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"older_than is seconds or a timedelta, not {older_than!r}") from error
    if age < timedelta(0):
        raise InvalidInput(f"older_than is an age from 0 on, not {older_than!r}")
    return now() - age // timedelta(microseconds=1)


def check_page(limit: object, offset: object) -> None:
    """Raise `InvalidInput` for what no page of a list can be."""
    for name, value in ("limit", 0 if limit is None else limit), ("offset", offset):
        if not isinstance(value, int) or not 0 <= value < _MANY:
            raise InvalidInput(f"{name} is a whole number from 0 on, not {value!r}")


def now() -> int:
    """Microseconds since 1970, for people: nothing is ordered by them."""
    return time.time_ns() // 1000
