"""One notebook in ipykernel 6, 7.3 and the installed one, which differ in when a click arrives.

6 holds clicks back while a cell runs or awaits; 7.0 to 7.3 call them on another thread beside the
running cell; 7.4 lets them through while a cell awaits. What a user is promised is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from tests.kernels.frontend import Cell, FrontEnd

_numbers = count(1)
AGENT = """
import asyncio, threading, time
from pathlib import Path
from durable_nb import Agent, Resume, ScriptedModel, call, interrupt

ledger = Path("ledger-{id}")
def charge(line):
    with ledger.open("a") as lines:
        lines.write(line + "\\n")

def refund(order: str, amount: int) -> str:
    "Pay an order back."
    if not interrupt("manager_approval", {{"order": order}}).approved:
        return "not paid"
    charge(f"{{order}} {{amount}}")
    return "paid"

bot = Agent("bot-{id}", ScriptedModel([call("refund", order="1042", amount=500), "Done."]), [refund])
"""


class Run:
    """A run of its own in the kernel that the tests share, and its card."""

    def __init__(self, front: FrontEnd, *more: str) -> None:
        self.front = front
        self.id = f"run-{next(_numbers)}"
        front.run(AGENT.format(id=self.id) + "\n".join(more))

    def start(self) -> Cell:
        return self.front.start(f"%%durable bot --id {self.id} -o h\nRefund order 1042")

    def pause(self) -> Cell:
        """Run it until it waits for a person."""
        cell = self.start()
        self.front.until(lambda: cell.done)
        assert "waiting for you" in cell.text
        return cell

    @property
    def charges(self) -> list[str]:
        said = self.front.run("print(ledger.read_text() if ledger.exists() else '', end='')")
        return said.printed.splitlines()


def test_the_kernel_is_the_one_that_is_meant(front: FrontEnd, version: str) -> None:
    said = front.run("import ipykernel; print(ipykernel.__version__)").printed.strip()
    assert said == version or (version == "installed" and said.split(".") >= ["7", "4"])


def test_a_cell_that_pauses_ends_and_the_next_one_runs(front: FrontEnd) -> None:
    run = Run(front)
    card = run.pause()
    assert set(front.buttons(card)) == {"Approve", "Reject", "Edit…"}
    assert front.run("print(1 + 1, h.status)").printed == "2 paused\n"
    assert run.charges == []


def test_a_click_approves_and_leaves_nothing_to_click(front: FrontEnd) -> None:
    run = Run(front)
    card = run.pause()
    front.click(card, "Approve")
    front.until(lambda: "✓ completed" in card.text and not card.views)
    assert run.charges == ["1042 500"]
    assert front.run("print(h.output)").printed == "Done.\n"


def test_the_second_half_of_a_double_click_is_not_another_decision(front: FrontEnd) -> None:
    run = Run(front)
    card = run.pause()
    approve = front.buttons(card)["Approve"]
    front.press(approve)
    front.press(approve)
    front.until(lambda: "✓ completed" in card.text and not card.views)
    assert run.charges == ["1042 500"]
    assert "AlreadyResumed" not in card.text


def test_a_rejection_takes_the_note_that_was_typed_with_it(front: FrontEnd) -> None:
    run = Run(front)
    card = run.pause()
    front.type_note(card, "not in this quarter")
    front.click(card, "Reject")
    front.until(lambda: "✓ completed" in card.text and not card.views)
    assert run.charges == []
    told = front.run("print([m.content for m in h.messages if m.role == 'tool'])")
    assert "not in this quarter]" in told.printed


def test_what_is_typed_approves_too(front: FrontEnd) -> None:
    run = Run(front)
    card = run.pause()
    typed = front.run(f"%durable approve {run.id} --pause 3")
    assert "✓ completed" in typed.text
    assert "✓ completed" in card.text
    assert not card.views
    assert run.charges == ["1042 500"]


SLOW = """
begun, go_on = threading.Event(), threading.Event()
def refund(order: str, amount: int) -> str:
    "Pay an order back, and say so while it lasts."
    interrupt("manager_approval", {"order": order})
    begun.set()
    print("said by the tool", flush=True)
    assert go_on.wait(60)
    charge(order)
    return "paid"
