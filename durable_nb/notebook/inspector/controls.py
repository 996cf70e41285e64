"""The inspector's widgets: pages, fork, cancel, compare, and the command to copy.

They hold no truth: what is chosen is a step's number, and whoever acts reads the log again. One box
holds them all, so that a saved file has one display of them, with a text in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from durable_nb.notebook.inspector.page import Place
from durable_nb.notebook.markup import MUTED, esc
from durable_nb.notebook.words import word

if TYPE_CHECKING:
    from ipywidgets import Box, Button, Dropdown, HBox, Widget

Choices: TypeAlias = tuple[tuple[str, Place], ...]

_WIDE = "30em"
_SAID = f"{MUTED};padding-left:9.7em;max-width:58em;line-height:1.4"


class Acts(Protocol):
    """What the controls set going. Each may raise; the card says what."""

    def turn_to(self, page: int) -> None: ...
    def fork(self, place: Place) -> None: ...
    def cancel(self) -> None: ...
    def compare(self, before: Place, after: Place) -> None: ...
    def diff_command(self, before: Place, after: Place) -> str: ...


@dataclass(frozen=True, slots=True)
class Offer:
    """What there is to choose from now. `says` tells what a fork at a step does."""

    execution_id: str
    page: int
    pages: int
    forkable: Choices
    comparable: Choices
    newest: Choices
    says: Callable[[int], str]
    can_end: bool
    which_agent: str


class Controls:
    """One box of widgets. `guarded` calls something that may raise, and shows what."""

    def __init__(
        self, offer: Offer, acts: Acts, guarded: Callable[[Callable[[], None]], None]
    ) -> None:
        from ipywidgets import HTML, HBox, Layout, Text, VBox

        self._acts, self._guarded, self._offer = acts, guarded, offer
        run = offer.execution_id
        self._fork_at = self._choice("Fork at step", f"The step at which run {run} is forked")
        self._says = HTML()
        self._before = self._choice("Compare step", f"A step of run {run}")
        self._after = self._choice("with", f"Another step, or a run that is related to {run}")
        self._older = self._button("◂ Older steps", f"Older steps of run {run}", self._turn, 1)
        self._newer = self._button("Newer steps ▸", f"Newer steps of run {run}", self._turn, -1)
        self._command = Text(
            description="To copy", layout=Layout(width=_WIDE), style={"description_width": "8em"}
        )
        fork = self._button("Fork", f"Fork run {run} at the chosen step", self._fork)
        compare = self._button("Compare", f"Compare two steps of run {run}", self._compare)
        self._cancel = HBox([self._button("Cancel the run", f"Cancel run {run}", self._ask)])
        self._pages = HBox([self._older, self._newer])
        self.box: Box = VBox(
            [
                self._pages,
                _row(self._fork_at, fork, self._cancel),
                self._says,
                _row(self._before, self._after, compare),
                self._command,
            ]
        )
        self.update(offer)
        self._fork_at.observe(lambda _: self._guarded(self._explain), "value")
        for each in (self._before, self._after):
            each.observe(lambda _: self._guarded(self._copy_diff), "value")

    def update(self, offer: Offer) -> None:
        """Offer what there is now; what was chosen stays, if it is still there."""
        self._offer = offer
        _offer(self._fork_at, offer.forkable, offer.forkable[-1:])
        _offer(self._before, offer.comparable, offer.comparable[:1])
        _offer(self._after, offer.comparable, offer.newest)
        self._older.disabled = offer.page >= offer.pages
        self._newer.disabled = offer.page <= 1
        self._pages.layout.display = None if offer.pages > 1 else "none"
        if not offer.can_end:
            self._cancel.children = ()
        self._explain()

    def _choice(self, name: str, tooltip: str) -> Dropdown:
        from ipywidgets import Dropdown, Layout

        return Dropdown(
            description=name,
            tooltip=tooltip,
            layout=Layout(width=_WIDE),
            style={"description_width": "8em"},
        )

    def _button(self, name: str, tooltip: str, act: Callable[..., None], *values: Any) -> Button:
        from ipywidgets import Button, Layout

        button = Button(description=name, tooltip=tooltip, layout=Layout(width="auto"))
        button.on_click(lambda _: self._guarded(partial(act, *values)))
        return button

    def _turn(self, by: int) -> None:
        self._acts.turn_to(self._offer.page + by)

    def _fork(self) -> None:
        self._acts.fork(self._fork_at.value)

    def _compare(self) -> None:
        self._acts.compare(self._before.value, self._after.value)

    def _ask(self) -> None:
        """Once more, with the harmless answer where the second half of a double click lands."""
        run = self._offer.execution_id
        keep = self._button("Keep it", f"Do not cancel run {run}", self._keep)
        end = self._button(f"Yes, cancel {run[:40]}", f"End run {run} as cancelled", self._end)
        end.button_style = "danger"
        self._cancel.children = (keep, end)

    def _keep(self) -> None:
        run = self._offer.execution_id
        ask = self._button("Cancel the run", f"Cancel run {run}", self._ask)
        self._cancel.children = (ask,)

    def _end(self) -> None:
        self._keep()
        self._acts.cancel()

    def _explain(self) -> None:
        """Say what a fork would do, before it does, and what to type for it."""
        if self._fork_at.value is None:
            return
        run, number = self._fork_at.value
        said = esc(self._offer.says(number))
        self._says.value = f'<div style="{_SAID}">{said}</div>'
        self._command.value = f"%durable fork {word(run)} --at {number}{self._offer.which_agent}"

    def _copy_diff(self) -> None:
        if self._before.value is not None and self._after.value is not None:
            self._command.value = self._acts.diff_command(self._before.value, self._after.value)


def _row(*widgets: Widget) -> HBox:
    """Beside one another, or below where there is no room."""
    from ipywidgets import HBox, Layout

    return HBox(widgets, layout=Layout(flex_flow="row wrap"))


def _offer(choice: Dropdown, choices: Choices, default: Choices) -> None:
    """Change what can be chosen, if it is not the same."""
    if choice.options == choices:
        return
    chosen = choice.value
    choice.options = choices
    if chosen in (place for _, place in choices):
        choice.value = chosen
    else:
        choice.value = next((place for _, place in default), None)
