"""`%%crash`: a real child is ended in a cell, and the next cell goes on with its run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from durable_nb import InvalidInput
from durable_nb.core.text import visible
from durable_nb.notebook.typed.completion import offer
from tests.notebook.conftest import Notebook
from tests.notebook.test_render import ALLOWED, HOSTILE, Seen

AGENT = """
from pathlib import Path
from durable_nb import Agent, ScriptedModel, call, idempotent

def charge(order: str) -> str:
    with Path(FOLDER, "ledger").open("a") as ledger:
        ledger.write(order + "\\n")
    print("charged", order)
    return "charged"

bot = Agent("bot", ScriptedModel([call("charge", order="1042"), "Done."]), [charge])
"""
CELL = "%%crash bot --at turn:0/tool:charge --when after --id r -o crash\nCharge {{ 1000 + 42 }}"


@pytest.fixture
def cells(notebook: Notebook, tmp_path: Path) -> Notebook:
    notebook.names["FOLDER"] = str(tmp_path)
    notebook(AGENT)
    return notebook


def test_a_cell_shows_what_the_child_printed_what_is_left_and_what_a_resume_does(
    cells: Notebook, tmp_path: Path
) -> None:
    ran = cells(CELL)
    assert "charged 1042" in ran.printed
    assert str(ran.value).splitlines() == [
        "run 'r': its process got SIGKILL after turn:0/tool:charge",
        "#0 turn:0              llm_call   completed",
        "#0 turn:0/tool:charge  tool_call  completed",
        'Resume runs charge(order="1042") again from the top, with its saved arguments. '
        "The model is not asked again.",
    ]
    assert cells.names["crash"] is ran.value
    assert cells("%%durable bot --id r\nCharge 1042").value.output == "Done."
    assert (tmp_path / "ledger").read_text() == "1042\n1042\n"


def test_the_cell_again_kills_nothing_and_says_how_far_the_run_is(cells: Notebook) -> None:
    cells(CELL)
    ran = cells(CELL)
    assert ran.value is None
    assert "run 'r' is there already; no child was started" in ran.printed
    assert "Resume runs charge" in ran.printed


def test_without_an_id_the_same_prompt_in_a_durable_cell_goes_on(cells: Notebook) -> None:
    crash = cells("%%crash bot --at turn:1 --when before\nCharge 1042").value
    assert cells("%%durable bot\nCharge 1042").value.execution_id == crash.execution_id


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("%%crash bot --at turn:0 --when later\ngo", "invalid choice: 'later'"),
        ("%%crash bot\ngo", "--at, --when"),
        ("%%crash bot --at turn:0 --when before", "a prompt is text with something in it"),
    ],
)
def test_a_mistake_is_an_error_of_ours(cells: Notebook, cell: str, why: str) -> None:
    error = cells(cell).error
    assert isinstance(error, InvalidInput)
    assert why in str(error)


def seen(cells: Notebook, crash: object) -> Seen:
    """How it shows as HTML, as a browser takes it."""
    bundle, _ = cells.shell.display_formatter.format(crash)
    assert bundle["text/plain"] == str(crash)
    return Seen(bundle["text/html"])


def test_what_is_left_shows_as_a_card_that_says_what_its_text_says(cells: Notebook) -> None:
    card = seen(cells, crash := cells(CELL).value)
    assert card.open == []
    assert card.text.startswith("↯ its process got SIGKILL \xa0r  · after turn:0/tool:charge")
    for row in crash.rows:
        assert f"#{row.node_index} {row.node_id}{row.step_type}{row.status}" in card.text
    assert card.text.endswith(crash.explain)


def test_what_others_wrote_is_text_on_the_card_of_a_crash(cells: Notebook) -> None:
    crash = cells(CELL).value
    for said in HOSTILE:
        card = seen(cells, replace(crash, said=said, explain=said, execution_id=said))
        assert card.tags <= ALLOWED
        assert card.attributes <= {"style"}
        assert card.open == []
        assert card.text.count(visible(said)) == 3


def test_without_the_extension_a_crash_shows_as_text(cells: Notebook) -> None:
    crash = cells(CELL).value
    cells("%unload_ext durable_nb")
    assert "text/html" not in cells.shell.display_formatter.format(crash)[0]


def test_help_and_completion_know_the_magic(cells: Notebook) -> None:
    assert "--how kill|exit|stop|full|locked" in cells("%%crash --help\n ").printed
    offered = offer("%%crash b", 0, 9, cells.names)
    assert offered is not None
    assert "bot" in offered.texts
