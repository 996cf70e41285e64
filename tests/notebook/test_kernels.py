"""Real kernels: event loops, interrupts, restarts, and nobody there to click."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

AGENT = """\
%load_ext durable_nb
import os
from pathlib import Path
from durable_nb import Agent, ScriptedModel, call, interrupt, Resume

ledger = Path("ledger")

def refund(order: str, amount: int) -> str:
    "Pay an order back."
    if amount > 100 and not interrupt("manager_approval", {"order": order}).approved:
        return "not paid"
    with ledger.open("a") as lines:
        lines.write(f"{order} {amount}\\n")
    return "paid"

def bot_with(delay=0.0):
    script = [call("refund", order="1042", amount=500), "Refund is on its way."]
    return Agent("refund-bot", ScriptedModel(script, delay=delay), [refund])

bot = bot_with()
"""
CELL = "%%durable bot --id refund-1042 -o h\nRefund order 1042"


class Kernel:
    """A real kernel, spoken to as a front end does."""

    def __init__(self, folder: Path) -> None:
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(
            cwd=str(folder), extra_arguments=["--HistoryManager.enabled=False"]
        )
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()

    def start(self, source: str) -> str:
        message: str = self.client.execute(source, allow_stdin=True)
        return message

    def outputs_of(self, message: str, *, until: str | None = None) -> list[dict[str, Any]]:
        """What the cell published until it was idle, or until `until` was among it."""
        found: list[dict[str, Any]] = []
        while True:
            got = self.client.get_iopub_msg(timeout=60)
            if got["parent_header"].get("msg_id") != message:
                continue
            found.append({"type": got["msg_type"], **got["content"]})
            if until is not None and until in str(got["content"]):
                return found
            if got["msg_type"] == "status" and got["content"]["execution_state"] == "idle":
                return found

    def __call__(self, source: str) -> str:
        """Run a cell that must work; its text."""
        outputs = self.outputs_of(self.start(source))
        assert not [each for each in outputs if each["type"] == "error"], outputs
        return "\n".join(texts(outputs))

    def interrupt_while(self, source: str, *, doing: str) -> tuple[str, float]:
        """Interrupt a cell once it has said what it is doing; the error, and seconds it took."""
        message = self.start(source)
        self.outputs_of(message, until=doing)
        time.sleep(0.5)  # an interrupt between two cells is nobody's
        began = time.monotonic()
        self.manager.interrupt_kernel()
        outputs = self.outputs_of(message)
        (error,) = [each["ename"] for each in outputs if each["type"] == "error"]
        return error, time.monotonic() - began


def texts(outputs: list[dict[str, Any]]) -> list[str]:
    return [
        each.get("text") or each.get("data", {}).get("text/plain", "")
        for each in outputs
        if each["type"] in ("stream", "display_data", "execute_result", "update_display_data")
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def kernel(folder: Path) -> Iterator[Kernel]:
    kernel = Kernel(folder)
    kernel(AGENT)
    yield kernel
    kernel.close()


def test_runs_work_where_an_event_loop_runs(kernel: Kernel) -> None:
    assert "waiting for you" in kernel(CELL)
    assert "completed" in kernel("bot.resume('refund-1042', resume_value=Resume(approved=True))")
    assert "paused" in kernel("(await bot.arun('Refund', execution_id='b')).status")
    awaited = "r = await bot.aresume('b', resume_value=Resume(approved=True))\nr.output"
    assert "on its way" in kernel(awaited)
    assert "on its way" in kernel("h.output")


def test_buttons_are_there_only_where_somebody_is(kernel: Kernel) -> None:
    assert "buttons" in kernel(CELL)
    assert "buttons" not in kernel("os.environ['DURABLE_NB_HEADLESS'] = '1'\nh.show()")
    assert "buttons" in kernel("%config DurableMagics.headless = False\nh.show()")


def test_interrupting_a_model_call_ends_the_cell_and_leaves_the_run_resumable(
    kernel: Kernel, folder: Path
) -> None:
    kernel("bot = bot_with(delay=30)")
    error, seconds = kernel.interrupt_while(CELL, doing="running")
    assert error == "KeyboardInterrupt"
    assert seconds < 20  # of the 30 that the model takes
    kernel("bot = bot_with()")
    assert "went on from there" in kernel(CELL)
    assert "completed" in kernel("%durable approve refund-1042")
    assert (folder / "ledger").read_text() == "1042 500\n"


SPEAKING = """
import asyncio
from durable_nb import Message, Reply
from durable_nb.llm.stream import is_heard, tell

class Speaking:
    async def complete(self, messages, tools):
        tell("It is on its")
        print("heard" if is_heard() else "unheard", flush=True)
        if is_heard():
            await asyncio.sleep(3600)
        return Reply(Message("assistant", "Done."))

