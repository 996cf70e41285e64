"""The notebooks are committed with what they show, normalised, and they show it again."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_output

from durable_nb.tour import executed
from durable_nb.tour.text import as_text
from tests.docs.outputs import NOTEBOOKS, normal, stable

ALL = sorted(NOTEBOOKS.glob("*.ipynb"))
NEEDS_LOCAL = "12_a_real_model_offline"


def skip_without_what_it_needs(path: Path) -> None:
    """The local model is an extra that takes long to install. CI has it."""
    if path.stem == NEEDS_LOCAL and not os.environ.get("CI"):
        pytest.importorskip("xllamacpp")


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_a_notebook_shows_again_what_it_was_committed_with(path: Path) -> None:
    skip_without_what_it_needs(path)
    committed = nbformat.read(path, as_version=4)
    again = normal(executed(path))  # if this differs for a good reason: poe outputs
    assert list(map(as_text, again.cells)) == list(map(as_text, committed.cells))


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_a_notebook_is_committed_in_one_form_with_short_cells_and_claims_it_checks(
    path: Path,
) -> None:
    committed = nbformat.read(path, as_version=4)
    nbformat.validate(committed)
    code = [cell.source for cell in committed.cells if cell.cell_type == "code"]
    assert normal(committed.cells) == committed
    assert committed.cells[0].source.startswith("# ")
    assert max(len(source.splitlines()) for source in code) <= 8
    assert sum("assert " in source for source in code) >= 3


def test_there_is_a_notebook_to_look_at() -> None:
    assert next(path.name for path in ALL) == "01_a_run_you_can_kill.ipynb"


@pytest.mark.parametrize("took", ["340 µs", "12 ms", "1.2 s", "3 min 05 s"])
def test_how_long_a_step_took_makes_no_other_notebook(took: str) -> None:
    assert stable(f"turn:1  llm_call  {took}") == "turn:1  llm_call  1 ms"


def test_what_a_run_was_at_when_makes_no_other_notebook() -> None:
    assert stable(f"model    {'·█' * 30}  12 ms") == "model    …  1 ms"


def test_a_stream_that_a_kernel_sent_in_pieces_is_one_text() -> None:
    sent = [("stdout", "a\n1"), ("stdout", "2 ms\n"), ("stderr", "d"), ("stdout", "e")]
    outputs = [new_output("stream", name=name, text=text) for name, text in sent]
    shown = normal([new_code_cell("", outputs=outputs)]).cells[0].outputs
    assert [each.text for each in shown] == ["a\n1 ms\n", "d", "e"]
