"""Where a run is shown in this kernel: its cards and its rows in the inbox, which all say the same.

Here a run is drawn and asked about; nothing here claims, drives or decides. What the log does not
say is told by whoever drives the run.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from durable_nb.core.changes import differences
from durable_nb.core.compare import Change
from durable_nb.core.explain import runs_again
from durable_nb.core.nodes import status_of
from durable_nb.core.state import state_of
from durable_nb.model.entries import Log
from durable_nb.model.errors import DurableError
from durable_nb.notebook.asking.deciding import Decider
from durable_nb.notebook.cards import Card, Face
from durable_nb.notebook.gates import Question, question
from durable_nb.notebook.portrait import Live, Look, Portrait, portrait, unreadable
from durable_nb.notebook.pulse import beating
from durable_nb.notebook.screen import notebook_name
from durable_nb.runtime.ports import SYSTEM

if TYPE_CHECKING:
    from durable_nb.notebook.screen import Screen
    from durable_nb.runtime.agent import Agent
    from durable_nb.runtime.loop import Drive

CARDS = 8  # how many of a run's cards are kept up to date


class Shown(Decider, Protocol):
    """The run that is shown."""

    execution_id: str
    agent: Callable[[], Agent]

    def log(self) -> Log:
        """Raises what is wrong with the store."""

    def which_agent(self) -> str:
        """What a command about it has to say of its agent."""

    def driven_here(self) -> bool:
        """Whether a click's thread drives it."""


class Faces:
    """All that shows one run here."""

    def __init__(self, run: Shown, screen: Screen) -> None:
        self.screen = screen
        self.pause: int | None = None
        """The number of the pause that was shown last."""
        self.lacks_agent = False
        """Whether it was drawn without buttons, since its agent is not here."""
        self._run = run
        self._cards: deque[Card] = deque(maxlen=CARDS)
        self._rows: list[Face] = []
        self._drawing = threading.RLock()
        self._error: str | None = None
        self._stopped = False

    def show(self, look: Look, *, quiet: bool = False) -> None:
        """A new card in the cell that is running."""
        self.put(Card(look, quiet=quiet))

    def put(self, card: Card) -> None:
        """A card that is made already, drawn from now on whenever the run goes on."""
        with self._drawing:
            for old in self._cards:
                old.erase_buttons()
                old.say(None)
            self._error = None
            self._cards.append(card)
            self.redraw()

    def take_away(self, card: Card) -> None:
        """A card that shows another run from now on."""
        with self._drawing:
            self._cards.remove(card)
            card.erase_buttons()
            card.say(None)

    def put_row(self, row: Face) -> None:
        """A row of the inbox, drawn from now on. The newest card keeps its buttons."""
        with self._drawing:
            if row not in self._rows:
                self._rows.append(row)
            self.redraw()

    def take_row(self, row: Face) -> None:
        with self._drawing:
            if row in self._rows:
                self._rows.remove(row)

    @contextmanager
    def saying(self, note: str) -> Iterator[None]:
        """Have the newest card say something for as long as it is true."""
        card = self._cards[-1]
        before = card.look
        card.look = replace(before, notes=(*before.notes, note))
        self.redraw()
        try:
            yield
        finally:
            card.look = before
            self.redraw()

    def begin(self) -> None:
        """Say no more how the driving before has ended."""
        self._error, self._stopped = None, False

    def refuse(self, error: Exception) -> None:
        """Say why nothing was done, or why it ended, when it is drawn next."""
        self._error = f"{type(error).__name__}: {error}"

    def stop(self) -> None:
        """Say that it was stopped here, when it is drawn next."""
        self._stopped = True

    def following(self, run: Drive) -> AbstractContextManager[None]:
        """Where somebody can watch, the cards follow the run; a file gets the last one alone."""
        if self.screen.follows():
            return beating(run, self.redraw, self._say)
        return nullcontext()

    def redraw(self) -> None:
        """Make every card say what the log says now. Never raises what is wrong with the store."""
        with self._drawing:
            try:
                log = self._run.log()
            except DurableError as error:
                gone = unreadable(self._run.execution_id, f"{type(error).__name__}: {error}")
                self._draw(lambda card, look: gone, None)
                return
            state = state_of(log)
            self._draw(
                lambda card, look: portrait(log, look, card.inside(log), state),
                question(log, state, now=SYSTEM.clock(), ours=self._run.driven_here()),
                self.changes(log),
            )
            self.pause = state.number if state.status == "paused" else None

    def changes(self, log: Log) -> tuple[Change, ...]:
        """What of the agent's code is not as it was when the run stopped, if both are there."""
        if status_of(log) not in ("paused", "crashed", "failed"):
            return ()
        try:
            return differences(log.definition, self._run.agent().definition().text)
        except DurableError:
            return ()

    def on_crash(self, tool: str) -> str:
        """What the tool does with a call in doubt, if its agent is here."""
        try:
            return self._run.agent().toolbox.on_crash(tool)
        except DurableError:
            return runs_again(tool)

    def _draw(
        self,
        paint: Callable[[Face, Look], Portrait],
        question: Question | None,
        changed: tuple[Change, ...] = (),
    ) -> None:
        why_not = self._cannot_ask(question) if question else ()
        self.lacks_agent = bool(why_not)
        which = self._run.which_agent() if why_not else ""
        newest = list(self._cards)[-1:]
        asks = question if not why_not and self.screen.clickable() else None
        for face in (*(self._cards if self.screen.redraws() else newest), *self._rows):
            face.draw(paint(face, self._look(face.look, why_not, changed, which)))
            if asks and (face in newest or face in self._rows):
                face.ask(asks, self._run)
            else:
                face.erase_buttons()

    def _look(
        self, asked: Look, why_not: tuple[str, ...], changed: tuple[Change, ...], which: str
    ) -> Look:
        return replace(
            asked,
            notes=(*asked.notes, *why_not),
            error=self._error,
            stopped=self._stopped,
            notebook=notebook_name(),
            changed=changed,
            now=SYSTEM.clock(),
            which_agent=which,
            on_crash=self.on_crash,
        )

    def _cannot_ask(self, question: Question) -> tuple[str, ...]:
        """Why no click could go on with this run: its agent is not here."""
        to = "go on" if question.pause is None else "decide"
        try:
            self._run.agent()
        except DurableError as error:
            return (f"To {to} here: {error}",)
        return ()

    def _say(self, step: Live | None) -> None:
        with self._drawing:
            for each in (*list(self._cards)[-1:], *self._rows):
                each.say(step)
