"""The inspector's buttons: pages, fork, cancel, compare; what a click refuses is on the card."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from durable_nb import Agent, Checkpointer, ScriptedModel, call, interrupt
from tests.notebook.conftest import ANSWER, Notebook, Ran, eventually
from tests.notebook.test_clicks import button, click, widgets
from tests.support.ledger import Ledger

CELL = "%%durable bot --id refund-1042 -o h\nRefund order 1042\n"
SHOW = "%durable show refund-1042"


@pytest.fixture
def notebook(notebook: Notebook) -> Notebook:
    """Somebody is there."""
    notebook("%config DurableMagics.headless = False")
    return notebook


@pytest.fixture
def shown(notebook: Notebook, bot: Agent) -> Ran:
    """The inspector of run refund-1042, which waits at 3."""
    notebook(CELL)
    return notebook(SHOW)


def choice(ran: Ran, name: str) -> Any:
    """The widget of that name that the cell shows."""
    (found,) = [each for each in widgets(ran) if getattr(each, "description", "") == name]
    return found


def fork(notebook: Notebook, ran: Ran, execution_id: str) -> None:
    """Click, and wait until the fork of that id waits or is over."""

    def act() -> None:
        button(ran, "Fork").click()
        desk = notebook.shell.magics_manager.registry["DurableMagics"].desk
        assert desk.run(execution_id).wait(60)

    notebook.while_capturing(act)


def choose(notebook: Notebook, ran: Ran, name: str, number: int) -> None:
    """Choose the step of that number."""
    widget = choice(ran, name)
    (place,) = [place for _, place in widget.options if place[1] == number]
    notebook.while_capturing(lambda: setattr(widget, "value", place))


def cards(ran: Ran) -> list[str]:
    return [each["text/plain"] for each in ran.shown if "text/html" in each]


def test_a_fork_is_made_at_the_chosen_step_and_has_a_card_below(
    notebook: Notebook, shown: Ran, store: Checkpointer, effects: Ledger
) -> None:
    before = store.list("refund-1042")
    choose(notebook, shown, "Fork at step", 2)
    fork(notebook, shown, "refund-1042-fork-2")
    parent, below = cards(shown)
    assert "%durable show refund-1042-fork-2 (fork, after entry 2)" in parent
    assert below.startswith("● waiting for you · refund-1042-fork-2")
    assert "Forked from refund-1042 at step 2." in below
    assert "What it does may happen a second time" in below
    assert store.list("refund-1042") == before
    assert store.branches("refund-1042") == [("refund-1042-fork-2", 2)]


def test_the_fork_below_is_approved_on_its_own_card(
    notebook: Notebook, shown: Ran, store: Checkpointer, effects: Ledger
) -> None:
    choose(notebook, shown, "Fork at step", 3)
    fork(notebook, shown, "refund-1042-fork-3")
    below = [each for each in widgets(shown) if getattr(each, "description", "") == "Approve"][-1]
    eventually(lambda: not below.disabled)
    desk = notebook.shell.magics_manager.registry["DurableMagics"].desk
    below.click()
    assert desk.run("refund-1042-fork-3").wait(60)
    assert store.get_last("refund-1042-fork-3").status == "completed"
    assert effects.lines == ["1042 500"]
    assert store.get_last("refund-1042").status == "interrupted"


def test_each_click_makes_a_fork_and_the_newest_is_shown(
    notebook: Notebook, shown: Ran, store: Checkpointer
) -> None:
    choose(notebook, shown, "Fork at step", 3)
    fork(notebook, shown, "refund-1042-fork-3")
    fork(notebook, shown, "refund-1042-fork-3-2")
    names = [each.execution_id for each in store.branches("refund-1042")]
    assert names == ["refund-1042-fork-3", "refund-1042-fork-3-2"]
    _, below = cards(shown)
    assert below.startswith("● waiting for you · refund-1042-fork-3-2")


def test_a_fork_that_is_refused_says_so_on_the_card_and_nothing_is_made(
    notebook: Notebook, shown: Ran, bot: Agent, store: Checkpointer
) -> None:
    notebook.names["bot"] = Agent("refund-bot", bot.llm)
    choose(notebook, shown, "Fork at step", 2)
    click(notebook, button(shown, "Fork"))
    assert "MissingTool" in cards(shown)[0]
    assert store.branches("refund-1042") == []


def test_what_escapes_a_fork_lands_on_its_card(notebook: Notebook) -> None:
    llm = ScriptedModel(["One.", "Two."])
    notebook.names["bot"] = Agent("bot", llm)
    notebook("%%durable bot --id r -o h\ngo\n")
    notebook.names["bot"] = Agent("bot", ScriptedModel([RuntimeError("503"), "Three."]))
    ran = notebook("%durable show r")
    fork(notebook, ran, "r-fork-1")
    assert cards(ran)[1].startswith("✗ failed · r-fork-1")
    assert "RuntimeError: 503" in cards(ran)[1]
    assert cards(ran)[0].startswith("✓ completed · r ")


def test_a_fork_keeps_no_cell_waiting(notebook: Notebook) -> None:
    go_on = threading.Event()

    def work() -> str:
        """Work."""
        assert go_on.wait(60)
        return "done"

    go_on.set()
    notebook.names["bot"] = Agent("bot", ScriptedModel([call("work"), "Done."]), [work])
    notebook("%%durable bot --id r -o h\ngo\n")
    ran = notebook("%durable show r --step 2")
    go_on.clear()
    choose(notebook, ran, "Fork at step", 2)
    notebook.while_capturing(button(ran, "Fork").click)
    assert notebook("1 + 1").value == 2
    live = notebook("f = %durable show r-fork-2\nf.status")
    assert live.value == "running"
    assert "in flight" in cards(live)[0]
    go_on.set()
    assert notebook("f.wait(60).output").value == "Done."


def test_a_run_is_cancelled_when_that_is_said_twice(
    notebook: Notebook, shown: Ran, store: Checkpointer
) -> None:
    ask = button(shown, "Cancel the run")
    notebook.while_capturing(ask.click)
    assert store.get_last("refund-1042").status == "interrupted"
    yes = button(shown, "Yes, cancel refund-1042")
    assert "refund-1042" in yes.tooltip
    notebook.while_capturing(yes.click)
    assert cards(shown)[0].startswith("■ cancelled · refund-1042")
    assert store.get_last("refund-1042").status == "cancelled"
    names = [getattr(each, "description", "") for each in widgets(shown)]
    assert not {"Cancel the run", "Keep it", "Approve"} & set(names)


def test_a_double_click_on_cancel_cancels_nothing(
    notebook: Notebook, shown: Ran, store: Checkpointer
) -> None:
    ask = button(shown, "Cancel the run")
    notebook.while_capturing(ask.click)
    notebook.while_capturing(ask.click)
    keep = button(shown, "Keep it")
    row = next(each for each in widgets(shown) if keep in getattr(each, "children", ()))
    assert row.children[0] is keep  # where the first button was
    notebook.while_capturing(keep.click)
    assert button(shown, "Cancel the run")
    assert store.get_last("refund-1042").status == "interrupted"


def test_a_run_that_a_click_drives_is_stopped_by_cancel(
    notebook: Notebook, store: Checkpointer
) -> None:
    at_work, go_on = threading.Event(), threading.Event()

    def work() -> str:
        """Ask, then work."""
        interrupt("sure?")
        at_work.set()
        assert go_on.wait(60)
        return "done"

    llm = ScriptedModel([call("work"), "Done."])
    notebook.names["bot"] = Agent("bot", llm, [work])
    ran = notebook("%%durable bot --id r -o h\ngo\n")
    notebook.while_capturing(button(ran, "Approve").click)
    assert at_work.wait(60)
    inspector = notebook("%durable show r")
    notebook.while_capturing(button(inspector, "Cancel the run").click)
    notebook.while_capturing(button(inspector, "Yes, cancel r").click)
    go_on.set()
    notebook.while_capturing(lambda: notebook.names["h"].wait(60))
    assert store.get_last("r").status == "cancelled"
    assert cards(inspector)[0].startswith("■ cancelled · r")
    assert llm.asked == 1


def test_two_steps_are_compared_below(notebook: Notebook, shown: Ran) -> None:
    choose(notebook, shown, "Compare step", 2)
    choose(notebook, shown, "with", 3)
    assert choice(shown, "To copy").value == "%durable diff refund-1042 2 3"
    click(notebook, button(shown, "Compare"))
    said = cards(shown)[-1]
    assert said.startswith("≠ compared · refund-1042 · step 2")
    assert "waits for" in said
    choose(notebook, shown, "Compare step", 1)
    click(notebook, button(shown, "Compare"))
    assert "step 1" in cards(shown)[-1]
    assert len(cards(shown)) == 2


def test_a_fork_is_compared_with_its_parents_newest_step(notebook: Notebook, bot: Agent) -> None:
    notebook(CELL)
    notebook("%durable approve refund-1042 --set amount=90")
    notebook("%durable fork refund-1042 --at 2 --set amount=40 --id small")
    ran = notebook("%durable show small")
    choose(notebook, ran, "with", 0)
    assert choice(ran, "To copy").value == "%durable diff small 3 6 --with refund-1042"
    choose(notebook, ran, "Compare step", 5)
    click(notebook, button(ran, "Compare"))
    assert "message 3 (tool), changed" in cards(ran)[-1]


def test_pages_are_turned_where_there_are_several(notebook: Notebook) -> None:
    def work() -> str:
        """Work."""
        return "done"

    llm = ScriptedModel([*[call("work")] * 60, "Done."])
    notebook.names["bot"] = Agent("bot", llm, [work], max_turns=61)
    notebook("%%durable bot --id r -o h\ngo\n")
    ran = notebook("%durable show r")
    older, newer = button(ran, "◂ Older steps"), button(ran, "Newer steps ▸")
    assert "steps 73–122 of 122, page 1 of 3" in cards(ran)[0]
    assert (older.disabled, newer.disabled) == (False, True)
    notebook.while_capturing(older.click)
    assert "steps 23–72 of 122, page 2 of 3" in cards(ran)[0]
    assert [place[1] for _, place in choice(ran, "Fork at step").options] == list(range(23, 73))
    notebook.while_capturing(older.click)
    assert "steps 1–22 of 122, page 3 of 3" in cards(ran)[0]
    assert (older.disabled, newer.disabled) == (True, False)
    notebook.while_capturing(newer.click)
    assert "page 2 of 3" in cards(ran)[0]


def test_a_dead_run_is_resumed_and_the_timeline_follows(notebook: Notebook) -> None:
    deaths = [KeyboardInterrupt()]

    def die() -> str:
        """Die once."""
        if deaths:
            raise deaths.pop()
        return "alive"

    notebook.names["bot"] = Agent("bot", ScriptedModel([call("die"), "Done."]), [die])
    notebook("%%durable bot --id dead -o h\ngo\n")
    notebook.names["h"] = notebook("%durable show dead").value
    ran = notebook("%durable show dead")
    click(notebook, button(ran, "Resume"))
    assert cards(ran)[0].startswith("✓ completed · dead")
    assert "5 steps" in cards(ran)[0]
    assert [place[1] for _, place in choice(ran, "Fork at step").options] == [1, 2, 3, 4]


def test_every_button_says_what_it_does_to_which_run(shown: Ran) -> None:
    from ipywidgets import Button, Dropdown

    named = [each for each in widgets(shown) if isinstance(each, Button | Dropdown)]
    assert len(named) >= 8
    for each in named:
        assert each.description
        if each.description not in ("Approve", "Reject"):
            assert "refund-1042" in (each.tooltip or ""), each.description


def test_what_the_widgets_hold_of_others_is_text(notebook: Notebook) -> None:
    evil = "<script>alert(1)</script> $$x$$"

    def work(what: str) -> str:
        """Work."""
        return "done"

    llm = ScriptedModel([call("work", what=evil), "Done."])
    notebook.names["bot"] = Agent("bot", llm, [work])
    notebook("%%durable bot --id r\ngo\n")
    ran = notebook("%durable show r")
    choose(notebook, ran, "Fork at step", 2)
    (says,) = [each for each in widgets(ran) if type(each).__name__ == "HTML"]
    assert "<script" not in says.value
    assert "$$" not in says.value
    assert "&lt;script&gt;" in says.value


def test_with_nobody_there_nothing_but_the_card_is_shown(notebook: Notebook, shown: Ran) -> None:
    notebook("%config DurableMagics.headless = True")
    ran = notebook(SHOW)
    assert len(ran.ids) == 1
    assert "%durable approve refund-1042 --pause 3" in ran.card
    assert "%durable fork refund-1042 --at 1" in ran.card


def test_a_run_that_is_gone_says_so_wherever_it_was_shown(
    notebook: Notebook, bot: Agent, store: Checkpointer
) -> None:
    notebook(CELL)
    notebook("%durable approve refund-1042")
    ran = notebook(SHOW)
    assert ANSWER in cards(ran)[0]
    store.delete_execution("refund-1042")
    click(notebook, button(ran, "Fork"))
    assert "UnknownExecution" in cards(ran)[0]


def test_where_several_agents_have_the_runs_name_what_is_typed_says_which(
    notebook: Notebook, bot: Agent, effects: Ledger
) -> None:
    bot.run("Refund order 1042", execution_id="refund-1042")
    notebook.names["twin"] = bot.__class__("refund-bot", ScriptedModel([ANSWER]), bot.tools)
    ran = notebook(SHOW)
    assert choice(ran, "To copy").value.endswith(" --agent bot")
    assert "%durable approve refund-1042 --pause 3 --agent bot   (to approve" in ran.card
    done = notebook("%durable approve refund-1042 --pause 3 --agent bot")
    assert done.value.output == ANSWER
    assert effects.lines == ["1042 500"]


def test_the_variable_that_drove_a_run_here_is_the_one_that_goes_on_with_it(
    notebook: Notebook, shown: Ran
) -> None:
    notebook('twin = type(bot)("refund-bot", bot.llm, bot.tools)')
    ran = notebook(SHOW)
    assert "--agent" not in ran.card + choice(ran, "To copy").value
    assert button(ran, "Approve")
    fork(notebook, ran, "refund-1042-fork-3")
    assert cards(ran)[1].startswith("● waiting for you · refund-1042-fork-3")
