"""One run of the inbox: a card of it, in a row of widgets and in the inbox's text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from durable_nb.core.nodes import moment
from durable_nb.model.entries import Log
from durable_nb.notebook.asking.controls import Controls
from durable_nb.notebook.asking.deciding import Decider
from durable_nb.notebook.asking.panel import discard
from durable_nb.notebook.gates import Question
from durable_nb.notebook.inbox.page import Waiting, row_portrait
from durable_nb.notebook.parts import Part
from durable_nb.notebook.portrait import Live, Look, Portrait
from durable_nb.notebook.render import html, live
from durable_nb.runtime.ports import SYSTEM

if TYPE_CHECKING:
    from ipywidgets import Box

    from durable_nb.notebook.local import LocalRun


class Row:
    """It is drawn by its run, as cards are. `told` hears of it when what it says has changed."""

    def __init__(self, waiting: Waiting, run: LocalRun, told: Callable[[], None]) -> None:
        self.look = Look(brief=True)
        self.as_text: Portrait | None = None
        """What it says, with what to type."""
        self._waiting, self._run, self._told = waiting, run, told
        self._portrait: Portrait | None = None
        self._controls: Controls | None = None
        self._had_buttons = False
        self._box: Any = None
        self._card: Any = None
        self._heard: Any = None

    @property
    def box(self) -> Box:
        """Its widgets, made when they are first wanted."""
        from ipywidgets import HTML, VBox

        if self._box is None:
            self._card, self._heard, self._box = HTML(), HTML(), VBox()
            self._place()
            self._run.faces.redraw()
        return self._box

    def put_up(self) -> None:
        """Have the run draw it from now on."""
        self._run.faces.put_row(self)

    def take_down(self) -> None:
        """Leave nothing of it in the kernel."""
        self._run.faces.take_row(self)
        self.erase_buttons()
        if self._box is not None:
            discard(self._box)
        self._card = self._heard = self._box = None

    def inside(self, log: Log) -> tuple[Part, ...]:
        """A row does not open to its run's steps."""
        return ()

    def draw(self, portrait: Portrait) -> None:
        self._portrait = portrait
        before, self.as_text = self.as_text, self._row(portrait, typed=True)
        self._paint()
        if self.as_text != before:
            self._told()

    def ask(self, question: Question, run: Decider) -> None:
        old = self._controls
        if self._box is None or (old and old.question == question and not old.used):
            return
        self._controls = Controls(question, run, armed=not self._had_buttons)
        self._had_buttons = True
        self._place()
        if old is not None:
            old.close()

    def erase_buttons(self) -> None:
        old, self._controls = self._controls, None
        if old is not None:
            self._place()
            old.close()

    def say(self, step: Live | None) -> None:
        if self._heard is not None:
            self._heard.value = live(step)["text/html"] if step else ""

    def _row(self, portrait: Portrait, *, typed: bool) -> Portrait:
        return row_portrait(portrait, self._waiting, moment(SYSTEM.clock()), typed=typed)

    def _paint(self) -> None:
        if self._card is not None and self._portrait is not None:
            typed = self._controls is None
            self._card.value = html(self._row(self._portrait, typed=typed))

    def _place(self) -> None:
        self._paint()
        buttons = () if self._controls is None else (self._controls.box,)
        self._box.children = (self._card, self._heard, *buttons)