bot = Agent(bot.name, bot.llm, [refund])
"""


def test_a_click_does_not_keep_the_next_cell_waiting(front: FrontEnd) -> None:
    run = Run(front, SLOW)
    card = run.pause()
    front.click(card, "Approve")
    front.run("assert begun.wait(60)")
    assert front.run("print(h.status)").printed == "running\n"
    front.run("go_on.set()")
    assert front.run("print(h.wait(60).status)").printed == "completed\n"
    front.until(lambda: "✓ completed" in card.text)
    assert run.charges == ["1042"]


def test_what_a_run_in_the_background_says_is_in_no_other_cell(front: FrontEnd) -> None:
    run = Run(front, SLOW)
    card = run.pause()
    front.click(card, "Approve")
    front.run("assert begun.wait(60)")
    busy = front.run("go_on.set()\nh.wait(60)\nprint('mine')")
    front.until(lambda: "✓ completed" in card.text)
    assert busy.text == "mine\n"
    assert run.charges == ["1042"]


def test_what_raises_behind_a_click_is_on_the_card(front: FrontEnd) -> None:
    run = Run(front, "script = [call('refund', order='1042', amount=1), OSError('503'), 'Done.']")
    front.run("bot = Agent(bot.name, ScriptedModel(script), [refund])")
    card = run.pause()
    front.click(card, "Approve")
    front.until(lambda: "OSError: 503" in card.text and card.views)
    front.click(card, "Resume")
    front.until(lambda: "✓ completed" in card.text and not card.views)
    assert run.charges == ["1042 1"]


def test_a_click_while_a_cell_runs_is_one_decision(front: FrontEnd) -> None:
    """ipykernel 7.0 to 7.3 call it beside the cell; the others when the cell is over."""
    run = Run(front)
    card = run.pause()
    approve = front.buttons(card)["Approve"]
    busy = front.start("print('busy', flush=True)\nfor _ in range(20): time.sleep(0.05); h.status")
    front.until(lambda: "busy" in busy.printed)
    front.press(approve)
    front.press(approve)
    front.until(lambda: busy.done and "✓ completed" in card.text and not card.views)
    assert not busy.errors
    assert busy.text == "busy\n"
    assert run.charges == ["1042 500"]


def test_a_click_and_a_typed_decision_at_once_are_one_decision(front: FrontEnd) -> None:
    run = Run(front)
    card = run.pause()
    approve = front.buttons(card)["Approve"]
    typed = front.start(f"%durable approve {run.id} --pause 3")
    front.press(approve)
    front.until(lambda: typed.done and "✓ completed" in card.text and not card.views)
    assert typed.errors in ([], ["AlreadyResumed"], ["RunIsLive"])
    assert run.charges == ["1042 500"]


def test_a_cell_that_awaits_the_run_ends_with_the_click_or_says_that_none_will_come(
    front: FrontEnd, version: str
) -> None:
    run = Run(front)
    card = run.pause()
    waiting = front.start("print('waits', flush=True)\nr = await h.wait()\nprint(r.output)")
    front.until(lambda: waiting.done or ("waits" in waiting.printed and front.buttons(waiting)))
    if version.startswith("6"):
        front.until(lambda: waiting.done)
        assert waiting.errors == ["RunPaused"]
        front.click(waiting, "Approve")
        front.until(lambda: "✓ completed" in waiting.text)
    else:
        front.click(waiting, "Approve")
        front.until(lambda: waiting.done)
        assert not waiting.errors
        assert "Done." in waiting.printed
    assert not card.views
    assert run.charges == ["1042 500"]


ASKED = """
def slow(messages):
    print("asked", flush=True)
    time.sleep(600)
ready, bot = bot, Agent(bot.name, ScriptedModel(slow), [refund])
"""
WORKS = """
def busy(order: str, amount: int) -> str:
    "Work for long."
    print("asked", flush=True)
    time.sleep(600)
    return "paid"
