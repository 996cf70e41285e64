"""The displays of a card: static HTML with a text twin, a row of buttons beside it, and, while its
step is in flight, what is heard of that.

A button holds no truth. It knows the number of the pause that was shown with it, is used once, and
is erased when that pause is decided, so that nothing dead is saved with the notebook.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from durable_nb.model.decisions import Resume
from durable_nb.model.entries import Log
from durable_nb.notebook.parts import Part
from durable_nb.notebook.portrait import Live, Look, Portrait
from durable_nb.notebook.render import bundle, live

if TYPE_CHECKING:
    from ipywidgets import Box, Button, HBox

ARMED_AFTER = 1.0  # s: the second half of a double click must not answer the next question


@dataclass(frozen=True, slots=True)
class Question:
    """What the buttons ask: for a decision on pause `pause`, or, with None, whether to go on after
    entry `number`."""

    number: int
    pause: int | None
    in_doubt: bool = False


class Buttons:
    """One row of buttons for one question. The first click counts; later ones are ignored."""

    def __init__(
        self,
        question: Question,
        click: Callable[[Resume | None, int | None], None],
        *,
        armed: bool,
    ) -> None:
        self.question = question
        self.used = False
        self._click = click
        self._armed = armed
        self.box = self._row()
        if not armed:
            timer = threading.Timer(ARMED_AFTER, self._arm)
            timer.daemon = True
            timer.start()

    def _row(self) -> HBox:
        from ipywidgets import HBox, Text

        if self.question.pause is None:
            return HBox([self._button("Resume", "primary", lambda: None)])
        if self.question.in_doubt:
            again = self._button("Run again", "primary", Resume.run_again)
            return HBox([again, self._button("Stop the run", "", Resume.stop)])
        note = Text(placeholder="note (optional)")
        yes = self._button("Approve", "success", lambda: Resume(approved=True, reason=_said(note)))
        no = self._button("Reject", "", lambda: Resume(approved=False, reason=_said(note)))
        return HBox([yes, no, note])

    def _button(self, name: str, style: str, decide: Callable[[], Resume | None]) -> Button:
        from ipywidgets import Button

        button = Button(description=name, button_style=style, disabled=not self._armed)
        button.on_click(lambda _: self._clicked(decide))
        return button

    def _clicked(self, decide: Callable[[], Resume | None]) -> None:
        if self.used or not self._armed:
            return
        self.used = True
        self._disable(True)
        self._click(decide(), self.question.pause)

    def _arm(self) -> None:
        self._armed = True
        if not self.used:
            self._disable(False)

    def _disable(self, disabled: bool) -> None:
        for child in self.box.children:
            child.disabled = disabled


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
        self.inside = inside
        """What the card opens to; with None, its steps."""
        self._id = f"durable-{secrets.token_hex(8)}"
        self._drawn: dict[str, str] = {}
        self._quiet = quiet
        self._buttons: Buttons | None = None
        self._had_buttons = False
        self._heard: dict[str, str] | None = None
        self._placed = False

    def place(self) -> None:
        """Take room in the cell that is running, for when a click gives it something to show."""
        for each in (self._id, self._buttons_id, self._live_id):
            publish({}, each, update=False)
        self._placed = True

    def draw(self, portrait: Portrait) -> None:
        if self._quiet and not self._shown and portrait.tone not in ("amber", "red"):
            return
        drawn = bundle(portrait)
        if drawn != self._drawn:
            publish(drawn, self._id, update=self._shown or self._placed)
            self._drawn = drawn

    def ask(self, question: Question, click: Callable[[Resume | None, int | None], None]) -> None:
        """Show buttons for the question, unless those that are there ask it and are unused."""
        if not self._shown:
            return
        old = self._buttons
        if old is not None and old.question == question and not old.used:
            return
        self._buttons = Buttons(question, click, armed=not self._had_buttons)
        there = self._had_buttons or self._placed
        publish(widget(self._buttons.box), self._buttons_id, update=there)
        self._had_buttons = True
        _close(old)

    def erase_buttons(self) -> None:
        """Leave nothing of the buttons in the cell."""
        old, self._buttons = self._buttons, None
        if old is not None:
            publish({}, self._buttons_id, update=True)
            _close(old)

    def say(self, step: Live | None) -> None:
        """Show what is heard of the step in flight; with None, leave nothing of it in the cell."""
        said = live(step) if step and self._shown else {}
        if said != (self._heard or {}):
            publish(said, self._live_id, update=self._heard is not None or self._placed)
            self._heard = said

    @property
    def _shown(self) -> bool:
        return bool(self._drawn)

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


def _close(old: Buttons | None) -> None:
    widgets: Sequence[Any] = () if old is None else (*old.box.children, old.box)
    for each in widgets:
        each.close()


def _said(note: Any) -> str | None:
    return note.value.strip() or None
