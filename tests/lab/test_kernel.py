"""The lab in a real kernel: agents made in cells, one display for the progress, *interrupt kernel*."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from durable_nb import lab
from tests.notebook.test_kernels import Kernel

AGENT = """\
import time
from durable_nb import Agent, ScriptedModel, call, lab

def charge(order: str) -> str:
    "Charge an order."
    with open("ledger", "a") as ledger:
        ledger.write(f"order {order}\\n")
    return "charged"

def bot_with(delay=0.0):
    script = [call("charge", order="1042"), "Done."]
    return Agent("bot", ScriptedModel(script, delay=delay), [charge])
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    kernel = Kernel(tmp_path)
    kernel(AGENT)
    yield kernel
    kernel.close()


def test_an_agent_made_in_a_cell_is_tried_and_the_line_of_its_cell_is_named(
    kernel: Kernel, tmp_path: Path
) -> None:
    outputs = kernel.outputs_of(kernel.start("matrix = lab.crash_matrix(bot_with(), 'go')\nmatrix"))
    (picture,) = [each["data"] for each in outputs if each["type"] == "execute_result"]
    wrap = "charge, line 6 of its cell: move this into a function that is @idempotent: "
    assert wrap in picture["text/plain"]
    assert 'with open("ledger", "a") as ledger:' in picture["text/plain"]
    assert "<table" in picture["text/html"]
    assert not (tmp_path / "ledger").exists()
    assert not (tmp_path / ".durable").exists()


def test_the_progress_is_one_display_that_is_updated(kernel: Kernel) -> None:
    outputs = kernel.outputs_of(kernel.start("matrix = lab.crash_matrix(bot_with(), 'go')"))
    shown = [each for each in outputs if each["type"] in ("display_data", "update_display_data")]
    assert [each["type"] for each in shown].count("display_data") == 1
    assert len({each["transient"]["display_id"] for each in shown}) == 1
    assert shown[-1]["data"]["text/plain"] == f"crash matrix of bot: {'█' * 24} 11/11 kills"


@pytest.mark.parametrize(
    ("cell", "doing"),
    [
        ("lab.crash_matrix(bot_with(delay=60), 'go')", "the run without a kill"),
        ("print('on'); lab.crash(bot_with(delay=60), 'go', at='turn:0', when='after')", "on"),
    ],
)
def test_an_interrupt_ends_the_cell_long_before_its_child_would_and_no_child_is_left(
    kernel: Kernel, cell: str, doing: str
) -> None:
    error, seconds = kernel.interrupt_while(cell, doing=doing)
    print(f"{seconds:.1f} s")
    assert error == "KeyboardInterrupt"
    assert seconds < 30
    children = "import os; print(open(f'/proc/self/task/{os.getpid()}/children').read() or 'none')"
    assert kernel(children).strip() == "none"


def test_the_names_of_the_lab_are_known_without_loading_pandas(kernel: Kernel) -> None:
    assert set(kernel("print(*dir(lab))").split()) == set(lab.__all__)
