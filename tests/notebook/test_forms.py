"""The form in which a call's arguments are edited: what it asks for, and what it makes of that."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from ipywidgets import Checkbox, Dropdown, FloatText, IntText, Text, Textarea
from pydantic import BaseModel, Field

from durable_nb import tool
from durable_nb.notebook.asking.forms import ABSENT, edit_lines, edits_of, fields_of
from durable_nb.notebook.asking.inputs import Form, Input
from durable_nb.notebook.gates import Question
from durable_nb.runtime.tools import Arguments, Tool


class Speed(Enum):
    SLOW = "slow"
    FAST = "fast"


class Address(BaseModel):
    city: str
    zip: int


@tool
def send(
    order: str,
    amount: Annotated[int, Field(gt=0, description="in cents")],
    rate: float,
    notify: bool,
    currency: Literal["EUR", "USD"],
    speed: Speed,
    level: Literal[1, 2],
    to: Address,
    lines: list[int],
    note: str | None,
    either: int | str,
    limit: int | None = None,
    tags: tuple[str, ...] = (),
) -> str:
    """Send something."""
    return "sent"


SAVED: dict[str, object] = {
    "order": "1042",
    "amount": 5000,
    "rate": 1,
    "notify": True,
    "currency": "USD",
    "speed": "fast",
    "level": 2,
    "to": {"city": "Bern", "zip": 3000},
    "lines": [1, 2],
    "note": None,
    "either": "x",
}


def form_of(saved: dict[str, object] | None = None, made: Tool = send) -> Form:
    arguments = SAVED if saved is None else saved
    return Form(Question("r", 3, "approval", made.name, arguments), made)


def asked(form: Form, name: str) -> Input:
    return next(each for each in form.inputs if each.field.name == name)


def wrong(form: Form) -> dict[str, str]:
    """What the form says is wrong, by field."""
    return {each.field.name: each.error.value for each in form.inputs if each.wrong}


@pytest.mark.parametrize(
    ("name", "kind", "shows"),
    [
        ("order", Text, "1042"),
        ("amount", IntText, 5000),
        ("rate", FloatText, 1.0),
        ("notify", Checkbox, True),
        ("currency", Dropdown, 1),
        ("speed", Dropdown, 1),
        ("level", Dropdown, 1),
        ("to", Textarea, '{"city": "Bern", "zip": 3000}'),
        ("lines", Textarea, "[1, 2]"),
        ("note", Text, ""),
        ("either", Textarea, '"x"'),
        ("limit", IntText, 0),
        ("tags", Textarea, ""),
    ],
)
def test_each_kind_of_argument_has_its_input_and_shows_what_the_call_has(
    name: str, kind: type, shows: object
) -> None:
    widget = asked(form_of(), name).whole
    assert (type(widget), widget.value) == (kind, shows)


def test_a_form_that_nobody_touches_changes_nothing() -> None:
    assert form_of().edits() == {}
    assert form_of({**SAVED, "limit": 2**60, "order": "a\nb", "rate": 1e300}).edits() == {}


def test_what_is_needed_is_marked_and_what_may_be_left_out_can_be() -> None:
    says = {each.name: (each.says, each.modes) for each in fields_of(send.schema, SAVED)}
    assert says["amount"] == ("integer, more than 0, required · in cents", ("a value",))
    assert says["note"] == ("string, required", ("a value", "none"))
    assert says["limit"] == ("integer, optional", ("a value", "none", "left out"))
    assert says["tags"][1] == ("a value", "left out")


def test_every_input_says_its_argument_and_its_run() -> None:
    form = form_of()
    assert {each.whole.tooltip for each in form.inputs} == {
        f"{each.field.name} of the call in r" for each in form.inputs
    }


def test_edits_are_of_the_type_that_the_argument_has() -> None:
    form = form_of()
    for name, value in {
        "order": "7",
        "amount": 4500,
        "rate": 0.5,
        "notify": False,
        "currency": 0,
        "speed": 0,
        "level": 0,
        "to": '{"city": "Rome", "zip": 1}',
        "lines": "[]",
        "either": "5",
    }.items():
        asked(form, name).whole.value = value
    assert form.edits() == {
        "order": "7",
        "amount": 4500,
        "rate": 0.5,
        "notify": False,
        "currency": "EUR",
        "speed": "slow",
        "level": 1,
        "to": {"city": "Rome", "zip": 1},
        "lines": [],
        "either": 5,
    }


def test_none_and_left_out_are_chosen_beside_the_input() -> None:
    form = form_of()
    note, limit = asked(form, "note"), asked(form, "limit")
    assert (note.whole.disabled, limit.whole.disabled) == (True, True)
    note.mode.value, note.whole.value = "a value", "soon"
    limit.mode.value = "none"
    assert not note.whole.disabled
    assert form.edits() == {"note": "soon", "limit": None}
    limit.mode.value = "a value"
    limit.whole.value = 9
    assert form.edits() == {"note": "soon", "limit": 9}
    limit.mode.value = "left out"
    assert form.edits() == {"note": "soon"}


def test_a_value_of_the_call_that_becomes_none_is_an_edit() -> None:
    form = form_of({**SAVED, "note": "soon"})
    asked(form, "note").mode.value = "none"
    assert form.edits() == {"note": None}


def test_the_tool_itself_says_what_is_wrong_under_the_field() -> None:
    form = form_of()
    asked(form, "amount").whole.value = -5
    asked(form, "to").whole.value = '{"city": "Rome", "zip": "no"}'
    assert form.edits() is None
    said = wrong(form)
    assert "Input should be greater than 0" in said["amount"]
    assert "zip: Input should be a valid integer" in said["to"]
    assert set(said) == {"amount", "to"}
    asked(form, "amount").whole.value = 5
    asked(form, "to").whole.value = '{"city": "Rome", "zip": 2}'
    assert form.edits() == {"amount": 5, "to": {"city": "Rome", "zip": 2}}
    assert wrong(form) == {}


def test_what_is_not_json_is_said_under_its_field_in_words() -> None:
    form = form_of()
    asked(form, "lines").whole.value = "[1, "
    asked(form, "either").whole.value = "five"
    assert form.edits() is None
    assert "not JSON" in wrong(form)["lines"]
    assert "text needs quotes" in wrong(form)["either"]


def test_what_fits_no_field_is_said_below_them() -> None:
    def check(arguments: Any) -> Any:
        raise ValueError("the moon is full")

    class Moody:
        validate_python = staticmethod(check)

    made = Tool(lambda **_: "", name="moody", arguments=Arguments(Moody(), send.schema))
    form = Form(Question("r", 3, "approval", "moody", SAVED), made)
    asked(form, "amount").whole.value = 1
    with pytest.raises(ValueError, match="the moon is full"):
        made.validate(SAVED)
    assert form.edits() is None
    assert "the moon is full" in form.error.value


@pytest.mark.parametrize("amount", [2**53 + 1, -(2**60)])
def test_a_number_that_a_browser_would_round_is_typed_as_json(amount: int) -> None:
    form = form_of({**SAVED, "amount": amount})
    widget = asked(form, "amount").whole
    assert (type(widget), widget.value) == (Textarea, str(amount))
    widget.value = str(abs(amount) + 2)
    assert form.edits() == {"amount": abs(amount) + 2}


@pytest.mark.parametrize("order", ["a\x00b", "\ud800", "bell\x07", "a\rb", "x\u2028y"])
def test_text_that_a_browser_would_change_is_json(order: str) -> None:
    form = form_of({**SAVED, "order": order})
    widget = asked(form, "order").whole
    assert widget.value.isascii()
    widget.value = widget.value.replace('"', '"!', 1)
    assert form.edits() == {"order": "!" + order}


def test_a_text_of_several_lines_keeps_them() -> None:
    form = form_of({**SAVED, "order": "one\ntwo"})
    widget = asked(form, "order").whole
    assert type(widget) is Textarea
    widget.value = "one\nthree"
    assert form.edits() == {"order": "one\nthree"}


def test_a_value_that_is_too_long_for_a_form_says_how_to_change_it() -> None:
    form = form_of({**SAVED, "order": "x" * 1_000_000})
    widget = asked(form, "order").whole
    assert widget.disabled
    assert widget.value == "1,000,000 characters: to change them, type --set"
    asked(form, "amount").whole.value = 1
    assert form.edits() == {"amount": 1}


def test_an_argument_that_the_tool_does_not_know_any_more_can_be_seen() -> None:
    fields = fields_of({"properties": {}}, {"old": [1]})
    assert [(each.name, each.kind, each.start) for each in fields] == [("old", "json", "[1]")]


def test_equal_numbers_of_another_type_are_edits() -> None:
    fields = fields_of(send.schema, {**SAVED, "either": 1})
    assert edits_of(fields, {"either": True, "rate": 1.0, "amount": 5000}) == {
        "either": True,
        "rate": 1.0,
    }


def test_what_would_change_is_one_line_an_argument() -> None:
    edits = {"amount": 4500, "limit": None, "order": "y" * 500}
    lines = edit_lines({**SAVED, "order": "x"}, edits)
    assert lines[:2] == ["amount: 5000 → 4500", "limit: (left out) → None"]
    assert len(lines[2]) < 200
    assert repr(ABSENT) == "(left out)"
