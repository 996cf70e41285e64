"""Decisions that are typed: `%durable approve`, `reject`, and the handle's methods."""

from __future__ import annotations

import pytest

from durable_nb import (
    Agent,
    AgentMismatch,
    AlreadyResumed,
    Checkpointer,
    DurableError,
    InvalidInput,
    RunPaused,
    ScriptedModel,
    UnknownAgent,
    UnknownExecution,
    call,
    interrupt,
)
from tests.notebook.conftest import ANSWER, Notebook
from tests.support.ledger import Ledger

CELL = "%%durable bot --id refund-1042 -o h\nRefund order 1042\n"


@pytest.fixture
def paused(notebook: Notebook, bot: Agent) -> Notebook:
    notebook(CELL)
    return notebook


@pytest.fixture
def two_gates(notebook: Notebook, effects: Ledger) -> Notebook:
    """A paused run whose tool asks a manager and then a VP."""

    def refund(order: str) -> str:
        """Pay an order back."""
        for who in ("manager", "vp"):
            if not interrupt(who, {"order": order}).approved:
                return f"{who} said no"
        effects.add(order)
        return "paid"

    llm = ScriptedModel([call("refund", order="1042"), ANSWER])
    notebook.names["bot"] = Agent("refund-bot", llm, [refund])
    notebook(CELL)
    return notebook


def test_an_approval_goes_on_and_updates_the_card_of_the_cell_that_paused(
    paused: Notebook, effects: Ledger
) -> None:
    first = paused(CELL)
    ran = paused("%durable approve refund-1042 --pause 3 --by alice --note 'once'")
    assert ran.value.output == ANSWER
    assert "completed" in ran.card
    assert "approved by alice" in first.card
    assert effects.lines == ["1042 500"]


def test_a_rejection_reaches_the_model_word_for_word(paused: Notebook, effects: Ledger) -> None:
    handle = paused("%durable reject refund-1042 --by alice --note 'not in this quarter'").value
    told = [message.content for message in handle.messages if message.role == "tool"]
    assert told[0].startswith("[rejected by alice: not in this quarter]")
    assert effects.lines == []


def test_an_approval_may_change_arguments(paused: Notebook, effects: Ledger) -> None:
    assert isinstance(paused("%durable approve refund-1042 --set amount=lots").error, InvalidInput)
    paused("%durable approve refund-1042 --set amount=90 --set 'order=\"1043\"'")
    assert effects.lines == ["1043 90"]


def test_the_same_decision_again_goes_on_and_another_one_is_refused(
    paused: Notebook, effects: Ledger
) -> None:
    paused("%durable approve refund-1042 --by alice")
    again = paused("%durable approve refund-1042 --by bob")
    assert again.error is None
    assert "alice had approved pause 3 before" in again.card
    assert isinstance(paused("%durable reject refund-1042").error, AlreadyResumed)
    assert isinstance(paused("%durable approve refund-1042 --set amount=1").error, AlreadyResumed)
    assert effects.lines == ["1042 500"]


def test_where_there_were_several_pauses_one_has_to_be_named(
    two_gates: Notebook, effects: Ledger
) -> None:
    second = two_gates("%durable approve refund-1042 --by alice")
    assert "vp" in second.card
    assert second.value.status == "paused"
    unclear = two_gates("%durable approve refund-1042")
    assert isinstance(unclear.error, InvalidInput)
    assert "3 (manager: approved by alice), 5 (vp: open)" in str(unclear.error)
    done = two_gates("%durable approve refund-1042 --pause 5")
    assert done.value.status == "completed"
    assert effects.lines == ["1042"]


def test_a_pause_that_the_run_never_had_is_refused_with_the_one_that_is_open(
    two_gates: Notebook, store: Checkpointer
) -> None:
    error = two_gates("%durable approve refund-1042 --pause 7").error
    assert isinstance(error, InvalidInput)
    assert str(error) == (
        "run refund-1042 has no pause 7; pause 3 (manager) is open: "
        "%durable approve refund-1042 --pause 3 (or reject)"
    )
    assert store.get_last("refund-1042").number == 3
    bot = two_gates.names["bot"] = Agent("calm", ScriptedModel(["Done."]))
    bot.run("go", execution_id="calm")
    assert "none is open" in str(two_gates("%durable approve calm --pause 3").error)


def test_an_answer_to_the_first_gate_never_passes_the_second(
    two_gates: Notebook, effects: Ledger
) -> None:
    two_gates("%durable approve refund-1042 --pause 3")
    again = two_gates("%durable approve refund-1042 --pause 3")
    assert again.error is None
    assert again.value.status == "paused"
    assert effects.lines == []


def test_a_decision_for_a_run_that_never_paused_is_refused(notebook: Notebook) -> None:
    notebook.names["bot"] = Agent("bot", ScriptedModel(["hello"]))
    notebook("%%durable bot --id a\nhello")
    assert isinstance(notebook("%durable approve a").error, AlreadyResumed)
    assert isinstance(notebook("%durable approve b").error, UnknownExecution)


def test_without_its_agent_a_run_says_which_one_to_define(paused: Notebook) -> None:
    paused("del bot")
    ran = paused("%durable show refund-1042")
    assert "To decide here: no agent 'refund-bot' is defined here" in ran.card
    assert isinstance(paused("%durable approve refund-1042").error, UnknownAgent)


