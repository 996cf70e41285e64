"""A person approves a refund in JupyterLab, after the kernel was restarted, with a double click."""

from __future__ import annotations

import os
from typing import Any

import nbformat
import pytest

from tests.browser.conftest import Book, Lab
from tests.notebook.test_kernels import AGENT, CELL, notebook_of


@pytest.mark.timeout(400)
def test_a_double_click_after_a_restart_charges_once_and_leaves_a_readable_file(
    page: Any, lab: Lab
) -> None:
    ledger = lab.folder / "ledger"
    book = notebook_of(AGENT, CELL, "print('the next cell ran,', h.status)")
    nbformat.write(book, lab.folder / "refund.ipynb")
    notebook = Book(page, lab, "refund.ipynb")

    notebook.run_all()
    approve = page.get_by_role("button", name="Approve", exact=True)
    approve.wait_for()
    notebook.until(2, "the next cell ran, paused")

    notebook.restart()
    notebook.run_all()
    notebook.until(0, "1 run · 1 waits for you")
    notebook.until(2, "the next cell ran, paused")
    page.get_by_text("waiting for you").wait_for()
    assert approve.count() == 1
    _photograph(page, "waiting")

    approve.dblclick()
    notebook.until(1, "completed")
    approve.wait_for(state="detached")
    assert ledger.read_text() == "1042 500\n"
    _photograph(page, "completed")

    notebook.run_all()
    notebook.until(1, "from store, 0 model calls")
    notebook.until(2, "the next cell ran, completed")
    assert ledger.read_text() == "1042 500\n"

    (card,) = notebook.saved()["cells"][1]["outputs"]
    assert set(card["data"]) == {"text/html", "text/plain"}
    assert "widget-view" not in notebook.path.read_text()

    notebook.restart()
    notebook.open()  # as a reader who runs nothing
    page.get_by_text("Refund is on its way.", exact=True).wait_for()
    assert page.get_by_text("model not found").count() == 0


TWO_GATES = """\
def refund(order: str) -> str:
    "Pay an order back."
    for who in ("manager", "vp"):
        if not interrupt(who, {"order": order}).approved:
            return f"{who} said no"
    with ledger.open("a") as lines:
        lines.write(order + "\\n")
    return "paid"

bot = Agent("refund-bot", ScriptedModel([call("refund", order="1042"), "Done."]), [refund])
"""


@pytest.mark.timeout(400)
def test_a_double_click_passes_the_first_gate_and_leaves_the_second_to_be_answered(
    page: Any, lab: Lab
) -> None:
    ledger = lab.folder / "ledger"
    nbformat.write(notebook_of(AGENT + TWO_GATES, CELL), lab.folder / "gates.ipynb")
    notebook = Book(page, lab, "gates.ipynb")
    notebook.run_all()
    approve = page.get_by_role("button", name="Approve", exact=True)
    approve.dblclick()
    notebook.until(1, "vp")
    assert not ledger.exists()
    approve.click()  # waits until the new button can be clicked
    notebook.until(1, "completed")
    assert ledger.read_text() == "1042\n"
    assert approve.count() == 0


def _photograph(page: Any, name: str) -> None:
    """For a person to look at, where `DURABLE_NB_SCREENSHOTS` names a folder."""
    if folder := os.environ.get("DURABLE_NB_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png")