busy.__name__ = "refund"
ready, bot = bot, Agent(bot.name, bot.llm, [busy])
"""


@pytest.mark.parametrize("doing", [ASKED, WORKS], ids=["model", "tool"])
def test_an_interrupt_ends_the_cell_and_leaves_the_run_resumable(
    front: FrontEnd, doing: str
) -> None:
    run = Run(front, doing)
    cell = run.start()
    front.until(lambda: "asked" in cell.printed)
    front.interrupt(cell)
    assert cell.errors == ["KeyboardInterrupt"]
    assert f"%durable resume {run.id}" in cell.text
    front.run("bot = ready")
    run.pause()
    assert run.charges == []


def test_an_interrupt_ends_a_wait_for_a_click(front: FrontEnd, version: str) -> None:
    if version.startswith("6"):
        pytest.skip("ipykernel 6 refuses to wait")
    run = Run(front)
    run.pause()
    waiting = front.start("await h.wait()")
    front.until(lambda: front.buttons(waiting))
    front.interrupt(waiting)
    assert waiting.errors in (["KeyboardInterrupt"], ["CancelledError"])  # as ipykernel words it
    front.click(waiting, "Approve")
    front.until(lambda: "✓ completed" in waiting.text)
    assert run.charges == ["1042 500"]


SPEAKING = """
from durable_nb import Message, Reply
from durable_nb.llm.stream import tell
class Speaking:
    async def complete(self, messages, tools):
        said = ""
        for line in range(100):
            said += f"line {line}\\n"
            tell(said)
            await asyncio.sleep(0.01)
        return Reply(Message("assistant", said))
bot = Agent(bot.name, Speaking())
"""


def test_a_hundred_lines_of_a_reply_arrive_in_order_on_their_card(front: FrontEnd) -> None:
    run = Run(front, SPEAKING)
    heard: list[str] = []
    cell = run.start()

    def listen() -> bool:
        heard.extend(text for text in cell.text.splitlines() if text.startswith("line"))
        return cell.done

    front.until(listen)
    assert not cell.errors
    assert "completed" in cell.text
    lines = front.run("print(h.output)").printed.splitlines()
    assert lines[:100] == [f"line {number}" for number in range(100)]


def test_every_method_of_a_handle_works_on_a_thread_of_its_own(front: FrontEnd) -> None:
    run = Run(front, "failed = []")
    run.pause()
    front.run("""
def look():
    try:
        h.status, h.pending, h.steps, h.messages, h.diff(1, 2), h.wait(1), repr(h)
        h.approve(by="a thread"), h.output, h.fork(1)
    except BaseException as error:
        failed.append(error)
thread = threading.Thread(target=look)
thread.start(); thread.join(60)
""")
    assert front.run("print(failed, h.status)").printed == "[] completed\n"
    assert run.charges == ["1042 500"]


def test_after_a_restart_what_waits_is_there_and_nothing_has_run(
    front: FrontEnd, opened: Callable[[], FrontEnd]
) -> None:
    run = Run(front)
    run.pause()
    again = opened()
    assert "for you" in again.run("%load_ext durable_nb").text
    again.run(AGENT.format(id=run.id))
    card = again.run(f"h = %durable show {run.id}")
    assert again.run("print(bot.llm.asked)").printed == "0\n"
    again.click(card, "Approve")
    again.until(lambda: "✓ completed" in card.text)
    assert run.charges == ["1042 500"]


def test_two_kernels_decide_runs_of_their_own(
    front: FrontEnd, opened: Callable[[], FrontEnd]
) -> None:
    other = opened()
    other.run("%load_ext durable_nb")
    runs = Run(front), Run(other)
    cards = [run.pause() for run in runs]
    for run, card in zip(runs, cards, strict=True):
        run.front.click(card, "Approve")
    for run, card in zip(runs, cards, strict=True):
        run.front.until(lambda card=card: "✓ completed" in card.text and not card.views)
        assert run.charges == ["1042 500"]
