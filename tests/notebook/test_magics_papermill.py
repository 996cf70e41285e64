"""papermill fills a parameter cell; prompts and ids take what it says. Nobody is there to click."""

from __future__ import annotations

from pathlib import Path

import nbformat
import papermill
import pytest

AGENT = """\
%load_ext durable_nb
from durable_nb import Agent, ScriptedModel, call, interrupt

def refund(order: str) -> str:
    "Pay an order back."
    return "paid" if interrupt("manager_approval", {"order": order}).approved else "not paid"

bot = Agent("refund-bot", ScriptedModel([call("refund", order="1042"), "Done."]), [refund])
"""


def executed(folder: Path, *cells: str, **parameters: object) -> nbformat.NotebookNode:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    book.cells[0].metadata.tags = ["parameters"]
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, folder / "in.ipynb")
    options = {"cwd": str(folder), "progress_bar": False, "log_output": False}
    papermill.execute_notebook(
        str(folder / "in.ipynb"), str(folder / "out.ipynb"), parameters, **options
    )
    return nbformat.read(folder / "out.ipynb", as_version=4)


@pytest.mark.filterwarnings("default")
def test_parameters_name_the_run_and_fill_its_prompt(tmp_path: Path) -> None:
    line = "%%durable bot --id 'refund-{{order}}' -o h"
    cells = ("order = 1", AGENT, f"{line}\nRefund {{{{ order }}}}", "h.messages[0].content")
    book = executed(tmp_path, *cells, order=1042)
    (card,) = book.cells[3].outputs
    assert set(card.data) == {"text/html", "text/plain"}
    assert "%durable approve refund-1042 --pause 3" in card.data["text/plain"]
    assert book.cells[4].outputs[0].data["text/plain"] == "'Refund 1042'"
    assert "widgets" not in book.metadata


@pytest.mark.filterwarnings("default")
def test_a_magic_that_fails_fails_the_notebook(tmp_path: Path) -> None:
    with pytest.raises(papermill.exceptions.PapermillExecutionError, match="RunPaused"):
        executed(tmp_path, "order = 1", AGENT, "%%durable bot --id a --on-pause stop\nRefund")
