"""A cell that waits for a person watches the store, where every decision ends up, whoever made it.

What waiting costs does not depend on how long the run is: it is read again when something happened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from durable_nb.core.nodes import open_pause, status_of
from durable_nb.model.errors import DurableError, RunIsLive, RunPaused
from durable_nb.notebook.gates import how_to_decide
from durable_nb.notebook.words import word
from durable_nb.runtime.ports import SYSTEM
from durable_nb.stores.protocol import Readable

if TYPE_CHECKING:
    from durable_nb.model.entries import Log
    from durable_nb.notebook.local import LocalRun
    from durable_nb.stores.protocol import Checkpointer

POLL = 0.1  # s between two looks at the store


def wait_for_decision(run: LocalRun, timeout: float) -> None:
    """Wait until somebody, anywhere, has brought the run past its pauses, going on here with what
    a dead process left. Raises `RunPaused` or `RunIsLive` after `timeout` seconds."""
    for _ in _looks(run, timeout, crashed=run.forward):
        SYSTEM.sleep(POLL)


async def clicks_awaited(run: LocalRun, timeout: float | None) -> None:
    """The same in a form that a click on this kernel's cards can end; what dies is left as it is.

    Raises `RunPaused` at once where no click can arrive: with ipykernel 6, and where nobody is
    there and no `timeout` says how long to watch for somebody elsewhere.
    """
    for _ in _looks(run, timeout, crashed=None):
        _refuse_in_vain(run, timeout)
        await asyncio.sleep(POLL)  # short, so that an interrupt is noticed


def still_waits(run: Log, why: str, then: str = "") -> RunPaused:
    """That a run waits for a person, and what to type."""
    name, waits = word(run.run.execution_id), open_pause(run)
    how = how_to_decide(waits) if waits else f"%durable show {name}"
    return RunPaused(f"run {name} waits for a person{why}; {how}{then}")


class Watch:
    """Whether anything happened in a store since the last look, for one thread."""

    def __init__(self, store: Checkpointer) -> None:
        self._store = store
        self._stamp: object = None

    def changed(self) -> bool:
        """True at first. Of a store that does not say so nobody knows."""
        if not isinstance(self._store, Readable):
            return True
        before, self._stamp = self._stamp, self._store.stamp()
        return before != self._stamp


def _looks(
    run: LocalRun, timeout: float | None, *, crashed: Callable[[], None] | None
) -> Iterator[None]:
    """Once for each look at a run that is not past its pauses yet."""
    give_up = SYSTEM.monotonic() + (float("inf") if timeout is None else timeout)
    watch = Watch(run.store)
    while not (watch.changed() and _is_over(run, crashed)):
        if timeout is not None and SYSTEM.monotonic() > give_up:
            raise _too_late(run, timeout)
        yield


def _is_over(run: LocalRun, crashed: Callable[[], None] | None) -> bool:
    """Look at the run again. Its cards show how it ended, and a pause that none of them shows."""
    log = run.log()
    status = status_of(log)
    if status == "crashed" and crashed is not None:
        crashed()
        return _is_over(run, crashed)
    over = status not in ("paused", "running")
    if over or (status == "paused" and log.rows[-1].number != run.faces.pause):
        run.faces.redraw()
    return over


def _too_late(run: LocalRun, timeout: float) -> DurableError:
    log = run.log()
    if status_of(log) == "paused":
        return still_waits(
            log, f"; nobody decided within {timeout:g} s", ", then run this cell again"
        )
    return RunIsLive(
        f"run {run.execution_id!r} still works after {timeout:g} s; it goes on by itself"
    )


def _refuse_in_vain(run: LocalRun, timeout: float | None) -> None:
    if run.faces.pause is None:
        return
    if not run.faces.screen.clicks_while_awaiting():
        why = ", and with ipykernel 6 no click arrives while a cell awaits it; click between cells"
        raise still_waits(run.log(), why)
    if timeout is None and not run.faces.screen.clickable():
        why = (
            ", and nobody is here to click; say how long to watch for somebody elsewhere: wait(60)"
        )
        raise still_waits(run.log(), why)
