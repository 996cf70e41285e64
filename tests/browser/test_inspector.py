"""A person forks a run from its inspector, approves the fork on its card, and compares the two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.browser.conftest import Book, Lab
from tests.notebook.test_kernels import AGENT, CELL, notebook_of


@pytest.mark.timeout(400)
@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_fork_from_the_inspector_needs_a_yes_of_its_own_and_is_compared_with_its_parent(
    page: Any, lab: Lab, folder: Path, app: str
) -> None:
    ledger, path = folder / "ledger", folder / "fork.ipynb"
    cells = (AGENT, CELL, "%durable approve refund-1042", "%durable show refund-1042")
    nbformat.write(notebook_of(*cells), path)
    book = Book(page, lab, path, app)
    book.run_all()
    book.until(3, "6 steps")
    assert ledger.read_text() == "1042 500\n"

    shown = book.shown(3)
    shown.get_by_label("Fork at step").select_option(label="3 · turn:0/tool:refund · hitl_pause")
    shown.get_by_text("A fork here waits for a decision of its own").wait_for()
    book.button(3, "Fork").click()
    book.until(3, "waiting for you · refund-1042-fork-3")
    assert ledger.read_text() == "1042 500\n"

    approve = book.button(3, "Approve")
    approve.click()
    book.until(3, "completed · refund-1042-fork-3")
    approve.wait_for(state="detached")
    assert ledger.read_text() == "1042 500\n1042 500\n"  # as the card had said

    other = shown.get_by_label("with", exact=True)
    other.select_option(label="refund-1042-fork-3 · its newest step")
    book.button(3, "Compare").click()
    book.until(3, "≠ compared · refund-1042 · step 1")
    assert "run_end of refund-1042-fork-3" in book.text(3)

    shown.locator("summary", has_text="hitl_pause").focus()
    page.keyboard.press("Enter")  # a step opens by the keyboard alone
    shown.get_by_text("frozen", exact=True).wait_for()
