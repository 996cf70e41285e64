"""While a run is driven here, its cards keep up with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from durable_nb.runtime.loop import Drive

BEAT = 0.35  # s between two looks: a run that is over before the first is drawn once


@contextmanager
def beating(run: Drive, redraw: Callable[[], None]) -> Iterator[None]:
    """Call `redraw` from a thread whenever the run has gone on to another step, while the block
    runs. What a look costs does not depend on the run: it asks the driver, not the store."""
    over = threading.Event()
    context = copy_context()  # a kernel finds the cell that is shown in it
    watcher = threading.Thread(
        target=lambda: context.run(_watch, run, redraw, over), name="durable_nb card", daemon=True
    )
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _watch(run: Drive, redraw: Callable[[], None], over: threading.Event) -> None:
    drawn = run.state.number
    while not over.wait(BEAT):
        state = run.state
        if state.number != drawn and state.status == "open":
            drawn = state.number
            redraw()
