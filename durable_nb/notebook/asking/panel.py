"""A row of widgets that changes what it holds: buttons that say what they do and to which run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from durable_nb.notebook.parts import Part
from durable_nb.notebook.render import pieces

if TYPE_CHECKING:
    from ipywidgets import Button, HBox, Widget

W = TypeVar("W")

ARMED_AFTER = 1.0  # s: the second half of a double click must not answer the next question


class Panel:
    """`about` is said of every widget to those who do not see its place. What a click raises goes
    to `refused`. Once it is shut nothing in it acts any more."""

    def __init__(self, about: str, refused: Callable[[Exception], None]) -> None:
        from ipywidgets import HBox, Layout

        self.about = about
        self.is_shut = False
        self._refused = refused
        self._made: list[Any] = []
        layout = Layout(flex_flow="row wrap", max_width="900px", margin="0 0 10px 0")
        self.box: HBox = HBox(layout=layout)

    def show(self, *widgets: Widget, focus: Widget | None = None) -> None:
        """Have these in place of what was there; the keyboard goes on at `focus`."""
        self.box.children = widgets
        if focus is not None:
            focus.focus()

    def button(
        self,
        name: str,
        click: Callable[[], None],
        *,
        does: str = "",
        style: str = "",
        late: bool = False,
    ) -> Button:
        """A `late` one works after a moment, so that no double click gets through it."""
        from ipywidgets import Button

        tip = f"{does or name}, {self.about}"
        button = Button(description=name, tooltip=tip, button_style=style, disabled=late)
        button.on_click(lambda _: self._clicked(button, click))
        if late:
            timer = threading.Timer(ARMED_AFTER, self._arm, (button,))
            timer.daemon = True
            timer.start()
        return self.kept(button)

    def says(self, parts: Iterable[Part]) -> Widget:
        return self.html(pieces(parts))

    def html(self, text: str) -> Any:
        """HTML that was escaped, in a row of its own."""
        from ipywidgets import HTML

        return self.kept(HTML(text, layout=whole_row()))

    def kept(self, widget: W) -> W:
        """A widget that lives as long as the panel."""
        self._made.append(widget)
        return widget

    def shut(self) -> None:
        """Let nothing in it act any more."""
        self.is_shut = True
        _disable(self.box)

    def close(self) -> None:
        """Leave nothing of it in the kernel."""
        for each in (*self._made, self.box):
            discard(each)
        self._made.clear()

    def _clicked(self, button: Button, click: Callable[[], None]) -> None:
        if self.is_shut or button.disabled:
            return
        try:
            click()
        except Exception as error:  # noqa: BLE001  # nobody sees what a callback raises
            self._refused(error)

    def _arm(self, button: Button) -> None:
        if not self.is_shut:
            button.disabled = False


def whole_row() -> Any:
    from ipywidgets import Layout

    return Layout(width="100%")


def discard(widget: Any) -> None:
    """Close a widget with all that it holds: its layout and style are widgets, too."""
    for each in getattr(widget, "children", ()):
        discard(each)
    for name in ("layout", "style"):
        if (part := getattr(widget, name, None)) is not None:
            part.close()
    widget.close()


def _disable(widget: Any) -> None:
    if hasattr(widget, "disabled"):
        widget.disabled = True
    for each in getattr(widget, "children", ()):
        _disable(each)