bot = Agent("refund-bot", Speaking())
"""


def test_interrupting_a_reply_that_comes_ends_the_cell_and_takes_its_text_away(
    kernel: Kernel,
) -> None:
    kernel(SPEAKING)
    message = kernel.start(CELL)
    shown = kernel.outputs_of(message, until="It is on its")
    time.sleep(0.5)  # an interrupt between two cells is nobody's
    kernel.manager.interrupt_kernel()
    after = kernel.outputs_of(message)
    (error,) = [each["ename"] for each in after if each["type"] == "error"]
    assert error == "KeyboardInterrupt"
    (live,) = [each for each in shown if "It is on its" in str(each.get("data"))]
    name = live["transient"]["display_id"]
    erased = [each["data"] for each in after if each.get("transient", {}).get("display_id") == name]
    assert erased[-1] == {}
    assert "stopped by you" in "\n".join(texts(after))
    assert "%durable resume refund-1042" in "\n".join(texts(after))


def test_interrupting_a_tool_stops_it_where_it_is(kernel: Kernel, folder: Path) -> None:
    kernel(
        """
import time
slow = True
def refund(order: str, amount: int) -> str:
    "Pay an order back."
    if slow:
        print("in the tool", flush=True)
        time.sleep(30)
    with ledger.open("a") as lines:
        lines.write(f"{order} {amount}\\n")
    return "paid"
bot = bot_with()
"""
    )
    error, seconds = kernel.interrupt_while(CELL, doing="in the tool")
    assert error == "KeyboardInterrupt"
    assert seconds < 20  # of the 30 that the tool takes
    assert not (folder / "ledger").exists()
    assert "crashed" in kernel("s = %durable show refund-1042\ns.status")
    kernel("slow = False")
    assert "was run again with its saved arguments" in kernel(CELL)
    assert (folder / "ledger").read_text() == "1042 500\n"


def test_after_a_restart_what_waits_is_listed_and_nothing_runs(
    kernel: Kernel, folder: Path
) -> None:
    kernel(CELL)
    kernel.close()
    again = Kernel(folder)
    try:
        assert "1 run · 1 waits for you" in again("%load_ext durable_nb")
        assert "no agent 'refund-bot' is defined here" in again("%durable pending")
        again(AGENT)
        shown = again("%durable pending")
        assert "waiting for you" in shown
        assert "buttons" in shown
        assert "0" in again("bot.llm.asked")
        assert not (folder / "ledger").exists()
        click = (
            "from ipywidgets.widgets.widget import _instances\n"
            "[b.click() for b in list(_instances.values()) "
            "if getattr(b, 'description', '') == 'Approve']\n"
            "h = %durable show refund-1042\nh.wait(60).output"
        )
        assert "on its way" in again(click)
        assert (folder / "ledger").read_text() == "1042 500\n"
    finally:
        again.close()


def notebook_of(*cells: str) -> nbformat.NotebookNode:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    return book


def executed(folder: Path, *cells: str) -> nbformat.NotebookNode:
    book = notebook_of(*cells)
    NotebookClient(book, timeout=60, resources={"metadata": {"path": str(folder)}}).execute()
    return book


def test_with_nobody_there_a_cell_shows_its_pause_as_text_and_html_and_ends(folder: Path) -> None:
    book = executed(folder, AGENT, CELL, "1 + 1")
    (card,) = book.cells[1].outputs
    assert set(card.data) == {"text/html", "text/plain"}
    assert "%durable approve refund-1042 --pause 3" in card.data["text/plain"]
    assert book.cells[2].outputs[0].data["text/plain"] == "2"
    assert "widgets" not in book.metadata
    assert not (folder / "ledger").exists()


def test_with_nobody_there_stop_raises(folder: Path) -> None:
    stop = CELL.replace("-o h", "--on-pause stop")
    with pytest.raises(CellExecutionError, match="RunPaused"):
        executed(folder, AGENT, stop, "1 + 1")


@pytest.mark.parametrize(("policy", "code"), [("continue", 0), ("stop", 1)])
def test_nbconvert_says_by_its_exit_code_whether_it_stopped(
    folder: Path, policy: str, code: int
) -> None:
    cell = CELL.replace("-o h", f"--on-pause {policy}")
    nbformat.write(notebook_of(AGENT, cell), folder / "book.ipynb")
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--execute", "book.ipynb"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100)
    assert done.returncode == code, done.stderr
    if code == 0:  # and what it wrote can be read without a kernel
        page = (folder / "book.html").read_text()
        assert "waiting for you" in page
        assert "%durable approve refund-1042 --pause 3" in page
        assert "widget-view" not in page
    else:
        assert "RunPaused" in done.stderr
