"""One question, decided once: what every way to answer it has in common.

Whatever runs code asks again where that code is not what it was; what a person has seen is what
they agree to, so code that changes between two clicks is shown and asked about once more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

from durable_nb.core.compare import Change
from durable_nb.model.decisions import Resume
from durable_nb.notebook.asking.panel import Panel
from durable_nb.notebook.gates import Question
from durable_nb.notebook.parts import Say

if TYPE_CHECKING:
    from ipywidgets import Widget

    from durable_nb.runtime.tools import Tool

Decide: TypeAlias = Callable[[], Resume | None]


class Decider(Protocol):
    """The run that a decision is about."""

    def click(self, decision: Resume | None, pause: int | None) -> None:
        """Take the decision. What goes wrong is shown where the run is shown."""

    def stop(self) -> None:
        """Stop what a click started."""

    def changes(self) -> tuple[Change, ...]:
        """What of the agent's code is not as it was, now; the run is shown with it. Raises
        `DurableError` where the agent cannot go on at all."""

    def tool(self, name: str) -> Tool:
        """The tool of that name as it is defined now. Raises `DurableError` if there is none."""

    def refused(self, error: Exception) -> None:
        """Show where the run is shown why nothing was done."""


class Deciding:
    """A question about a run, and the panel in which it is answered."""

    def __init__(self, question: Question, run: Decider) -> None:
        self.question = question
        self.run = run
        pause = "" if question.pause is None else f", pause {question.pause}"
        self.panel = Panel(f"run {question.execution_id}{pause}", run.refused)

    def send(self, decide: Decide) -> None:
        """Decide, once."""
        self.panel.shut()
        self.run.click(decide(), self.question.pause)

    def sure(
        self, decide: Decide, anyway: str, beside: tuple[Widget, ...], seen: tuple[Change, ...] = ()
    ) -> None:
        """Decide, if the code is what it was, or what it was `seen` to be; else show how it has
        changed, and ask with a button named `anyway`."""
        changes = self.run.changes()
        if changes in ((), seen):
            return self.send(decide)
        names = ", ".join(each.key for each in changes)
        said = Say(f"The code has changed since it paused: {names}. The change is shown above.")
        again = partial(self.sure, decide, anyway, beside, changes)
        yes = self.panel.button(anyway, again, style="warning", late=True)
        return self.panel.show(self.panel.says([said]), yes, *beside, focus=beside[0])