def test_of_a_failed_run_without_its_agent_there_is_nothing_to_decide_but_to_go_on(
    notebook: Notebook,
) -> None:
    notebook.names["bot"] = Agent("refund-bot", ScriptedModel([ValueError("no")]))
    notebook("%%durable bot --id a\nhello")
    notebook("del bot")
    card = notebook("%durable show a").card
    assert "To go on here: no agent 'refund-bot' is defined here" in card
    assert "To decide" not in card


@pytest.mark.parametrize(
    "name", ["it's", 'a "b" c', "a b", "{x}", "$HOME", "ünï-∑", "../a", "a;b", "#1", "x" * 512]
)
def test_the_command_on_the_card_works_as_it_stands(
    notebook: Notebook, bot: Agent, name: str
) -> None:
    notebook.names["x"] = "something else"
    bot.run("Refund order 1042", execution_id=name)
    card = notebook("%durable pending").card
    (line,) = [each for each in card.splitlines() if each.startswith("%durable approve")]
    ran = notebook(line.removesuffix("   (to approve by typing)"))
    assert ran.value.execution_id == name
    assert ran.value.status == "completed"


@pytest.mark.parametrize("name", ["''", "nope", "'../../etc'", '"it\'s"', "x" * 10_000])
def test_an_unknown_run_is_said_to_be_unknown(notebook: Notebook, name: str) -> None:
    assert isinstance(notebook(f"%durable show {name}").error, UnknownExecution)


def test_the_handle_shows_how_far_the_run_is(paused: Notebook) -> None:
    handle = paused.names["h"]
    assert handle.pending["context"] == {"order": "1042", "amount": 500}
    assert handle.pending["number"] == 3
    assert repr(handle.steps).splitlines()[-1].split() == [
        "#0",
        "turn:0/tool:refund",
        "hitl_pause",
        "interrupted",
    ]
    with pytest.raises(RunPaused, match="%durable approve refund-1042 --pause 3"):
        _ = handle.output
    assert handle.wait() is handle


def test_the_handle_decides(paused: Notebook, effects: Ledger) -> None:
    ran = paused("h.approve(by='alice', note='fine')")
    assert ran.value.output == ANSWER
    assert "approved by alice" in ran.card
    assert isinstance(paused("h.reject()").error, AlreadyResumed)
    assert effects.lines == ["1042 500"]


def test_the_handle_answers_only_the_pause_that_its_card_showed(
    two_gates: Notebook, store: Checkpointer, effects: Ledger
) -> None:
    from durable_nb import Resume

    two_gates.names["bot"].resume("refund-1042", resume_value=Resume(approved=True), pause=3)
    assert isinstance(two_gates("h.reject()").error, AlreadyResumed)
    assert store.get_last("refund-1042").step_type == "hitl_pause"
    assert two_gates("h").value.status == "paused"
    assert two_gates("h.approve()").value.status == "completed"
    assert effects.lines == ["1042"]


def test_a_run_that_failed_has_no_output_and_says_how_to_go_on(notebook: Notebook) -> None:
    notebook.names["bot"] = Agent("bot", ScriptedModel([RuntimeError("503"), "hello"]))
    notebook("%%durable bot --id a -o h\nhello")
    handle = notebook("%durable show a").value
    assert handle.status == "failed"
    with pytest.raises(DurableError, match="%durable resume a"):
        _ = handle.output
    assert notebook("%durable resume a").value.output == "hello"


def test_resume_does_not_decide_and_says_what_does(paused: Notebook) -> None:
    error = paused("%durable resume refund-1042").error
    assert isinstance(error, RunPaused)
    assert str(error).startswith("run 'refund-1042' waits for 'manager_approval' (pause 3); ")
    assert str(error).endswith("; here: %durable approve refund-1042 --pause 3 (or reject)")


def test_a_completed_card_says_that_arguments_were_edited(paused: Notebook) -> None:
    card = paused("%durable approve refund-1042 --by ann --set amount=90").card
    assert card.startswith("✓ completed")
    assert "approved by ann, with edits" in card


def test_an_unknown_run_comes_with_the_one_that_was_meant(paused: Notebook) -> None:
    error = paused("%durable approve refund-1024").error
    assert isinstance(error, UnknownExecution)
    assert str(error).endswith("; did you mean refund-1042?; here: %durable runs")


def test_of_two_agents_of_one_name_a_decision_can_name_the_variable(
    notebook: Notebook, bot: Agent, effects: Ledger
) -> None:
    bot.run("Refund order 1042", execution_id="a")
    notebook.names["twin"] = Agent("refund-bot", bot.llm, bot.tools)
    notebook.names["other"] = Agent("other", ScriptedModel(["hello"]))
    unclear = notebook("%durable approve a --pause 3")
    assert isinstance(unclear.error, InvalidInput)
    assert "--agent bot" in str(unclear.error)
    wrong = notebook("%durable approve a --pause 3 --agent other")
    assert isinstance(wrong.error, AgentMismatch)
    done = notebook("%durable approve a --pause 3 --agent twin")
    assert done.value.status == "completed"
    assert effects.lines == ["1042 500"]
