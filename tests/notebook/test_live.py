"""A card goes on with its run: while a tool works, it says which."""

from __future__ import annotations

import threading

import pytest

from durable_nb import Agent, ScriptedModel, call, interrupt
from tests.notebook.conftest import Notebook, eventually
from tests.notebook.test_clicks import button, click

CELL = "%%durable bot --id a -o h\ngo"
AT_SLOW = "▸ running · a · bot · at turn:1/tool:slow"


@pytest.fixture
def said(notebook: Notebook) -> list[str]:
    """What the card said when the slow tool was over."""
    said: list[str] = []

    def cards() -> list[str]:
        outputs = getattr(notebook.shell.display_pub, "outputs", [])
        return [each["data"].get("text/plain", "") for each in list(outputs)]

    def quick(ask: bool) -> str:
        """Be quick, after a yes if that is wanted."""
        if ask:
            interrupt("go on?")
        return "quick"

    def slow() -> str:
        """Work until a card shows it, if somebody keeps cards up to date."""
        if any(each.name == "durable_nb card" for each in threading.enumerate()):
            eventually(lambda: any(each.startswith(AT_SLOW) for each in cards()))
        said.extend(cards())
        return "slow"

    script = [call("quick", ask=False), call("slow"), "Done."]
    notebook.names["bot"] = Agent("bot", ScriptedModel(script), [quick, slow])
    asking = [call("quick", ask=True), call("slow"), "Done."]
    notebook.names["asker"] = Agent("bot", ScriptedModel(asking), [quick, slow])
    return said


def test_the_card_of_a_cell_says_which_tool_works(notebook: Notebook, said: list[str]) -> None:
    notebook("%config DurableMagics.headless = False")
    ran = notebook(CELL)
    assert said[-1].startswith(AT_SLOW)
    assert ran.printed.strip() == "Out[3]:"
    assert ran.card.startswith("✓ completed")


def test_the_card_of_a_click_says_which_tool_works(notebook: Notebook, said: list[str]) -> None:
    notebook("%config DurableMagics.headless = False")
    ran = notebook(CELL.replace("bot", "asker"))
    click(notebook, button(ran, "Approve"))
    assert said[-1].startswith(AT_SLOW)
    assert ran.card.startswith("✓ completed")


def test_with_nobody_there_a_card_is_drawn_at_the_start_and_at_the_end(
    notebook: Notebook, said: list[str]
) -> None:
    ran = notebook(CELL)
    assert said == ["▸ running · a · bot · at turn:0"]
    assert ran.card.startswith("✓ completed")
