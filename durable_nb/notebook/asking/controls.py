"""The buttons by which a person decides, on a run's card and in the inbox.

They hold no truth: they know the number of the pause that was shown with them, and decide once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from durable_nb.notebook.asking.approving import Approving
from durable_nb.notebook.asking.deciding import Decider, Deciding
from durable_nb.notebook.asking.doubting import Doubting
from durable_nb.notebook.gates import Question

if TYPE_CHECKING:
    from ipywidgets import HBox


class Controls:
    """The buttons for one question. Those that are not `armed` work after a moment."""

    def __init__(self, question: Question, run: Decider, *, armed: bool) -> None:
        self.question = question
        self._deciding = Deciding(question, run)
        self._ask(armed=armed)

    @property
    def box(self) -> HBox:
        return self._deciding.panel.box

    @property
    def used(self) -> bool:
        """Whether it was decided here."""
        return self._deciding.panel.is_shut

    def close(self) -> None:
        """Leave nothing of them in the kernel."""
        self._deciding.panel.close()

    def _ask(self, *, armed: bool) -> None:
        match self.question.asks:
            case "approval":
                Approving(self._deciding).ask(armed=armed)
            case "text" | "value":
                Doubting(self._deciding).ask(armed=armed)
            case "go on":
                self._offer("Resume", self._resume, armed=armed, style="primary")
            case "stop":
                self._offer("Stop", self._stop, armed=False)

    def _offer(self, name: str, click: Callable[[], None], *, armed: bool, style: str = "") -> None:
        panel = self._deciding.panel
        panel.show(panel.button(name, click, style=style, late=not armed))

    def _resume(self) -> None:
        self._deciding.send(lambda: None)

    def _stop(self) -> None:
        self._deciding.panel.shut()
        self._deciding.run.stop()
