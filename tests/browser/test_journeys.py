"""Journeys through the rest of the surface, in JupyterLab."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.browser.conftest import Book, Lab
from tests.browser.test_approval import charges, focus, opened
from tests.notebook.test_kernels import AGENT, CELL, notebook_of

pytestmark = pytest.mark.timeout(200)


def test_the_keyboard_alone_edits_and_approves(page: Any, lab: Lab, folder: Path) -> None:
    book = opened(page, lab, folder, AGENT, CELL)
    book.button(1, "Edit…").wait_for()
    focus(page, "Edit…")
    page.keyboard.press("Space")
    book.shown(1).get_by_role("spinbutton", name="amount").wait_for()
    focus(page, "amount")
    page.keyboard.press("Control+A")
    page.keyboard.type("450")
    focus(page, "Review")
    page.keyboard.press("Space")
    book.shown(1).get_by_text("amount: 500 → 450", exact=True).wait_for()
    assert charges(folder) == []
    book.page.wait_for_function(ENABLED, arg="Approve with these")
    focus(page, "Approve with these")
    page.keyboard.press("Space")
    book.until(1, "✓ completed")
    assert charges(folder) == ["1042 450"]


ENABLED = """name => [...document.querySelectorAll('.jp-OutputArea button')]
  .some(b => b.textContent === name && !b.disabled)"""

FAILS = """
script = [call("refund", order="1042", amount=500), OSError("the provider answers 503"), "Done."]
bot = Agent("refund-bot", ScriptedModel(script), [refund])
"""


def test_what_goes_wrong_behind_a_click_is_on_the_card_and_can_be_resumed(
    page: Any, lab: Lab, folder: Path
) -> None:
    book = opened(page, lab, folder, AGENT + FAILS, CELL)
    book.button(1, "Approve").click()
    book.shown(1).get_by_text("the provider answers 503").first.wait_for()
    book.button(1, "Resume").click()
    book.until(1, "✓ completed")
    assert charges(folder) == ["1042 500"]


def test_a_run_that_two_tabs_show_is_decided_once(
    page: Any, new_page: Callable[[], Any], lab: Lab, folder: Path
) -> None:
    """The same notebook in a second tab, with the same kernel, and another with its own."""
    first = opened(page, lab, folder, AGENT, CELL)
    first.button(1, "Approve").wait_for()
    first.saved()
    same = Book(new_page(), lab, first.path)
    same.button(1, "Approve").wait_for()
    other = Book(new_page(), lab, first.path.rename(folder / "other.ipynb"))
    other.run_all()
    other.button(1, "Approve").wait_for()

    same.button(1, "Approve").click()
    first.until(1, "✓ completed")
    first.button(1, "Approve").wait_for(state="detached")
    assert charges(folder) == ["1042 500"]

    other.button(1, "Approve").click()
    other.until(1, "AlreadyResumed")
    other.button(1, "Approve").wait_for(state="detached")
    assert charges(folder) == ["1042 500"]


def test_a_run_is_forked_and_compared_from_the_inspector(page: Any, lab: Lab, folder: Path) -> None:
    book = opened(page, lab, folder, AGENT, CELL, "%durable show refund-1042")
    book.button(1, "Approve").wait_for(state="detached")
    book.button(2, "Fork").wait_for()
    book.shown(2).get_by_label("Fork at step").select_option(index=0)
    book.button(2, "Fork").click()
    book.until(2, "refund-1042-fork-1")
    book.button(2, "Approve").first.wait_for()
    book.shown(2).get_by_label("with", exact=True).select_option(index=3)  # the fork
    book.button(2, "Compare").click()
    book.until(2, "of refund-1042-fork-1 · ")


WAITS = """
import asyncio
from durable_nb import Message, Reply
from durable_nb.llm.stream import tell

class Speaking:
    async def complete(self, messages, tools):
        tell("It is on its")
        Path("said").touch()
        await asyncio.sleep(3600)

if not Path("said").exists():
    bot = Agent("refund-bot", Speaking(), [refund])
"""


def test_an_interrupt_in_a_model_call_leaves_a_card_that_says_how_to_go_on(
    page: Any, lab: Lab, folder: Path
) -> None:
    book = opened(page, lab, folder, AGENT + WAITS, CELL)
    book.shown(1).get_by_text("It is on its").wait_for()
    book.interrupt()
    book.until(1, "stopped by you")
    assert "%durable resume refund-1042" in book.text(1)
    assert "It is on its" not in book.text(1)
    book.restart()
    book.run_all()
    book.until(1, "● waiting for you")
    book.button(1, "Approve").click()
    book.until(1, "✓ completed")
    assert charges(folder) == ["1042 500"]


def test_run_all_goes_on_past_a_cell_that_may_fail(page: Any, lab: Lab, folder: Path) -> None:
    book = notebook_of(AGENT, "%durable show nothing", "print('went on')")
    book.cells[1].metadata.tags = ["raises-exception"]
    nbformat.write(book, folder / "fails.ipynb")
    opened = Book(page, lab, folder / "fails.ipynb")
    opened.run_all()
    opened.until(2, "went on")
    assert opened.outputs(1)[-1]["ename"] == "UnknownExecution"
