"""The widgets of a form: one input a field, with what it says and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic_core import ValidationError

from durable_nb.core.text import literal
from durable_nb.notebook.asking.forms import ABSENT, Field, edits_of, fields_of, parsed, too_long
from durable_nb.notebook.markup import MUTED, alert, esc

if TYPE_CHECKING:
    from ipywidgets import VBox

    from durable_nb.notebook.gates import Question
    from durable_nb.runtime.tools import Tool

_NAME = 110  # px for the name of an argument


class Input:
    """One argument's widgets. What it shows is JSON, a choice, or a plain value."""

    def __init__(self, field: Field, run: str) -> None:
        from ipywidgets import HTML, Dropdown, HBox, Layout, VBox

        self.field = field
        self.whole = _widget(field, f"{field.name} of the call in {run}")
        self.error = HTML()
        self.mode: Any = None
        self._untouched = field.mode, self.whole.value
        line = [self.whole]
        if len(field.modes) > 1:
            self.mode = Dropdown(
                options=field.modes,
                value=field.mode,
                description=f"{field.name} is",
                tooltip=f"whether {field.name} of the call in {run} is given",
                style={"description_width": "initial"},
                layout=Layout(width="auto"),
            )
            self.mode.observe(lambda _: self._follow_mode(), "value")
            line.append(self.mode)
            self._follow_mode()
        says = HTML(f'<span style="{MUTED}">{esc(field.says)}</span>')
        self.box = VBox([HBox([*line, says], layout=Layout(flex_flow="row wrap")), self.error])

    def value(self) -> object:
        """What the call would have; unchanged, it is exactly what it has. Raises `ValueError`."""
        mode = self.field.mode if self.mode is None else self.mode.value
        if mode != "a value":
            return None if mode == "none" else ABSENT
        if too_long(self.field) or (mode, self.whole.value) == self._untouched:
            return self.field.saved
        return parsed(self.field, self.whole.value)

    def complain(self, why: str) -> None:
        """Say under the field what is wrong with it; with `""`, nothing."""
        self.error.value = alert(why, indent=f"{_NAME}px")

    @property
    def wrong(self) -> bool:
        return bool(self.error.value)

    def _follow_mode(self) -> None:
        self.whole.disabled = self.mode.value != "a value" or too_long(self.field)


class Form:
    """The inputs for all arguments of the call that a question asks about."""

    def __init__(self, question: Question, tool: Tool) -> None:
        from ipywidgets import HTML, VBox

        self._tool = tool
        self._arguments = question.arguments
        fields = fields_of(tool.schema, question.arguments)
        self.inputs = [Input(each, question.execution_id) for each in fields]
        self.error = HTML()
        self.box: VBox = VBox([*(each.box for each in self.inputs), self.error], layout=_indented())

    def edits(self) -> dict[str, object] | None:
        """What was changed, as the tool takes it; None if something is wrong, which is then said
        under its field."""
        values, wrong = self._read()
        edits = edits_of([each.field for each in self.inputs], values)
        if edits and not wrong:
            wrong = problems(self._tool, {**self._arguments, **edits})
        for each in self.inputs:
            each.complain(wrong.pop(each.field.name, ""))
        self.error.value = alert("; ".join(wrong.values()))
        return None if self.complains() else edits

    def complains(self) -> bool:
        """Whether it says that something is wrong."""
        return bool(self.error.value) or any(each.wrong for each in self.inputs)

    def _read(self) -> tuple[dict[str, object], dict[str, str]]:
        values: dict[str, object] = {}
        wrong: dict[str, str] = {}
        for each in self.inputs:
            try:
                values[each.field.name] = each.value()
            except ValueError as error:
                wrong[each.field.name] = str(error)
        return values, wrong


def _indented() -> Any:
    """The layout of what belongs to the card above it."""
    from ipywidgets import Layout

    rule = "2px solid rgba(122,130,142,0.4)"
    return Layout(width="100%", border_left=rule, padding="2px 0 2px 12px", margin="4px 0")


def problems(tool: Tool, arguments: Mapping[str, object]) -> dict[str, str]:
    """Why the tool would not run with these arguments, by argument; `""` is none in particular."""
    try:
        tool.validate(arguments)
    except ValueError as error:
        cause = error.__cause__
        return _by_argument(cause) if isinstance(cause, ValidationError) else {"": str(error)}
    return {}


def _by_argument(error: ValidationError) -> dict[str, str]:
    wrong: dict[str, str] = {}
    for problem in error.errors(include_url=False, include_context=False):
        name, *inside = map(str, problem["loc"] or ("",))
        said = ": ".join(filter(None, (".".join(inside), problem["msg"])))
        wrong[name] = "; ".join(filter(None, (wrong.get(name), said)))
    return wrong


def _widget(field: Field, tooltip: str) -> Any:
    """An input for the field's kind. Its description is what a screen reader calls it: a tooltip
    alone does not name an input."""
    from ipywidgets import Checkbox, Dropdown, FloatText, IntText, Text, Textarea

    kind, how = field.kind, {"description": field.name, "tooltip": tooltip, **_wide(field)}
    if too_long(field):
        size = f"{len(field.start):,} characters: to change them, type --set"
        return Text(value=size, disabled=True, **how)
    match kind:
        case "choice":
            options = [(literal(each), at) for at, each in enumerate(field.choices)]
            return Dropdown(options=options, value=field.start, **how)
        case "switch":
            return Checkbox(value=field.start, **how)
        case "whole":
            return IntText(value=field.start, **how)
        case "real":
            return FloatText(value=field.start, **how)
        case "text":
            return Text(value=field.start, **how)
        case "lines" | "json":
            rows = min(12, max(2, field.start.count("\n") + 1))
            return Textarea(value=field.start, rows=rows, **how)


def _wide(field: Field) -> dict[str, Any]:
    """How wide an input is, beside the room for its name."""
    width = {"whole": 120, "real": 120, "switch": 170}.get(field.kind, 300) + _NAME
    return {"style": {"description_width": f"{_NAME}px"}, "layout": {"width": f"{width}px"}}
