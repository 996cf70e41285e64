"""The courier: a thread that brings the rows of a store's outbox to a plane, oldest first.

The run never waits for it. A row is acknowledged after the plane has said that it is written, so it
may arrive twice, and the plane keeps it once. Of several couriers none has to know of the others.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from durable_nb.llm.retry import Failure, pause_before
from durable_nb.model.errors import PlaneFailed, StoreError
from durable_nb.replica.address import KEY, TIMEOUT, Acknowledged, Address, Denied, Refused
from durable_nb.stores.open import outbox_of
from durable_nb.stores.protocol import Checkpointer
from durable_nb.stores.replicated import Outbox, Replica

BATCH = 100  # rows of one request
LOOK = 0.5  # seconds between two looks at a store

_MOST = 10  # failures in a row that still make the next pause longer
_MOMENT = 2.0  # seconds that `close` waits for a request that is under way

_log = logging.getLogger("durable_nb")

State: TypeAlias = Literal["connected", "retrying", "stopped", "closed"]


@dataclass(frozen=True, slots=True)
class Status:
    """How a courier is. `waiting` and `quarantined` count rows of the store; `trouble` is why it
    tries again, or has stopped."""

    plane: str
    state: State
    waiting: int
    quarantined: int
    trouble: str | None = None


class Courier:
    """Drains an outbox to a plane from now on, until it is closed. `connect` makes one.

    `pause` says how many seconds to wait before an attempt, after a failure, with that chance.
    """

    def __init__(
        self,
        outbox: Outbox,
        plane: Address,
        *,
        pause: Callable[[int, Failure, float], float] = pause_before,
    ) -> None:
        self._outbox, self._plane, self._pause = outbox, plane, pause
        self._state: State = "connected"
        self._trouble: str | None = None
        self._changed = threading.Condition()
        self._hurry = False
        self._looks = 0  # how many have begun
        self._drained = 0  # the newest of them after which nothing waited
        self._seen: object = None  # the store's stamp then
        self._thread = threading.Thread(target=self._work, name="durable_nb courier", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"Courier({self._plane.url!r}, {self._state})"

    @property
    def waiting(self) -> int:
        """How many rows wait."""
        return self._outbox.count()

    def status(self) -> Status:
        refused = len(self._outbox.quarantined())
        return Status(self._plane.url, self._state, self.waiting, refused, self._trouble)

    def flush(self, timeout: float) -> bool:
        """Whether, within `timeout` seconds, nothing waited any more of what had been written
        before. Raises `PlaneFailed` if the courier has stopped."""
        give_up = time.monotonic() + timeout
        with self._changed:
            this = self._looks + 1  # the look that is under way may have begun too early
            self._hurry = True
            self._changed.notify_all()
            while self._drained < this and self._goes_on() and time.monotonic() < give_up:
                self._changed.wait(give_up - time.monotonic())
            if self._state == "stopped":
                raise PlaneFailed(f"the plane {self._plane.url} gets nothing: {self._trouble}")
            return self._drained >= this

    def close(self) -> None:
        """Send nothing more. What waits goes on waiting, for the next courier."""
        with self._changed:
            self._state = "closed"
            self._changed.notify_all()
        self._thread.join(_MOMENT)

    def __enter__(self) -> Courier:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    # --- the thread --------------------------------------------------------------------------

    def _work(self) -> None:
        failures = 0
        try:
            while self._goes_on():
                failure = self._look()
                failures = 0 if failure is None else min(failures + 1, _MOST)
                self._note(failure)
                self._rest(failures, failure)
        finally:
            self._plane.close()
            self._stop(self._trouble or "its thread has died")

    def _look(self) -> Failure | None:
        """Bring all that waits, or find out why that cannot be now."""
        with self._changed:
            self._looks += 1
        try:
            stamp = self._outbox.stamp()
            if stamp == self._seen:
                return None
            while self._goes_on() and (rows := self._outbox.waiting(limit=BATCH)):
                if (failure := self._deliver(rows)) is not None:
                    return failure
            self._seen = stamp
            return None
        except StoreError as error:
            return Failure(str(error), passing=True)

    def _deliver(self, rows: Sequence[Replica]) -> Failure | None:
        """Post rows and mark them by what the plane says. Of rows that it refuses together, those
        are found that it refuses alone."""
        if not self._goes_on():
            return None
        match self._plane.post(rows):
            case Acknowledged():
                self._outbox.acknowledge(rows)
            case Refused(reason) if len(rows) == 1:
                self._quarantine(rows[0], reason)
            case Refused():
                half = len(rows) // 2
                return self._deliver(rows[:half]) or self._deliver(rows[half:])
            case Denied(reason):
                self._stop(f"{reason}; pass key= or set {KEY}, and connect again")
            case Failure() as failure:
                return failure
        return None

    def _quarantine(self, replica: Replica, reason: str) -> None:
        self._outbox.quarantine(replica, reason)
        _log.warning(
            "the plane %s refused row %d of run %s, which stays here alone: %s",
            *(self._plane.url, replica.row.number, replica.run.execution_id, reason),
        )

    def _note(self, failure: Failure | None) -> None:
        with self._changed:
            if not self._goes_on():
                return
            if failure is None:
                self._state, self._trouble, self._drained = "connected", None, self._looks
            else:
                self._state, self._trouble = "retrying", failure.why
            self._changed.notify_all()

    def _rest(self, failures: int, failure: Failure | None) -> None:
        """Until it is time to look again, or somebody asks for it."""
        seconds = LOOK
        if failure is not None:
            seconds = self._pause(failures, failure, random.random())
        with self._changed:
            if self._goes_on() and not self._hurry:
                self._changed.wait(seconds)
            self._hurry = False

    def _stop(self, why: str) -> None:
        with self._changed:
            if self._goes_on():
                self._state, self._trouble = "stopped", why
                _log.warning("nothing more is sent to the plane %s: %s", self._plane.url, why)
            self._changed.notify_all()

    def _goes_on(self) -> bool:
        return self._state in ("connected", "retrying")


def connect(
    url: str,
    store: Checkpointer | None = None,
    *,
    key: str | None = None,
    timeout: float = TIMEOUT,
) -> Courier:
    """Copy what waits in a store, or in the default one, to the plane at `url`: all of it, and from
    now on each row soon after it is written, until the courier is closed.

    The key is read from `DURABLE_NB_PLANE_KEY` if it is not given; `timeout` are the seconds that
    the plane has to answer. Raises `InvalidInput` for a store without an outbox.
    """
    return Courier(outbox_of(store), Address(url, key, timeout))
