"""The agent's code is not what it was when the run paused: it is shown, and one more click asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from durable_nb import Agent, Checkpointer, ScriptedModel, call, interrupt
from durable_nb.core.changes import changes, differences
from durable_nb.core.compare import Change
from durable_nb.model.entries import Answer
from durable_nb.model.values import dumps
from durable_nb.notebook.changed import SHORT, changed_parts
from durable_nb.notebook.parts import Fold, Lines, Say
from durable_nb.notebook.render import pieces
from durable_nb.runtime.tools import Tool
from tests.notebook.clicking import Clicker, clicker
from tests.notebook.conftest import ANSWER, Notebook, eventually
from tests.support.ledger import Ledger

__all__ = ["clicker"]

CELL = "%%durable bot --id refund-1042 -o h\nRefund order 1042\n"

BEFORE = {
    "system_prompt": "Be kind.",
    "model": "openai:gpt-5",
    "settings": {"temperature": 0.5},
    "tools": {"a": "def a():\n    return 1\n", "b": "def b(): ..."},
}


def test_each_part_that_differs_comes_with_both_of_its_texts() -> None:
    now = {
        "system_prompt": None,
        "model": "openai:gpt-5",
        "settings": {"temperature": 0.7, "seed": 1},
        "tools": {"a": "def a():\n    return 2\n", "c": "def c(): ..."},
    }
    assert differences(dumps(BEFORE), dumps(now)) == (
        Change("prompt", "removed", "Be kind.", None),
        Change(
            "model",
            "changed",
            "openai:gpt-5\ntemperature = 0.5",
            "openai:gpt-5\nseed = 1\ntemperature = 0.7",
        ),
        Change("tool a", "changed", "def a():\n    return 1\n", "def a():\n    return 2\n"),
        Change("tool b", "removed", "def b(): ...", None),
        Change("tool c", "added", None, "def c(): ..."),
    )
    assert changes(dumps(BEFORE), dumps(now)) == ("prompt", "model", "tool a", "tool b", "tool c")
    assert differences(dumps(BEFORE), dumps(BEFORE)) == ()


def test_a_long_change_shows_its_head_and_folds_the_whole() -> None:
    after = "\n".join(f"line {number}" for number in range(40))
    say, lines, fold = changed_parts([Change("prompt", "added", None, after)], "it paused")
    assert say == Say("The code has changed since it paused: prompt.")
    assert isinstance(lines, Lines)
    assert isinstance(fold, Fold)
    assert lines.lines == tuple(f"+ line {number}" for number in range(SHORT))
    assert fold.title == "all 40 lines of this change"
    assert isinstance(fold.parts[0], Lines)
    assert fold.parts[0].lines[-1] == "+ line 39"


def test_nothing_changed_says_nothing() -> None:
    assert list(changed_parts([], "it paused")) == []


def test_code_is_shown_as_text() -> None:
    evil = Change("tool a", "changed", "<script>1</script>", "<img src=x onerror=alert(1)> $x$")
    drawn = pieces(changed_parts([evil], "it paused"))
    assert "<script>" not in drawn
    assert "<img" not in drawn
    assert "&lt;script&gt;1" in drawn


def refunder(effects: Ledger, says: str) -> Tool:
    """A tool whose text is not the same for another `says`."""

    def refund(order: str, amount: int) -> str:
        """Pay an order back."""
        if not interrupt("manager_approval", {"order": order}).approved:
            return "not paid"
        effects.add(f"{says} {order} {amount}")
        return "paid"

    return Tool(refund, source=f"def refund(order, amount):\n    pay({says!r})\n")


@pytest.fixture
def define(notebook: Notebook, effects: Ledger) -> Callable[..., Agent]:
    """Define the agent `bot` as a cell does that was edited and run again."""

    def define(
        says: str, prompt: str = "Be kind.", more: Sequence[Tool] = (), model: str = "one"
    ) -> Agent:
        llm = ScriptedModel([call("refund", order="1042", amount=500), ANSWER])
        llm.name = model  # type: ignore[attr-defined]  # what a provider's model has
        tools = [refunder(effects, says), *more]
        agent = Agent("refund-bot", llm, tools, system_prompt=prompt)
        notebook.names["bot"] = agent
        return agent

    return define


def test_approve_asks_once_more_and_then_goes_on_with_the_new_code(
    notebook: Notebook,
    clicker: Clicker,
    define: Callable[..., Agent],
    store: Checkpointer,
    effects: Ledger,
) -> None:
    define("old")
    clicker.sees(notebook(CELL))
    define("new")
    clicker.click("Approve")
    assert effects.lines == []
    assert store.get_last("refund-1042").step_type == "hitl_pause"
    assert "-     pay('old')" in clicker.text
    assert "+     pay('new')" in clicker.text
    assert clicker.buttons == ["Approve anyway", "Back"]
    assert "The code has changed since it paused: tool refund." in clicker.text
    assert "tool refund" in clicker.html
    clicker.click("Approve anyway")  # the second half of a double click
    assert effects.lines == []
    clicker.armed("Approve anyway")
    clicker.click("Approve anyway")
    assert effects.lines == ["new 1042 500"]
    (answer,) = (row.entry for row in store.list("refund-1042") if isinstance(row.entry, Answer))
    assert answer.changed == ("tool refund",)


def test_back_leaves_everything_as_it_was(
    notebook: Notebook, clicker: Clicker, define: Callable[..., Agent], effects: Ledger
) -> None:
    define("old")
    clicker.sees(notebook(CELL))
    define("new")
    clicker.click("Approve")
    clicker.click("Back")
    assert clicker.buttons == ["Approve", "Reject", "Edit…"]
    define("old")
    clicker.armed("Approve")
    clicker.click("Approve")
    assert effects.lines == ["old 1042 500"]


def test_code_that_changes_again_is_asked_about_again(
    notebook: Notebook, clicker: Clicker, define: Callable[..., Agent], effects: Ledger
) -> None:
    define("old")
    clicker.sees(notebook(CELL))
    define("new")
    clicker.click("Approve")
    clicker.armed("Approve anyway")
    define("newest")
    clicker.click("Approve anyway")
    assert effects.lines == []
    assert "pay('newest')" in clicker.text
    clicker.armed("Approve anyway")
    clicker.click("Approve anyway")
    assert effects.lines == ["newest 1042 500"]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"prompt": "Be quick."}, "prompt"),
        ({"model": "two"}, "model"),
        ({"more": [Tool(lambda: "", name="other")]}, "tool other"),
    ],
)
def test_a_prompt_a_model_and_an_added_tool_are_changes_too(
    notebook: Notebook,
    clicker: Clicker,
    define: Callable[..., Agent],
    edit: dict[str, object],
    said: str,
) -> None:
    define("old")
    clicker.sees(notebook(CELL))
    define("old", **edit)
    clicker.click("Approve")
    assert f"The code has changed since it paused: {said}." in clicker.text
    assert "Approve anyway" in clicker.buttons


def test_a_removed_tool_that_is_not_needed_is_a_change(
    notebook: Notebook, clicker: Clicker, define: Callable[..., Agent]
) -> None:
    define("old", more=[Tool(lambda: "", name="other", source="def other(): ...")])
    clicker.sees(notebook(CELL))
    define("old")
    clicker.click("Approve")
    assert "- def other(): ..." in clicker.text


def test_a_rejection_is_not_asked_about(
    notebook: Notebook, clicker: Clicker, define: Callable[..., Agent], store: Checkpointer
) -> None:
    define("old")
    clicker.sees(notebook(CELL))
    define("new")
    clicker.click("Reject")
    assert store.get_last("refund-1042").status == "completed"


def test_edited_arguments_and_changed_code_are_each_asked_about(
    notebook: Notebook, clicker: Clicker, define: Callable[..., Agent], effects: Ledger
) -> None:
    define("old")
    clicker.sees(notebook(CELL))
    define("new")
    clicker.click("Edit…")
    clicker.fill("amount of the call in refund-1042", 90)
    clicker.click("Review")
    clicker.armed("Approve with these")
    clicker.click("Approve with these")
    assert effects.lines == []
    clicker.armed("Approve anyway")
    clicker.click("Approve anyway")
    assert effects.lines == ["new 1042 90"]


def test_a_typed_approval_goes_on_and_records_it(
    notebook: Notebook, define: Callable[..., Agent], store: Checkpointer, effects: Ledger
) -> None:
    define("old")
    notebook(CELL)
    define("new")
    notebook("%durable approve refund-1042 --pause 3")
    assert effects.lines == ["new 1042 500"]
    (answer,) = (row.entry for row in store.list("refund-1042") if isinstance(row.entry, Answer))
    assert answer.changed == ("tool refund",)


def test_a_call_in_doubt_whose_code_changed_is_run_again_after_one_more_click(
    notebook: Notebook, clicker: Clicker, effects: Ledger
) -> None:
    def wire_of(fate: str) -> Tool:
        def wire(amount: int) -> str:
            """Send money."""
            if fate == "dies":
                raise KeyboardInterrupt
            effects.add(str(amount))
            return "sent"

        return Tool(wire, source=fate, on_crash="ask")

    llm = ScriptedModel([call("wire", amount=9), "Sent."])
    notebook.names["bank"] = Agent("bank", llm, [wire_of("dies")])
    notebook("%%durable bank --id wire-1 -o h\nsend 9")
    notebook.names["bank"] = Agent("bank", llm, [wire_of("works")])
    clicker.sees(notebook("%durable resume wire-1"))
    notebook.names["bank"] = Agent("bank", llm, [wire_of("works better")])
    clicker.click("Run again")
    assert effects.lines == []
    clicker.armed("Run again anyway")
    clicker.click("Run again anyway")
    eventually(lambda: effects.lines == ["9"])
