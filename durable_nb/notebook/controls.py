"""The buttons by which a person decides, on a run's card and in the inbox.

They hold no truth: they know the number of the pause that was shown with them and decide once.
Whatever runs code that was not seen as it is asks again: edited arguments are shown as they will
be, changed code needs a click of its own, and no second click follows a first one at once.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from durable_nb.core.compare import Change
from durable_nb.core.explain import call_text
from durable_nb.model.decisions import Resume
from durable_nb.notebook.forms import edit_lines
from durable_nb.notebook.gates import Question
from durable_nb.notebook.markup import alert
from durable_nb.notebook.parts import Part, Say
from durable_nb.notebook.render import pieces

if TYPE_CHECKING:
    from ipywidgets import Button, HBox, Widget

    from durable_nb.notebook.inputs import Form
    from durable_nb.runtime.tools import Tool

ARMED_AFTER = 1.0  # s: the second half of a double click must not answer the next question

W = TypeVar("W")
Decide: TypeAlias = Callable[[], Resume | None]


class Decider(Protocol):
    """The run that a decision is about."""

    def click(self, decision: Resume | None, pause: int | None) -> None:
        """Take the decision. What goes wrong is shown where the run is shown."""

    def changes(self) -> tuple[Change, ...]:
        """What of the agent's code is not as it was, now; the run is shown with it. Raises
        `DurableError` where the agent cannot go on at all."""

    def refused(self, error: Exception) -> None:
        """Show where the run is shown why nothing was done."""

    def tool(self, name: str) -> Tool:
        """The tool of that name as it is defined now. Raises `DurableError` if there is none."""


class Controls:
    """One row of buttons for one question; what they open stands in the same place."""

    def __init__(self, question: Question, run: Decider, *, armed: bool) -> None:
        from ipywidgets import HBox, Layout, Text

        self.question = question
        self.used = False
        self._run = run
        self._made: list[Any] = []
        self.box: HBox = HBox(
            layout=Layout(flex_flow="row wrap", max_width="900px", margin="0 0 10px 0")
        )
        self._note = self._kept(
            Text(
                placeholder="note (optional)",
                tooltip=f"note on the decision, {self._about}",
                layout=Layout(flex="1 1 140px", max_width="340px"),
            )
        )
        self._first(armed=armed)

    def close(self) -> None:
        """Leave nothing of them in the kernel."""
        for each in (*self._made, self.box):
            discard(each)
        self._made.clear()

    def _first(self, *, armed: bool) -> None:
        make = partial(self._button, late=not armed)
        match self.question.asks:
            case "go on":
                self._show(make("Resume", lambda: self._send(lambda: None), style="primary"))
            case "approval":
                yes = make("Approve", self._approve, style="success")
                no = make("Reject", lambda: self._send(self._rejection))
                edit = make("Edit…", self._edit, does="Edit the arguments before approving")
                offered = (edit,) if self.question.arguments else ()
                self._show(yes, no, *offered, self._note)
            case _:
                happened = make("It happened…", self._happened, does="Say what the call returned")
                again = make("Run again", lambda: self._checked(Resume.run_again), style="primary")
                self._show(happened, again, make("Stop the run", lambda: self._send(Resume.stop)))

    def _approve(self) -> None:
        self._checked(lambda: Resume(approved=True, reason=_said(self._note)))

    def _rejection(self) -> Resume:
        return Resume(approved=False, reason=_said(self._note))

    def _checked(self, decide: Decide, seen: tuple[Change, ...] = ()) -> None:
        """Decide, or, where the code is not what it was when that was last said, ask once more."""
        changes = self._run.changes()
        if changes in ((), seen):
            self._send(decide)
        else:
            self._ask_again(changes, partial(self._checked, decide, changes))

    def _ask_again(self, changes: tuple[Change, ...], go_on: Callable[[], None]) -> None:
        names = ", ".join(each.key for each in changes)
        said = self._said(Say(f"The code has changed since it paused: {names}. See above."))
        name = "Approve anyway" if self.question.asks == "approval" else "Run again anyway"
        sure, back = self._button(name, go_on, style="warning", late=True), self._back()
        self._show(said, sure, back, self._note, focus=back)

    def _edit(self) -> None:
        from durable_nb.notebook.inputs import Form

        form = Form(self.question, self._run.tool(self.question.tool))
        self._kept(form.box)
        self._edit_with(form)

    def _edit_with(self, form: Form) -> None:
        review = self._button("Review", lambda: self._review(form), style="primary")
        self._show(form.box, review, self._back(), focus=form.inputs[0].whole)

    def _review(self, form: Form) -> None:
        """Show what would change. Nothing is sent by the click that asks for this."""
        edits = form.edits()
        if edits is None:
            return
        more = self._button("Change more", lambda: self._edit_with(form))
        said, sure = self._said(*self._what_changes(edits)), partial(self._approve_edited, edits)
        yes = self._button("Approve with these", sure, style="success", late=True)
        offered = (yes,) if edits else ()
        self._show(said, *offered, more, self._back(), self._note, focus=more)

    def _approve_edited(self, edits: Mapping[str, object]) -> None:
        self._checked(lambda: Resume(approved=True, reason=_said(self._note), edited=edits))

    def _what_changes(self, edits: Mapping[str, object]) -> tuple[Say, ...]:
        if not edits:
            return (Say("Nothing is changed: the arguments are as they were."),)
        arguments = self.question.arguments
        call = call_text(self.question.tool, {**arguments, **edits})
        lines = [Say(line, code=line) for line in edit_lines(arguments, edits)]
        return (*lines, Say(f"Approve runs {call}. The model is told of the edits.", code=call))

    def _happened(self) -> None:
        from ipywidgets import Textarea

        tool = self.question.tool
        how = "as JSON" if self._takes_json else "as the model is to read it"
        tip = f"what {tool} returned, {how}, {self._about}"
        returned = self._kept(Textarea(tooltip=tip, layout=_whole_row()))
        said, wrong = (
            self._said(Say(f"{tool} took effect. What it returned, {how}:")),
            self._html(""),
        )
        record = self._button("Record it", lambda: self._record(returned, wrong), style="primary")
        self._show(said, returned, wrong, record, self._back(), focus=returned)

    def _record(self, returned: Any, wrong: Any) -> None:
        try:
            result = json.loads(returned.value) if self._takes_json else returned.value or None
        except ValueError as error:
            wrong.value = alert(f"not JSON: {error}; text needs quotes")
        else:
            self._send(lambda: Resume.happened(result))

    @property
    def _takes_json(self) -> bool:
        """Whether a function, and not the model, gets what a call in doubt returned."""
        return self.question.asks == "value"

    def _send(self, decide: Decide) -> None:
        self.used = True
        _disable(self.box)
        self._run.click(decide(), self.question.pause)

    def _button(
        self,
        name: str,
        click: Callable[[], None],
        *,
        does: str = "",
        style: str = "",
        late: bool = False,
    ) -> Button:
        """A button that says what it does, and to which run. A `late` one works after a moment."""
        from ipywidgets import Button

        tip = f"{does or name}, {self._about}"
        button = Button(description=name, tooltip=tip, button_style=style, disabled=late)
        button.on_click(lambda _: self._clicked(button, click))
        if late:
            timer = threading.Timer(ARMED_AFTER, self._arm, (button,))
            timer.daemon = True
            timer.start()
        return self._kept(button)

    def _clicked(self, button: Button, click: Callable[[], None]) -> None:
        if self.used or button.disabled:
            return
        try:
            click()
        except Exception as error:  # noqa: BLE001  # nobody sees what a callback raises
            self._run.refused(error)

    def _arm(self, button: Button) -> None:
        if not self.used:
            button.disabled = False

    def _back(self) -> Button:
        return self._button("Back", lambda: self._first(armed=False))

    def _show(self, *widgets: Widget, focus: Widget | None = None) -> None:
        """Have these in place of what was there; the keyboard goes on at `focus`."""
        self.box.children = widgets
        if focus is not None:
            focus.focus()

    def _said(self, *parts: Part) -> Widget:
        return self._html(pieces(parts))

    def _html(self, text: str) -> Widget:
        from ipywidgets import HTML

        return self._kept(HTML(text, layout=_whole_row()))

    def _kept(self, widget: W) -> W:
        self._made.append(widget)
        return widget

    @property
    def _about(self) -> str:
        """Which run and pause, for those who hear a button's name and do not see its place."""
        pause = "" if self.question.pause is None else f", pause {self.question.pause}"
        return f"run {self.question.execution_id}{pause}"


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


def _said(note: Any) -> str | None:
    return note.value.strip() or None


def _whole_row() -> Any:
    from ipywidgets import Layout

    return Layout(width="100%")
