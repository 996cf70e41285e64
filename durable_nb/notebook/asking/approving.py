"""Approve, reject, or approve with other arguments, which are shown as they will be before that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from durable_nb.core.explain import call_text
from durable_nb.core.text import visible
from durable_nb.model.decisions import Resume
from durable_nb.model.errors import DurableError
from durable_nb.notebook.asking.deciding import Deciding
from durable_nb.notebook.asking.forms import edit_lines
from durable_nb.notebook.parts import Say

if TYPE_CHECKING:
    from ipywidgets import Button

    from durable_nb.notebook.asking.inputs import Form


NAME = 24  # characters of a run's id beside the note


class Approving:
    """The buttons of a tool's gate. A note goes with every decision."""

    def __init__(self, deciding: Deciding) -> None:
        from ipywidgets import Layout, Text

        self._deciding, self._panel = deciding, deciding.panel
        tip = f"note on the decision, {self._panel.about}"
        self._note = self._panel.kept(
            Text(
                description=f"note on {_short(deciding.question.execution_id)}",
                placeholder="optional",
                tooltip=tip,
                style={"description_width": "initial"},
                layout=Layout(flex="1 1 240px", max_width="480px"),
            )
        )

    def ask(self, *, armed: bool) -> None:
        yes = self._panel.button("Approve", self._approve, style="success", late=not armed)
        no = self._panel.button("Reject", self._reject, late=not armed)
        does = "Edit the arguments before approving"
        edit = self._panel.button("Edit…", self._edit, does=does, late=not armed)
        offered = (edit,) if self._has_arguments() else ()
        self._panel.show(yes, no, *offered, self._note)

    def _has_arguments(self) -> bool:
        """Whether there is something to edit: what the call has, or what its tool could be given."""
        question = self._deciding.question
        try:
            return bool(
                question.arguments
                or self._deciding.run.tool(question.tool).schema.get("properties")
            )
        except DurableError:  # no such tool, or no agent: what is clicked says so
            return False

    def _approve(self, edits: Mapping[str, object] | None = None) -> None:
        def decide() -> Resume:
            return Resume(approved=True, reason=self._said(), edited=edits)

        self._deciding.sure(decide, "Approve anyway", (self._back(), self._note))

    def _reject(self) -> None:
        self._deciding.send(lambda: Resume(approved=False, reason=self._said()))

    def _edit(self) -> None:
        from durable_nb.notebook.asking.inputs import Form

        question = self._deciding.question
        form = Form(question, self._deciding.run.tool(question.tool))
        self._panel.kept(form.box)
        self._edit_in(form)

    def _edit_in(self, form: Form) -> None:
        review = self._panel.button("Review", lambda: self._review(form), style="primary")
        self._panel.show(
            form.box, review, self._back(), focus=form.inputs[0].whole if form.inputs else review
        )

    def _review(self, form: Form) -> None:
        """Show what would change. Nothing is sent by the click that asks for this."""
        edits = form.edits()
        if edits is None:
            return
        approve = partial(self._approve, edits)
        yes = self._panel.button("Approve with these", approve, style="success", late=True)
        more = self._panel.button("Change more", lambda: self._edit_in(form))
        said = self._panel.says(self._what_changes(edits))
        offered = (yes,) if edits else ()
        self._panel.show(said, *offered, more, self._back(), self._note, focus=more)

    def _what_changes(self, edits: Mapping[str, object]) -> Iterator[Say]:
        question = self._deciding.question
        if not edits:
            yield Say("Nothing is changed: the arguments are as they were.")
            return
        for line in edit_lines(question.arguments, edits):
            yield Say(line, code=line)
        call = call_text(question.tool, {**question.arguments, **edits})
        yield Say(f"Approve runs {call}. The model is told of the edits.", code=call)

    def _back(self) -> Button:
        return self._panel.button("Back", lambda: self.ask(armed=False))

    def _said(self) -> str | None:
        return self._note.value.strip() or None


def _short(execution_id: str) -> str:
    """A run's id as the name of a field; the whole of it is said by the card above."""
    shown = visible(execution_id)
    return shown if len(shown) <= NAME else f"{shown[:NAME]}…"
