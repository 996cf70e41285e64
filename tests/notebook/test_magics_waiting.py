"""A cell that waits for a person: `await handle.wait()`, and `--on-pause wait`."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from ipywidgets import Button, Widget
from ipywidgets.widgets.widget import _instances

from durable_nb import (
    Agent,
    Checkpointer,
    MemoryCheckpointer,
    Resume,
    RunIsLive,
    RunPaused,
    ScriptedModel,
    call,
    interrupt,
)
from durable_nb.notebook.waiting import Watch
from tests.notebook.conftest import ANSWER, Notebook
from tests.support.ledger import Ledger

CELL = "%%durable bot --id refund-1042 -o h\nRefund order 1042\n"


def meanwhile(act: Callable[[], object]) -> threading.Timer:
    """Do it soon, in another thread."""
    timer = threading.Timer(0.3, act)
    timer.start()
    return timer


def click(name: str) -> None:
    """Click on the living button of that name."""
    (button,) = [
        each
        for each in list(_instances.values())
        if isinstance(each, Button) and each.description == name and not each.disabled
    ]
    button.click()


@pytest.fixture(autouse=True)
def no_other_buttons() -> None:
    """Those of earlier tests are gone."""
    Widget.close_all()


def test_awaiting_ends_when_somebody_decides_elsewhere(
    notebook: Notebook, bot: Agent, effects: Ledger
) -> None:
    notebook(CELL)
    approval = Resume(approved=True, by="alice")
    timer = meanwhile(lambda: bot.resume("refund-1042", resume_value=approval))
    ran = notebook("await h.wait(60)")
    timer.join()
    assert ran.error is None
    assert (ran.value.status, ran.value.output) == ("completed", ANSWER)
    assert "approved by alice" in ran.card
    assert effects.lines == ["1042 500"]


def test_awaiting_ends_with_a_click_and_shows_what_to_click(
    notebook: Notebook, bot: Agent, effects: Ledger
) -> None:
    notebook("%config DurableMagics.headless = False")
    notebook(CELL)
    timer = meanwhile(lambda: click("Approve"))
    ran = notebook("(await h.wait(60)).status")
    timer.join()
    assert ran.value == "completed"
    assert "completed" in ran.card
    assert effects.lines == ["1042 500"]


def test_awaiting_a_run_that_is_over_ends_at_once(notebook: Notebook) -> None:
    notebook.names["bot"] = Agent("bot", ScriptedModel([ANSWER]))
    notebook("%%durable bot --id a -o h\nhello")
    assert notebook("(await h.wait()).output").value == ANSWER


def test_awaiting_goes_on_through_every_pause(notebook: Notebook, effects: Ledger) -> None:
    def refund(order: str) -> str:
        """Pay an order back."""
        for who in ("manager", "vp"):
            interrupt(who, {"order": order})
        effects.add(order)
        return "paid"

    bot = notebook.names["bot"] = Agent(
        "refund-bot", ScriptedModel([call("refund", order="1042"), ANSWER]), [refund]
    )
    notebook(CELL)

    def decide_twice() -> None:
        for pause in (3, 5):
            bot.resume("refund-1042", resume_value=Resume(approved=True), pause=pause)

    timer = meanwhile(decide_twice)
    assert notebook("(await h.wait(60)).status").value == "completed"
    timer.join()
    assert effects.lines == ["1042"]


def test_where_nobody_can_click_a_wait_without_an_end_is_refused_at_once(
    notebook: Notebook, bot: Agent
) -> None:
    notebook(CELL)
    error = notebook("await h.wait()").error
    assert isinstance(error, RunPaused)
    assert "nobody is here to click" in str(error)
    assert "wait(60)" in str(error)
    assert len(error._render_traceback_()) == 1


def test_awaiting_ends_with_an_error_when_the_time_is_up(notebook: Notebook, bot: Agent) -> None:
    notebook(CELL)
    error = notebook("await h.wait(0.2)").error
    assert isinstance(error, RunPaused)
    assert "nobody decided within 0.2 s; %durable approve refund-1042 --pause 3" in str(error)


def test_waiting_without_await_does_not_wait_for_a_person(notebook: Notebook, bot: Agent) -> None:
    notebook(CELL)
    assert notebook("h.wait() is h").value is True
    assert notebook("h.wait(5).status").value == "paused"


def test_a_wait_for_a_run_that_somebody_drives_says_that_it_goes_on(notebook: Notebook) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def refund(order: str) -> str:
        """Pay an order back."""
        inside.set()
        assert go_on.wait(60)
        return "paid"

    llm = ScriptedModel([call("refund", order="1042"), ANSWER])
    bot = notebook.names["bot"] = Agent("refund-bot", llm, [refund])
    other = threading.Thread(
        target=lambda: bot.run("Refund order 1042", execution_id="refund-1042")
    )
    other.start()
    assert inside.wait(60)
    notebook("h = %durable show refund-1042")
    late = notebook("await h.wait(0.2)").error
    cell = notebook(CELL.replace("-o h", "--on-pause wait --timeout 0.2")).error
    timer = meanwhile(go_on.set)
    assert notebook("(await h.wait(60)).output").value == ANSWER
    timer.join()
    other.join()
    for error in (late, cell):
        assert isinstance(error, RunIsLive)
        assert "still works after 0.2 s; it goes on by itself" in str(error)


def test_the_handle_is_there_also_where_a_pause_stopped_the_cell(
    notebook: Notebook, bot: Agent, effects: Ledger
) -> None:
    for waits in ("--on-pause stop", "--on-pause wait --timeout 0.2"):
        notebook.names.pop("h", None)
        stopped = notebook(CELL.replace("-o h", f"-o h {waits}"))
        assert isinstance(stopped.error, RunPaused)
        assert notebook("h.status").value == "paused"
    assert notebook("h.approve().output").value == ANSWER
    assert effects.lines == ["1042 500"]


@pytest.mark.parametrize("memory", [False, True])
def test_a_store_is_looked_at_again_only_when_something_happened(
    notebook: Notebook, store: Checkpointer, memory: bool
) -> None:
    kept = MemoryCheckpointer() if memory else store
    agent = Agent("bot", ScriptedModel(["hello"]), checkpointer=kept)
    agent.run("hello")
    watch = Watch(kept)
    assert [watch.changed() for _ in range(3)] == [True, False, False]
    agent.run("hello")
    assert [watch.changed() for _ in range(2)] == [True, False]
