"""While a run is driven here, its cards keep up with it: with its steps, and with the reply that comes.

The model's thread only leaves the newest text here. What a look costs does not depend on the run: it
asks the driver, not the store.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING

from durable_nb.core.state import State
from durable_nb.llm.stream import listening
from durable_nb.notebook.portrait import Live

if TYPE_CHECKING:
    from durable_nb.runtime.loop import Drive

BEAT = 0.1  # s between two looks at what is being said
STEP = 4  # beats between two looks at the step: a run that is over before the first is drawn once
LONG = 2  # s after which a card says how long a step has taken


class Heard:
    """The newest text of the reply that comes, and at which row of the run it was heard."""

    def __init__(self, run: Drive) -> None:
        self._run = run
        self._newest: tuple[int, str] = 0, ""

    def tell(self, text: str) -> None:
        """What the model's thread calls: a new reply begins with `""`."""
        self._newest = self._run.state.number, text

    def live(self) -> Live | None:
        """What there is to say of the step in flight, if it has said something or takes long."""
        state = self._run.state
        number, text = self._newest
        text = text if number == state.number else ""
        seconds = max(0, self._run.ports.clock() - state.newest.at) // 1_000_000
        if state.status != "open" or not (text or seconds >= LONG):
            return None
        return Live(_tool(state), seconds, text)


@contextmanager
def beating(
    run: Drive, redraw: Callable[[], None], say: Callable[[Live | None], None]
) -> Iterator[None]:
    """From a thread, call `redraw` whenever the run has gone on to another step, and `say` with
    what is heard of the present one, while the block runs; in the end nothing is said."""
    over, heard = threading.Event(), Heard(run)
    context = copy_context()  # a kernel finds the cell that is shown in it
    watcher = threading.Thread(
        target=lambda: context.run(_watch, run, redraw, lambda: say(heard.live()), over),
        name="durable_nb card",
        daemon=True,
    )
    watcher.start()
    try:
        with listening(heard.tell):
            yield
    finally:
        over.set()
        watcher.join()
        say(None)


def _watch(
    run: Drive, redraw: Callable[[], None], listen: Callable[[], None], over: threading.Event
) -> None:
    drawn, beats = run.state.number, 0
    while not over.wait(BEAT):
        beats += 1
        state = run.state
        if beats % STEP == 0 and state.number != drawn and state.status == "open":
            drawn = state.number
            redraw()
        if not over.is_set():
            listen()


def _tool(state: State) -> str | None:
    return None if state.step is None else state.step.tool
