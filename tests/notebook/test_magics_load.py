"""`%load_ext` after a restart: what waits and what died is there, with buttons, and nothing runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ipywidgets import Button, Widget
from ipywidgets.widgets.widget import _instances

from durable_nb import Agent, Checkpointer, ScriptedModel, call
from durable_nb.notebook.extension import FEW
from tests.notebook.conftest import ANSWER, Notebook, eventually
from tests.support.ledger import Ledger

RELOAD = "%unload_ext durable_nb\n%load_ext durable_nb"


def text_of(ran: Any) -> str:
    return "\n".join(each.get("text/plain", "") for each in ran.shown)


def living(name: str) -> list[Button]:
    """The buttons of that name that could be clicked."""
    return [
        each
        for each in list(_instances.values())
        if isinstance(each, Button) and each.description == name and not each.disabled
    ]


@pytest.fixture(autouse=True)
def no_other_buttons() -> None:
    """Those of earlier tests are gone."""
    Widget.close_all()


@pytest.fixture
def restarted(notebook: Notebook, bot: Agent) -> Notebook:
    """A run that waits and one that died; then the notebook is as after a restart."""

    def die() -> str:
        """Die."""
        raise KeyboardInterrupt

    bot.run("Refund order 1042", execution_id="refund-1042")
    mortal = Agent("mortal", ScriptedModel([call("die"), "alive"]), [die])
    with pytest.raises(KeyboardInterrupt):
        mortal.run("hello", execution_id="dead")
    del notebook.names["bot"]
    notebook("%unload_ext durable_nb")
    return notebook


def test_loading_lists_what_waits_and_what_died_the_oldest_first(
    restarted: Notebook, store: Checkpointer, effects: Ledger
) -> None:
    before = len(store.list("refund-1042")), len(store.list("dead"))
    ran = restarted("%load_ext durable_nb")
    assert ran.printed.splitlines() == [
        "durable_nb: .durable/runs.sqlite3 · 2 runs · 1 waits for you · 1 died in a step · "
        "%durable pending"
    ]
    shown = text_of(ran)
    assert shown.index("refund-1042") < shown.index("dead")
    assert "no agent 'refund-bot' is defined here" in shown
    assert "no agent 'mortal' is defined here" in shown
    assert effects.lines == []
    assert (len(store.list("refund-1042")), len(store.list("dead"))) == before


def test_the_buttons_come_once_the_agent_is_defined_and_a_click_decides(
    restarted: Notebook, bot: Agent, effects: Ledger
) -> None:
    restarted.names.pop("bot", None)
    restarted.names["kept"] = None
    restarted("%load_ext durable_nb\n%config DurableMagics.headless = False")
    restarted("%reload_ext durable_nb")
    assert living("Approve") == []
    restarted.names["_later"] = bot
    restarted("bot = _later")
    (approve,) = living("Approve")
    assert effects.lines == []
    restarted.while_capturing(approve.click)
    restarted("h = %durable show refund-1042")
    eventually(lambda: restarted.names["h"].status == "completed")
    assert restarted("h.output").value == ANSWER
    assert effects.lines == ["1042 500"]


def test_of_many_the_oldest_few_are_shown_and_how_many_more_there_are(
    notebook: Notebook, bot: Agent
) -> None:
    for number in range(FEW + 12):
        bot.run("Refund order 1042", execution_id=f"r{number:02}")
    shown = text_of(notebook(RELOAD))
    assert "r02" in shown
    assert "r03" not in shown
    assert f"1 to {FEW} of {FEW + 12}" in shown
    assert "%durable pending" in shown


def test_with_nothing_waiting_there_is_one_line_and_nothing_else(notebook: Notebook) -> None:
    Agent("bot", ScriptedModel(["hello"])).run("go", execution_id="a")
    ran = notebook(RELOAD)
    assert ran.printed.splitlines() == ["durable_nb: .durable/runs.sqlite3 · 1 run"]
    assert ran.shown == []


def test_loading_again_and_unloading_leave_nothing_behind(notebook: Notebook) -> None:
    callbacks = notebook.shell.events.callbacks["post_run_cell"]
    before = len(callbacks)
    for line in ("%load_ext durable_nb", "%reload_ext durable_nb", RELOAD):
        assert notebook(line).error is None
        assert len(callbacks) == before
    notebook("%unload_ext durable_nb")
    assert len(callbacks) == before - 1
    assert notebook("%durable").error is not None or "not found" in notebook("%durable").printed


@pytest.mark.parametrize("said", ['timeout = "soon"', "store = 5", "on_pause ="])
def test_a_project_that_cannot_be_read_does_not_keep_the_magics_away(
    notebook: Notebook, bot: Agent, tmp_path: Path, said: str
) -> None:
    bot.run("Refund order 1042", execution_id="a")
    (tmp_path / "pyproject.toml").write_text(f"[tool.durable_nb]\n{said}\n")
    printed = notebook(RELOAD).printed
    assert str(tmp_path / "pyproject.toml") in printed
    (tmp_path / "pyproject.toml").unlink()
    assert notebook("%durable show a").error is None
