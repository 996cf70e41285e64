"""A run as this kernel holds it: its cards, who drives it here, and how it is driven.

The log is the truth; everything here can be thrown away. Driving happens on the cell's thread, so
that *interrupt kernel* stops it; only what a click started runs on a thread of its own.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from durable_nb.core.changes import differences
from durable_nb.core.compare import Change
from durable_nb.core.nodes import status_of
from durable_nb.core.state import state_of
from durable_nb.model.decisions import Resume
from durable_nb.model.entries import Log
from durable_nb.model.errors import DurableError, MissingTool
from durable_nb.notebook.cards import Card, Face
from durable_nb.notebook.gates import Question, already, answer_to, gate, question, same
from durable_nb.notebook.portrait import (
    Live,
    Look,
    Portrait,
    portrait,
    unreadable,
    went_on,
)
from durable_nb.notebook.pulse import beating
from durable_nb.notebook.reading import Reading
from durable_nb.notebook.screen import notebook_name
from durable_nb.runtime.ports import SYSTEM

if TYPE_CHECKING:
    from durable_nb.notebook.screen import Screen
    from durable_nb.runtime.agent import Agent
    from durable_nb.runtime.engine import Stop
    from durable_nb.runtime.loop import Drive
    from durable_nb.runtime.tools import Tool
    from durable_nb.stores.protocol import Checkpointer

CARDS = 8  # how many of a run's cards are kept up to date


class LocalRun:
    """One run here. `agent` finds its agent when it is needed. There is one object a run and
    kernel, so that all its cards say the same."""

    def __init__(
        self,
        store: Checkpointer,
        execution_id: str,
        *,
        agent: Callable[[], Agent],
        screen: Screen,
        beside: Callable[[str], LocalRun],
    ) -> None:
        self.store = store
        self.execution_id = execution_id
        self.agent = agent
        self.beside = beside
        """Another run of the same agent."""
        self.shown: int | None = None
        """The number of the pause that a card showed last."""
        self.lacks_agent = False
        """Whether it was drawn without buttons, since its agent is not here."""
        self.screen = screen
        self._cards: deque[Card] = deque(maxlen=CARDS)
        self._rows: list[Face] = []
        self._reading = Reading(store, execution_id)
        self._drawing = threading.RLock()
        self._drive: Future[None] | None = None
        self._stop: Stop | None = None
        self._error: str | None = None
        self._stopped = False

    def log(self) -> Log:
        return self._reading.log()

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

    def redraw(self) -> None:
        """Make every card say what the log says now. Never raises what is wrong with the store."""
        with self._drawing:
            try:
                log = self.log()
            except DurableError as error:
                gone = unreadable(self.execution_id, _line(error))
                self._draw(lambda card, look: gone, None)
                return
            state = state_of(log)
            self._draw(
                lambda card, look: portrait(log, look, card.inside(log), state),
                question(log, state, now=SYSTEM.clock(), ours=self.driven_here()),
                self._changed(log),
            )
            self.shown = state.number if state.status == "paused" else None

    def drive_here(self, run: Drive, *, notes: tuple[str, ...] = (), quiet: bool = False) -> None:
        """Drive a claimed run on this thread, showing a card. What escapes the run is raised."""
        from durable_nb.runtime.loop import drive

        undriven = ExitStack()
        undriven.callback(self.store.release, run.lease)
        try:
            self._begin()
            self.show(Look(notes=notes), quiet=quiet)
            with self._shown_while(run):
                undriven.pop_all()  # from here on, driving it says when it is let go
                drive(run)
        except KeyboardInterrupt:
            self._stopped = True
            raise
        except DurableError as error:
            self._error = _line(error)
            raise
        finally:
            undriven.close()
            self.redraw()

    def changes(self) -> tuple[Change, ...]:
        """What of the agent's code is not as it was when the run stopped, shown on its cards.

        Raises `MissingTool` and the like if the agent cannot go on at all.
        """
        from durable_nb.runtime.checks import check_tools

        log = self.log()
        check_tools(self.agent(), self.execution_id, state_of(log))
        self.redraw()
        return self._changed(log)

    def tool(self, name: str) -> Tool:
        """The tool of that name as it is now. Raises `MissingTool`, `UnknownAgent`."""
        agent = self.agent()
        if name not in agent.toolbox:
            raise MissingTool(f"agent {agent.name!r} has no tool {name!r} any more; add it again")
        return agent.toolbox[name]

    def click(self, decision: Resume | None, pause: int | None) -> None:
        """What a button does: claim here and now, let a thread drive. Errors land on the card."""
        from durable_nb.runtime.claim import Wish, claim

        try:
            wish = Wish(decision=decision, pause=pause)
            run = claim(self.agent(), self.execution_id, wish)
        except Exception as error:  # noqa: BLE001  # nobody sees what a callback raises
            self.refused(error)
        else:
            self.drive_behind(run)

    def drive_behind(self, run: Drive) -> None:
        """Let a thread drive a claimed run. Errors land on the card."""
        from durable_nb.runtime.engine import background

        self._begin()
        self._drive, self._stop = background(partial(self._go_on, run))
        self.redraw()

    def refused(self, error: Exception) -> None:
        """Have the card say why nothing was done."""
        self._error = _line(error)
        self.redraw()

    def stop(self) -> None:
        """Stop what a click set going here, as *interrupt kernel* stops a cell: what a tool does on
        a thread is let finish, and the run can be resumed."""
        self._stopped = True
        if self._stop is not None:
            self._stop.ask()
        self.redraw()

    def cancel(self, by: str | None = None) -> None:
        """End the run as cancelled. What a click set going here is stopped where it can be."""
        self.store.cancel(self.execution_id, by=by)
        if self._stop is not None:
            self._stop.ask()
        self.redraw()

    def wait(self, timeout: float | None = None) -> bool:
        """Until nothing that a click started drives this run. False if the time was up first."""
        if self._drive is None:
            return True
        return bool(wait([self._drive], timeout=timeout).done)

    def driven_here(self) -> bool:
        return self._drive is not None and not self._drive.done()

    def forward(self, notes: tuple[str, ...] = (), *, quiet: bool = False) -> None:
        """Go as far as the run goes without a person, repeating nothing (DESIGN section 6)."""
        log = self.log()
        state = state_of(log)
        status = status_of(log, state)
        if status in ("crashed", "failed"):
            self.resume(notes=(*notes, went_on(log, state)), quiet=quiet)
        elif status == "running":
            self._attach(notes, quiet=quiet)
        else:
            self.show(Look(notes=notes, stored=status == "completed"), quiet=quiet)

    def resume(
        self, *, notes: tuple[str, ...] = (), take_over: bool = False, quiet: bool = False
    ) -> None:
        """Claim a run that died or failed, and drive it here."""
        from durable_nb.runtime.claim import Wish, claim

        run = claim(self.agent(), self.execution_id, Wish(take_over=take_over))
        self.drive_here(run, notes=notes, quiet=quiet)

    def decide(self, decision: Resume, pause: int | None) -> None:
        """Answer a pause and drive on here. If that pause has this same answer already, go on from
        where the run is."""
        from durable_nb.runtime.claim import Wish, claim

        log = self.log()
        number = gate(log, pause)
        recorded = answer_to(log, number)
        if recorded is not None and same(recorded, decision):
            self.forward((already(recorded),))
            return
        wish = Wish(decision=decision, pause=number)
        self.drive_here(claim(self.agent(), self.execution_id, wish))

    def _attach(self, notes: tuple[str, ...], *, quiet: bool) -> None:
        """A run that somebody drives: wait if that is us, else say so."""
        if not self.driven_here():
            elsewhere = "Another process or thread drives it; nothing was done here."
            self.show(Look(notes=(*notes, elsewhere)), quiet=quiet)
            return
        self.show(Look(notes=notes), quiet=quiet)
        self.wait()

    def _go_on(self, run: Drive, stop: Stop) -> None:
        from durable_nb.runtime.engine import Abandoned
        from durable_nb.runtime.loop import drive

        try:
            with suppress(Abandoned), self._shown_while(run):  # whoever stops it has ended the run
                drive(run, stop)
        except Exception as error:  # noqa: BLE001  # nobody sees what a thread raises
            self._error = _line(error)
        finally:
            self.redraw()

    def _shown_while(self, run: Drive) -> AbstractContextManager[None]:
        """Where somebody can watch, the cards follow the run; a file gets the last one alone."""
        if self.screen.follows():
            return beating(run, self.redraw, self._say)
        return nullcontext()

    def _say(self, step: Live | None) -> None:
        with self._drawing:
            for each in (*list(self._cards)[-1:], *self._rows):
                each.say(step)

    def _begin(self) -> None:
        self._error, self._stopped = None, False

    def _draw(
        self,
        paint: Callable[[Face, Look], Portrait],
        question: Question | None,
        changed: tuple[Change, ...] = (),
    ) -> None:
        why_not = self._cannot_ask() if question else ()
        self.lacks_agent = bool(why_not)
        newest = list(self._cards)[-1:]
        asks = question if not why_not and self.screen.clickable() else None
        for face in (*(self._cards if self.screen.redraws() else newest), *self._rows):
            face.draw(paint(face, self._look(face.look, why_not, changed)))
            if asks and (face in newest or face in self._rows):
                face.ask(asks, self)
            else:
                face.erase_buttons()

    def _look(self, asked: Look, why_not: tuple[str, ...], changed: tuple[Change, ...]) -> Look:
        return replace(
            asked,
            notes=(*asked.notes, *why_not),
            error=self._error,
            stopped=self._stopped,
            notebook=notebook_name(),
            changed=changed,
            now=SYSTEM.clock(),
        )

    def _changed(self, log: Log) -> tuple[Change, ...]:
        """What of the agent's code is not as it was when the run stopped, if both are there."""
        if status_of(log) not in ("paused", "crashed", "failed"):
            return ()
        try:
            return differences(log.definition, self.agent().definition().text)
        except DurableError:
            return ()

    def _cannot_ask(self) -> tuple[str, ...]:
        """Why no click could go on with this run: its agent is not here."""
        try:
            self.agent()
        except DurableError as error:
            return (f"To decide here: {error}",)
        return ()


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
