"""Prompts: holes are filled, everything else stays as it was written."""

from __future__ import annotations

import pytest

from durable_nb import Agent, Checkpointer, InvalidInput, ScriptedModel
from durable_nb.notebook.typed.prompt import fill
from tests.notebook.conftest import Notebook

AS_THEY_ARE = [
    'Answer as JSON: {"a": {"b": [1, 2]}}',
    "{} {name} $5000 $$E=mc^2$$ %s \\n",
    "type T = { a: { b: string } };",
    "for i in {1..3}; do echo ${i}; done",
    "}} before anything was opened",
]


@pytest.mark.parametrize("prompt", AS_THEY_ARE)
def test_braces_json_and_dollars_stay_as_they_are(prompt: str) -> None:
    assert fill(prompt, {}) == prompt


@pytest.mark.parametrize(
    ("prompt", "filled"),
    [
        ("Refund {{ order }}", "Refund 1042"),
        ("{{order}}{{ order + 1 }}", "10421043"),
        ("{{ {'a': {'b': order}} }}", "{'a': {'b': 1042}}"),
        ("{{ {'a': {'b': order}}['a']['b'] }}!", "1042!"),
        ("{{ '{{' }} and {{ '}}' }}", "{{ and }}"),
        ("a {{ f'{order:,}' }} z", "a 1,042 z"),
        ("{{ [n for n in range(order) if n < 2] }}", "[0, 1]"),
        ("  {{ '{{ order }}' }} ", "{{ order }}"),
    ],
)
def test_holes_take_any_expression(prompt: str, filled: str) -> None:
    assert fill(prompt, {"order": 1042}) == filled


@pytest.mark.parametrize("prompt", ["{{ order", "{{ }}", "{{ 1 + }}", '{{"a": 1}}x', "{{ a; b }}"])
def test_a_hole_that_is_no_expression_is_named(prompt: str) -> None:
    with pytest.raises(InvalidInput, match="hole"):
        fill(prompt, {})


def test_a_hole_that_raises_is_named_and_starts_nothing(
    notebook: Notebook, store: Checkpointer
) -> None:
    notebook.names["bot"] = Agent("bot", ScriptedModel(["hello"]))
    error = notebook("%%durable bot --id a\n{{ ordr }}").error
    assert isinstance(error, InvalidInput)
    assert str(error).startswith("the hole {{ ordr }}: NameError: name 'ordr' is not defined")
    assert isinstance(error.__cause__, NameError)
    assert not store.runs()


def test_the_line_is_expanded_by_ipython_and_the_body_is_not(notebook: Notebook) -> None:
    notebook.names["bot"] = Agent("bot", ScriptedModel(["hello"]))
    notebook.names["order"] = 1042
    handle = notebook('%%durable bot --id run-{order}\n{order} $order {"a": 1}').value
    assert handle.execution_id == "run-1042"
    assert handle.messages[0].content == '{order} $order {"a": 1}'
