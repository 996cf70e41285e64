"""Buttons: one click, one decision, whatever happens behind it."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from ipywidgets import Button
from ipywidgets.widgets.widget import _instances

from durable_nb import Agent, Checkpointer, Resume, ScriptedModel, call, interrupt
from tests.notebook.conftest import ANSWER, Notebook, Ran, eventually
from tests.support.ledger import Ledger

CELL = "%%durable bot --id refund-1042 -o h\nRefund order 1042\n"


@pytest.fixture
def notebook(notebook: Notebook) -> Notebook:
    """Somebody is there."""
    notebook("%config DurableMagics.headless = False")
    return notebook


def button(ran: Ran, name: str) -> Button:
    """The button of that name that the cell shows."""
    (found,) = [each for each in widgets(ran) if getattr(each, "description", "") == name]
    return found


def widgets(ran: Ran) -> list[Any]:
    """All that the cell's boxes hold, however deep."""
    kind = "application/vnd.jupyter.widget-view+json"
    found = [_instances[each[kind]["model_id"]] for each in ran.buttons]
    for each in found:
        found += getattr(each, "children", ())
    return found


def click(notebook: Notebook, *buttons: Button, note: str = "") -> None:
    """Click, and wait until what the click set going is done."""

    def act() -> None:
        for each in buttons:
            each.click()
        notebook.names["h"].wait(60)

    notebook.while_capturing(act)


def test_a_click_approves_once_and_the_buttons_go(
    notebook: Notebook, bot: Agent, effects: Ledger
) -> None:
    ran = notebook(CELL)
    approve = button(ran, "Approve")
    click(notebook, approve, approve)
    assert effects.lines == ["1042 500"]
    assert approve.disabled
    assert ran.card.startswith("✓ completed")
    assert ran.buttons == []
    assert notebook("h.output").value == ANSWER


def test_a_rejection_takes_the_note_with_it(
    notebook: Notebook, bot: Agent, store: Checkpointer, effects: Ledger
) -> None:
    ran = notebook(CELL)
    reject = button(ran, "Reject")
    (note,) = [each for each in widgets(ran) if hasattr(each, "placeholder")]
    note.value = "not in this quarter"
    click(notebook, reject)
    (answer,) = [row.entry for row in store.list("refund-1042") if row.step_type == "resume"]
    assert (answer.approved, answer.reason, answer.pause) == (False, "not in this quarter", 3)
    assert effects.lines == []


def test_a_double_click_passes_one_of_two_gates(notebook: Notebook, effects: Ledger) -> None:
    def refund(order: str) -> str:
        """Pay an order back."""
        for who in ("manager", "vp"):
            if not interrupt(who, {"order": order}).approved:
                return f"{who} said no"
        effects.add(order)
        return "paid"

    llm = ScriptedModel([call("refund", order="1042"), ANSWER])
    notebook.names["bot"] = Agent("refund-bot", llm, [refund])
    ran = notebook(CELL)
    first = button(ran, "Approve")
    click(notebook, first, first)
    assert "vp" in ran.card
    second = button(ran, "Approve")
    assert second.disabled
    click(notebook, second)  # the second half of a double click: too early to be an answer
    assert notebook.names["h"].pending["number"] == 5
    eventually(lambda: not second.disabled)
    click(notebook, second)
    assert ran.card.startswith("✓ completed")
    assert effects.lines == ["1042"]


def test_what_a_claim_refuses_is_on_the_card_and_the_pause_stays(
    notebook: Notebook, bot: Agent
) -> None:
    ran = notebook(CELL)
    approve = button(ran, "Approve")
    notebook.names["bot"] = Agent("refund-bot", bot.llm)
    click(notebook, approve)
    assert "MissingTool" in ran.card
    assert "waiting for you" in ran.card
    notebook.names["bot"] = bot
    again = button(ran, "Approve")
    eventually(lambda: not again.disabled)
    click(notebook, again)
    assert ran.card.startswith("✓ completed")


def test_what_raises_behind_a_button_is_on_the_card(notebook: Notebook, effects: Ledger) -> None:
    def refund(order: str) -> str:
        """Pay an order back."""
        interrupt("manager_approval")
        effects.add(order)
        return "paid"

    llm = ScriptedModel([call("refund", order="1042"), RuntimeError("503"), ANSWER])
    notebook.names["bot"] = Agent("refund-bot", llm, [refund])
    ran = notebook(CELL)
    click(notebook, button(ran, "Approve"))
    assert ran.card.startswith("✗ failed")
    assert "RuntimeError: 503" in ran.card
    resume = button(ran, "Resume")
    eventually(lambda: not resume.disabled)
    click(notebook, resume)
    assert ran.card.startswith("✓ completed")
    assert effects.lines == ["1042"]


def test_a_click_after_somebody_else_decided_says_who(
    notebook: Notebook, bot: Agent, effects: Ledger
) -> None:
    ran = notebook(CELL)
    approve = button(ran, "Approve")
    bot.resume("refund-1042", resume_value=Resume(approved=False, by="alice"))
    click(notebook, approve)
    assert "AlreadyResumed" in ran.card
    assert "alice rejected pause 3" in ran.card
    assert ran.buttons == []
    assert effects.lines == []


def test_two_cards_of_one_run_agree(notebook: Notebook, bot: Agent, effects: Ledger) -> None:
    first, second = notebook(CELL), notebook("%durable show refund-1042")
    assert first.buttons == []
    click(notebook, button(second, "Approve"))
    assert first.card.startswith("✓ completed")
    assert second.card.startswith("✓ completed")
    assert effects.lines == ["1042 500"]


def test_output_waits_for_what_a_click_set_going(notebook: Notebook, effects: Ledger) -> None:
    go_on = threading.Event()

    def refund(order: str) -> str:
        """Pay an order back."""
        interrupt("manager_approval")
        assert go_on.wait(60)
        return "paid"

    llm = ScriptedModel([call("refund", order="1042"), ANSWER])
    notebook.names["bot"] = Agent("refund-bot", llm, [refund])
    approve = button(notebook(CELL), "Approve")
    notebook.while_capturing(approve.click)
    assert notebook("h.status").value == "running"
    threading.Timer(0.2, go_on.set).start()
    assert notebook("h.output").value == ANSWER


def test_a_cell_of_a_run_that_a_click_drives_waits_for_it(notebook: Notebook) -> None:
    go_on = threading.Event()

    def refund(order: str) -> str:
        """Pay an order back."""
        interrupt("manager_approval")
        assert go_on.wait(60)
        return "paid"

    llm = ScriptedModel([call("refund", order="1042"), ANSWER])
    notebook.names["bot"] = Agent("refund-bot", llm, [refund])
    approve = button(notebook(CELL), "Approve")
    notebook.while_capturing(approve.click)
    threading.Timer(0.2, go_on.set).start()
    ran = notebook(CELL)
    assert ran.value.status == "completed"
    assert "completed" in ran.card
    assert llm.asked == 2


def test_with_nobody_there_the_card_is_static(notebook: Notebook, bot: Agent) -> None:
    notebook("%config DurableMagics.headless = None")
    ran = notebook(CELL)
    assert "waiting for you" in ran.card
    assert ran.buttons == []
