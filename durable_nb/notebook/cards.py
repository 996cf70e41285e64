"""The displays of a card: static HTML with a text twin, a row of buttons beside it, and, while its
step is in flight, what is heard of that.

A button holds no truth. It knows the number of the pause that was shown with it, is used once, and
is erased when that pause is decided, so that nothing dead is saved with the notebook.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from durable_nb.model.entries import Log
from durable_nb.notebook.asking.controls import Controls
from durable_nb.notebook.asking.deciding import Decider
from durable_nb.notebook.gates import Question
from durable_nb.notebook.parts import Part
from durable_nb.notebook.portrait import Live, Look, Portrait
from durable_nb.notebook.render import bundle, live

if TYPE_CHECKING:
    from ipywidgets import Box


class Face(Protocol):
    """Something that shows a run: it is drawn anew whenever the run has gone on."""

    look: Look

    def inside(self, log: Log, /) -> tuple[Part, ...] | None:
        """What it opens to; with None, the run's steps."""

    def draw(self, portrait: Portrait, /) -> None:
        """Show the run as it is now."""

    def ask(self, question: Question, run: Decider, /) -> None:
        """Show buttons for the question, unless those that are there ask it and are unused."""

    def erase_buttons(self) -> None:
        """Leave nothing of the buttons."""

    def say(self, step: Live | None, /) -> None:
        """Show what is heard of the step in flight; with None, leave nothing of it."""


class Card:
    """A run's card in one cell. Drawing it again changes what that cell shows."""

    def __init__(
        self,
        look: Look,
        *,
        quiet: bool = False,
        inside: Callable[[Log], tuple[Part, ...] | None] = lambda _: None,
    ) -> None:
        self.look = look
        self._inside = inside
        self._id = f"durable-{secrets.token_hex(8)}"
        self._drawn: Portrait | None = None
        self._quiet = quiet
        self._buttons: Controls | None = None
        self._had_buttons = False
        self._holder: Any = None
        self._heard: dict[str, str] | None = None
        self._placed = False

    def inside(self, log: Log) -> tuple[Part, ...] | None:
        return self._inside(log)

    def place(self) -> None:
        """Take room in the cell that is running, for when a click gives it something to show."""
        for each in (self._id, self._buttons_id, self._live_id):
            publish({}, each, update=False)
        self._placed = True

    def draw(self, portrait: Portrait) -> None:
        if self._quiet and not self._shown and portrait.tone not in ("amber", "red"):
            return
        if portrait != self._drawn:  # what is drawn depends on nothing else, and takes longer
            publish(bundle(portrait), self._id, update=self._shown or self._placed)
            self._drawn = portrait

    def ask(self, question: Question, run: Decider) -> None:
        if not self._shown:
            return
        old = self._buttons
        if old is not None and old.question == question and not old.used:
            return
        self.erase_buttons()  # JupyterLab hides a place whose old buttons close after the new came
        self._buttons = Controls(question, run, armed=not self._had_buttons)
        self._hold(self._buttons.box)
        self._had_buttons = True
        if old is not None:
            old.close()

    def erase_buttons(self) -> None:
        old, self._buttons = self._buttons, None
        if old is not None:
            publish({}, self._buttons_id, update=True)
            old.close()
            self._holder.close()
            self._holder = None

    def _hold(self, box: Box) -> None:
        """Show the box in the one that the cell displays. That one stays while the buttons change:
        JupyterLab hides the display of a widget that is closed, whatever is shown there since."""
        from ipywidgets import VBox

        if self._holder is not None:
            self._holder.children = (box,)
            return
        self._holder = VBox((box,))
        there = self._had_buttons or self._placed
        publish(widget(self._holder), self._buttons_id, update=there)

    def say(self, step: Live | None) -> None:
        said = live(step) if step and self._shown else {}
        if said != (self._heard or {}):
            publish(said, self._live_id, update=self._heard is not None or self._placed)
            self._heard = said

    @property
    def _shown(self) -> bool:
        return self._drawn is not None

    @property
    def _buttons_id(self) -> str:
        return f"{self._id}-buttons"

    @property
    def _live_id(self) -> str:
        return f"{self._id}-live"


def publish(data: dict[str, Any], display_id: str, *, update: bool) -> None:
    """Show it in the cell that is running or, as an update, where it is shown already."""
    from IPython.display import display

    display(data, raw=True, display_id=display_id, update=update)


def widget(box: Box) -> dict[str, Any]:
    """A box of widgets as a display takes it, with a text for where they are dead."""
    view: dict[str, Any] = box._repr_mimebundle_()
    return {**view, "text/plain": "(buttons: they need a running kernel)"}
