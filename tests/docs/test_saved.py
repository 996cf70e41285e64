"""A notebook that was executed with nobody there, or saved and opened without a kernel."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from nbformat import NotebookNode

from tests.docs.outputs import NOTEBOOKS
from tests.docs.test_guard import outcome
from tests.notebook.test_kernels import AGENT, CELL, executed, notebook_of

VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
WATCHED = "%config DurableMagics.headless = False"
DECIDED = CELL.replace("refund-1042", "decided")
VIEWS = [
    "%durable pending",
    "%durable show decided",
    "f = %durable fork decided --at 1",
    "%durable diff decided 1 4",
    "from durable_nb import views",
    "views.picture('decided')",
    "views.runs()",
    "%%durable_sql\nfrom steps",
]
ELSEWHERE = re.compile(r"https?://|//cdn|<script|<link|<iframe|@import|url\(|\bsrc=", re.IGNORECASE)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> NotebookNode:
    """Every view, with buttons where somebody could click: one run waits, another is decided."""
    folder = tmp_path_factory.mktemp("saved")
    return executed(folder, AGENT, WATCHED, CELL, DECIDED, "%durable approve decided", *VIEWS)


def bundles(book: NotebookNode) -> Iterator[dict[str, Any]]:
    """What each display of the notebook holds, but for those that were erased."""
    for cell in book.cells:
        yield from (output.data for output in cell.get("outputs", ()) if output.get("data"))


def page_of(book: NotebookNode) -> str:
    """The notebook as nbconvert writes it for a browser."""
    page: str
    page, _ = HTMLExporter().from_notebook_node(book)
    return page


def test_whatever_is_shown_has_a_text_beside_it(saved: NotebookNode) -> None:
    for data in bundles(saved):
        assert data["text/plain"].strip(), data
        if VIEW in data:
            said = data["text/plain"]
            assert "Loading widget" not in said
            assert "%durable" in said or "buttons" in said, said


def test_buttons_are_left_of_what_waits_alone(saved: NotebookNode) -> None:
    waits, decided = saved.cells[2].outputs, saved.cells[3].outputs
    assert [VIEW in each.data for each in waits] == [False, True]
    assert all(VIEW not in each.data for each in decided)
    assert "✓ completed" in decided[0].data["text/plain"]
    assert "● waiting for you" in waits[0].data["text/plain"]


def test_only_widgets_are_used_that_every_front_end_has(saved: NotebookNode) -> None:
    models = saved.metadata.widgets[STATE]["state"].values()
    assert {"ButtonModel", "DropdownModel"} <= {each["model_name"] for each in models}
    modules = {each["model_module"] for each in models}
    modules |= {each["state"].get("_view_module") for each in models} - {None}
    assert modules <= {"@jupyter-widgets/base", "@jupyter-widgets/controls"}


def test_what_is_shown_fetches_nothing(saved: NotebookNode) -> None:
    for data in bundles(saved):
        for kind in ("text/html", "image/svg+xml"):
            found = ELSEWHERE.search(data.get(kind, "").replace("http://www.w3.org/", ""))
            assert found is None, data[kind][found.start() - 80 : found.end() + 80]


@pytest.mark.filterwarnings("ignore:Your element with mimetype")  # of what was erased
@pytest.mark.parametrize("with_state", [True, False], ids=["widgets' state", "no state"])
def test_a_page_made_of_the_file_shows_the_cards(saved: NotebookNode, with_state: bool) -> None:
    book = deepcopy(saved)
    if not with_state:
        del book.metadata["widgets"]
    page = re.sub(r"<[^>]+>", "", page_of(book))
    assert "waiting for you" in page
    assert "%durable approve refund-1042 --pause 3" in page
    assert "Refund is on its way." in page
    assert "Loading widget" not in page


def test_with_nobody_there_nothing_of_a_widget_is_saved(tmp_path: Path) -> None:
    book = executed(tmp_path, AGENT, CELL, DECIDED, "%durable approve decided", *VIEWS)
    assert "widgets" not in book.metadata
    assert all(VIEW not in data for data in bundles(book))
    page = page_of(book)
    assert "widget-view" not in page
    assert "%durable approve refund-1042 --pause 3" in page


def test_a_card_is_executed_twenty_times_and_none_hangs(tmp_path: Path) -> None:
    cells = [CELL.replace("refund-1042", f"run-{n}") for n in range(20)]
    book = notebook_of(AGENT, WATCHED, *cells)
    NotebookClient(book, timeout=100, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [cell.outputs[0].data["text/plain"] for cell in book.cells[2:]]
    assert all("waiting for you" in each for each in shown)


def test_nbmake_passes_what_pauses_and_fails_what_must_not(tmp_path: Path) -> None:
    shutil.copy(NOTEBOOKS / "conftest.py", tmp_path)
    stop = "%%durable bot --id s --on-pause stop\nRefund"
    said = outcome(
        tmp_path,
        {
            "pauses": (AGENT, CELL, "assert h.status == 'paused'"),
            "stops": (AGENT, stop, "never = 1"),
            "mistakes": (AGENT, "%%durable bot --nope\nRefund", "never = 1"),
            "unknown": (AGENT, "%durable show nothing", "never = 1"),
        },
    )
    assert "3 failed, 1 passed" in said
    for error in ("RunPaused", "InvalidInput", "UnknownExecution"):
        assert error in said


PARAMETERS = nbformat.v4.new_code_cell("order = 'none'", metadata={"tags": ["parameters"]})
PROMPT = "%%durable bot --id refund-{order} -o h --on-pause POLICY\nRefund order {{ order }}"


@pytest.mark.parametrize(("policy", "code"), [("continue", 0), ("stop", 1)])
def test_papermill_fills_the_prompt_and_its_exit_code_says_whether_it_stopped(
    tmp_path: Path, policy: str, code: int
) -> None:
    book = notebook_of(AGENT, PROMPT.replace("POLICY", policy), "print(h.messages[0].content)")
    book.cells.insert(0, deepcopy(PARAMETERS))
    book.metadata.language_info = {"name": "python"}
    nbformat.write(book, tmp_path / "in.ipynb")
    command = [sys.executable, "-m", "papermill", "in.ipynb", "out.ipynb", "-p", "order", "1043"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == code, done.stderr
    out = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert any("%durable approve refund-1043 --pause 3" in str(data) for data in bundles(out))
    if code == 0:
        assert out.cells[-1].outputs[0].text == "Refund order 1043\n"
    else:
        assert "RunPaused" in done.stderr


TERMINAL = f"""
get_ipython().run_cell({AGENT!r})
get_ipython().run_cell({CELL!r})
get_ipython().run_cell("%durable approve refund-1042")
get_ipython().run_cell("%durable runs")
"""


def test_ipython_in_a_terminal_shows_cards_as_text_and_decides(tmp_path: Path) -> None:
    """A plain extension: there is neither a kernel nor a widget."""
    command = [sys.executable, "-m", "IPython", "--no-banner", "--colors=nocolor"]
    command += ["--HistoryManager.enabled=False", "-c", TERMINAL]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "● waiting for you" in done.stdout
    assert "✓ completed" in done.stdout
    assert "HBox" not in done.stdout
    assert (tmp_path / "ledger").read_text() == "1042 500\n"
