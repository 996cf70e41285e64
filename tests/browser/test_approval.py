"""A person decides in JupyterLab and in Notebook 7, with the mouse and with the keyboard alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.browser.conftest import Book, Lab
from tests.notebook.test_kernels import AGENT, CELL, notebook_of

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(params=["lab", "notebook"])
def app(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


def opened(page: Any, lab: Lab, folder: Path, *cells: str, app: str = "lab") -> Book:
    """A notebook of these cells, open and run."""
    path = folder / "refund.ipynb"
    nbformat.write(notebook_of(*cells), path)
    book = Book(page, lab, path, app)
    book.run_all()
    return book


def charges(folder: Path) -> list[str]:
    ledger = folder / "ledger"
    return ledger.read_text().splitlines() if ledger.exists() else []


def test_a_double_click_after_a_restart_charges_once_and_leaves_a_readable_file(
    page: Any, lab: Lab, folder: Path, app: str
) -> None:
    book = opened(page, lab, folder, AGENT, CELL, "print('next cell:', h.status)", app=app)
    book.button(1, "Approve").wait_for()
    book.until(2, "next cell: paused")

    book.restart()
    book.run_all()
    book.until(0, "1 run · 1 waits for you")
    book.until(2, "next cell: paused")
    assert book.button(1, "Approve").count() == 1

    book.button(1, "Approve").dblclick()
    book.until(1, "✓ completed")
    book.button(1, "Approve").wait_for(state="detached")
    assert charges(folder) == ["1042 500"]

    book.run_all()
    book.until(1, "from store, 0 model calls")
    book.until(2, "next cell: completed")
    assert charges(folder) == ["1042 500"]

    (card,) = book.saved()["cells"][1]["outputs"]
    assert set(card["data"]) == {"text/html", "text/plain"}

    book.restart()
    book.open()  # as a reader who runs nothing
    book.shown(1).get_by_text("Refund is on its way.", exact=True).wait_for()
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


def test_a_double_click_passes_the_first_gate_and_leaves_the_second_to_be_answered(
    page: Any, lab: Lab, folder: Path
) -> None:
    book = opened(page, lab, folder, AGENT + TWO_GATES, CELL)
    book.button(1, "Approve").dblclick()
    book.until(1, "vp")
    assert charges(folder) == []
    book.button(1, "Approve").click()  # waits until the new button can be clicked
    book.until(1, "✓ completed")
    assert charges(folder) == ["1042"]
    assert book.button(1, "Approve").count() == 0


def test_a_rejection_takes_its_reason_to_the_model(
    page: Any, lab: Lab, folder: Path, app: str
) -> None:
    told = "print([m.content for m in h.messages if m.role == 'tool'])"
    book = opened(page, lab, folder, AGENT, CELL, told, app=app)
    book.shown(1).get_by_role("textbox").fill("not in this quarter")
    book.button(1, "Reject").click()
    book.until(1, "✓ completed")
    book.run(2)
    book.until(2, "not in this quarter]")
    assert charges(folder) == []


FOCUSED = """() => {
  const e = document.activeElement;
  return [e.textContent.trim(), ...[...(e.labels || [])].map(each => each.textContent)];
}"""


def focus(page: Any, name: str) -> None:
    """Press Tab until the focus is on something of that name."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if name in page.evaluate(FOCUSED):
            return
    raise AssertionError(f"the keyboard does not reach {name}")


def test_the_keyboard_alone_approves(page: Any, lab: Lab, folder: Path, app: str) -> None:
    book = opened(page, lab, folder, AGENT, CELL, app=app)
    book.button(1, "Approve").wait_for()
    focus(page, "Approve")
    page.keyboard.press("Space")
    book.until(1, "✓ completed")
    assert charges(folder) == ["1042 500"]
