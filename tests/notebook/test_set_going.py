"""What a click set going: it is in nobody's way, and can be stopped."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import wait
from typing import Any

import pytest

from durable_nb import Agent, Checkpointer, Resume, ScriptedModel, call, interrupt
from durable_nb.model.entries import Answer, End
from durable_nb.runtime.engine import Stop, background
from tests.notebook.clicking import Clicker, clicker
from tests.notebook.conftest import ANSWER, Notebook, eventually
from tests.support.ledger import Ledger

__all__ = ["clicker"]

CELL = "%%durable bot --id refund-1042 -o h\nRefund order 1042\n"


class Gate:
    """Where the tool of `slow` waits: for ever, or until it is opened."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()
        self.cancelled = threading.Event()

    async def wait(self) -> None:
        self.reached.set()
        try:
            while not self.opened.is_set():
                await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.opened.set()


@pytest.fixture
def slow(notebook: Notebook, gate: Gate, effects: Ledger) -> Agent:
    """The variable `bot`: once approved, its tool waits at the gate before it pays."""

    async def refund(order: str) -> str:
        """Pay an order back."""
        if not interrupt("manager_approval", {"order": order}).approved:
            return "not paid"
        await gate.wait()
        effects.add(order)
        return "paid"

    llm = ScriptedModel([call("refund", order="1042"), ANSWER])
    agent = notebook.names["bot"] = Agent("refund-bot", llm, [refund])
    return agent


def start(notebook: Notebook, clicker: Clicker, gate: Gate) -> None:
    """Approve, and return while the tool is at the gate."""
    button = clicker.find("Approve")
    notebook.while_capturing(button.click)
    assert gate.reached.wait(60)


def test_the_next_cells_run_while_a_click_drives(
    notebook: Notebook, clicker: Clicker, slow: Agent, gate: Gate, effects: Ledger
) -> None:
    clicker.sees(notebook(CELL))
    start(notebook, clicker, gate)
    assert notebook("1 + 1").value == 2
    assert notebook("h.status").value == "running"
    assert "▸ running" in clicker.text
    gate.opened.set()
    assert notebook("h.output").value == ANSWER
    assert effects.lines == ["1042"]


def test_stop_leaves_the_run_to_be_resumed_and_the_card_says_how(
    notebook: Notebook, clicker: Clicker, slow: Agent, gate: Gate, effects: Ledger
) -> None:
    clicker.sees(notebook(CELL))
    start(notebook, clicker, gate)
    assert clicker.buttons == ["Stop"]
    clicker.find("Stop").click()  # the second half of a double click on Approve
    assert not gate.cancelled.is_set()
    clicker.armed("Stop")
    clicker.click("Stop")
    assert gate.cancelled.wait(60)
    assert notebook("h.status").value == "crashed"
    assert "stopped by you" in clicker.text
    assert "%durable resume refund-1042" in clicker.text
    gate.opened.set()
    clicker.armed("Resume")
    clicker.click("Resume")
    assert "✓ completed" in clicker.text
    assert effects.lines == ["1042"]


def test_cancel_stops_what_a_click_started(
    notebook: Notebook,
    clicker: Clicker,
    slow: Agent,
    gate: Gate,
    store: Checkpointer,
    effects: Ledger,
) -> None:
    clicker.sees(notebook(CELL))
    start(notebook, clicker, gate)
    ran = notebook("%durable cancel refund-1042")
    assert gate.cancelled.wait(60)
    assert ran.value.wait(60).status == "cancelled"
    assert "cancelled" in ran.card
    assert clicker.buttons == []
    ends = [row.entry for row in store.list("refund-1042") if isinstance(row.entry, End)]
    assert [end.status for end in ends] == ["cancelled"]
    assert effects.lines == []


def test_a_row_of_the_inbox_shows_what_goes_on_and_can_stop_it(
    notebook: Notebook, clicker: Clicker, slow: Agent, gate: Gate, effects: Ledger
) -> None:
    slow.run("Refund order 1042", execution_id="refund-1042")
    clicker.sees(notebook("%durable pending"))
    start(notebook, clicker, gate)
    assert "running" in clicker.html
    assert clicker.buttons == ["Refresh", "Stop"]
    clicker.armed("Stop")
    clicker.click("Stop")
    assert "stopped by you" in clicker.html
    assert clicker.buttons == ["Refresh", "Resume"]
    assert effects.lines == []


def test_what_a_resume_behind_a_button_raises_is_in_the_row(
    notebook: Notebook, clicker: Clicker, effects: Ledger
) -> None:
    def refund(order: str) -> str:
        """Pay an order back."""
        interrupt("manager_approval")
        return "paid"

    llm = ScriptedModel([call("refund", order="1042"), RuntimeError("503 <b>"), ANSWER])
    agent = notebook.names["bot"] = Agent("refund-bot", llm, [refund])
    agent.run("go", execution_id="refund-1042")
    clicker.sees(notebook("%durable pending"))
    clicker.click("Approve")
    assert "RuntimeError: 503 &lt;b&gt;" in clicker.html
    clicker.armed("Resume")
    clicker.click("Resume")
    assert ANSWER in clicker.html


def test_a_click_while_a_cell_waits_is_the_decision_that_it_waits_for(
    notebook: Notebook, clicker: Clicker, slow: Agent, gate: Gate, effects: Ledger
) -> None:
    clicker.sees(notebook(CELL))
    gate.opened.set()
    approve = clicker.find("Approve")
    elsewhere = threading.Timer(0.3, approve.click)  # some kernels have a thread for clicks
    elsewhere.start()
    ran = notebook("%%durable bot --id refund-1042 --on-pause wait --timeout 60\nRefund order 1042")
    elsewhere.join()
    assert ran.error is None or "refund-1042" in str(ran.error)
    assert notebook("h.wait(60).status").value == "completed"
    assert effects.lines == ["1042"]


def test_clicks_of_many_threads_are_one_decision(
    notebook: Notebook, clicker: Clicker, slow: Agent, gate: Gate, store: Checkpointer
) -> None:
    first, second = notebook(CELL), notebook("%durable pending")
    gate.opened.set()
    buttons = [Clicker(notebook), Clicker(notebook)]
    buttons[0].sees(first)
    buttons[1].sees(second)
    found: list[Any] = [each.find("Approve") for each in buttons] * 4
    barrier = threading.Barrier(len(found))

    def press(button: Any) -> None:
        barrier.wait()
        button.click()

    threads = [threading.Thread(target=press, args=(each,)) for each in found]

    def all_at_once() -> None:
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        notebook.names["h"].wait(60)

    notebook.while_capturing(all_at_once)
    answers = [each for each in store.list("refund-1042") if isinstance(each.entry, Answer)]
    assert len(answers) == 1
    eventually(lambda: store.get_last("refund-1042").status == "completed")


def test_a_click_after_the_run_moved_on_in_another_process_says_what_became_of_it(
    notebook: Notebook, clicker: Clicker, slow: Agent, gate: Gate, effects: Ledger
) -> None:
    clicker.sees(notebook(CELL))
    gate.opened.set()
    slow.resume("refund-1042", resume_value=Resume(approved=True, by="bob"), pause=3)
    clicker.click("Reject")
    assert "AlreadyResumed" in clicker.text
    assert "bob approved pause 3" in clicker.text
    assert "✓ completed" in clicker.text
    assert effects.lines == ["1042"]


def test_whoever_waits_for_what_was_stopped_hears_of_it() -> None:
    def work(stop: Stop) -> None:
        while True:
            stop.check()

    future, stop = background(work)
    stop.ask()
    assert wait([future], timeout=10).done
