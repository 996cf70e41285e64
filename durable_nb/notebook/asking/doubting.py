"""What became of a call in doubt: it happened and returned something, it did not, nobody knows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from durable_nb.model.decisions import Resume
from durable_nb.notebook.asking.deciding import Deciding
from durable_nb.notebook.asking.panel import whole_row
from durable_nb.notebook.markup import alert
from durable_nb.notebook.parts import Say

if TYPE_CHECKING:
    from ipywidgets import Button


class Doubting:
    """The buttons for a call that had begun when its process died."""

    def __init__(self, deciding: Deciding) -> None:
        self._deciding, self._panel = deciding, deciding.panel
        self._json = deciding.question.asks == "value"
        """Whether a function gets what the call returned, and not the model."""

    def ask(self, *, armed: bool) -> None:
        """Three answers in one colour: which is right stands in the world and not on the card."""
        happened = self._panel.button(
            "It happened…", self._happened, does="Say what the call returned", late=not armed
        )
        again = self._panel.button("Run again", self._run_again, late=not armed)
        stop = self._panel.button("Stop the run", self._stop, late=not armed)
        self._panel.show(happened, again, stop)

    def _run_again(self) -> None:
        self._deciding.sure(Resume.run_again, "Run again anyway", (self._back(),))

    def _stop(self) -> None:
        self._deciding.send(Resume.stop)

    def _happened(self) -> None:
        from ipywidgets import Textarea

        tool = self._deciding.question.tool
        how = "as JSON" if self._json else "as the model is to read it"
        tip = f"what {tool} returned, {how}, {self._panel.about}"
        name = f"{tool} returned"
        returned = self._panel.kept(
            Textarea(
                description=name,
                tooltip=tip,
                style={"description_width": "initial"},
                layout=whole_row(),
            )
        )
        wrong = self._panel.html("")
        record = self._panel.button(
            "Record it", lambda: self._record(returned, wrong), style="primary"
        )
        said = self._panel.says([Say(f"{tool} took effect. Say what it returned, {how}.")])
        self._panel.show(said, returned, wrong, record, self._back(), focus=returned)

    def _record(self, returned: Any, wrong: Any) -> None:
        try:
            result = json.loads(returned.value) if self._json else returned.value or None
        except ValueError as error:
            wrong.value = alert(f"not JSON: {error}; text needs quotes")
        else:
            self._deciding.send(lambda: Resume.happened(result))

    def _back(self) -> Button:
        return self._panel.button("Back", lambda: self.ask(armed=False))
