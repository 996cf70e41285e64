"""Somebody who sees what a cell shows, and clicks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ipywidgets.widgets.widget import _instances

from tests.notebook.conftest import Notebook, Ran, eventually

VIEW = "application/vnd.jupyter.widget-view+json"


class Clicker:
    """The widgets of one cell, by what a person calls them."""

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook
        self._ran: Ran | None = None

    def sees(self, ran: Ran) -> Ran:
        """Look at this cell's displays from now on."""
        self._ran = ran
        return ran

    @property
    def widgets(self) -> list[Any]:
        """Every widget that the cell shows, in the order in which the keyboard meets them."""
        assert self._ran is not None
        boxes = [_instances[row[VIEW]["model_id"]] for row in self._ran.buttons]
        return [each for box in boxes for each in _walk(box)]

    @property
    def buttons(self) -> list[str]:
        return [each.description for each in self.widgets if hasattr(each, "button_style")]

    @property
    def text(self) -> str:
        """The cell's static displays, as text, and what stands among its widgets."""
        assert self._ran is not None
        texts = [each["text/plain"] for each in self._ran.shown if "text/html" in each]
        return "\n".join((*texts, self.html))

    @property
    def html(self) -> str:
        """What stands among the widgets."""
        return "\n".join(
            each.value for each in self.widgets if type(each).__name__ == "HTML" and each.value
        )

    def find(self, name: str, run: str = "") -> Any:
        """The button of that name, or what the name's tooltip is on; of a run where several are."""
        (found,) = [
            each
            for each in self.widgets
            if name in (getattr(each, "description", ""), getattr(each, "tooltip", ""))
            and run in (getattr(each, "tooltip", "") or "")
        ]
        return found

    def click(self, name: str, run: str = "") -> None:
        """Click, and wait until what that set going is over."""
        button = self.find(name, run)
        self._notebook.while_capturing(lambda: self._click(button))

    def double_click(self, name: str, run: str = "") -> None:
        button = self.find(name, run)
        self._notebook.while_capturing(lambda: self._click(button, button))

    def fill(self, name: str, value: object) -> None:
        self.find(name).value = value

    def armed(self, name: str, run: str = "") -> None:
        """Wait until a button that follows another one can be clicked."""
        eventually(lambda: not self.find(name, run).disabled)

    def _click(self, *buttons: Any) -> None:
        for each in buttons:
            each.click()
        magics: Any = self._notebook.shell.magics_manager.registry["DurableMagics"]
        for run in list(magics.desk._runs.values()):
            assert run.wait(60)


def _walk(widget: Any) -> Iterator[Any]:
    yield widget
    for each in getattr(widget, "children", ()):
        yield from _walk(each)


@pytest.fixture
def clicker(notebook: Notebook) -> Clicker:
    """Somebody is there."""
    notebook("%config DurableMagics.headless = False")
    return Clicker(notebook)
