"""A run that waits and is damaged is named wherever waiting runs are, and hides none of them."""

from __future__ import annotations

import sqlite3
import time

import pytest

from durable_nb import (
    Agent,
    Checkpointer,
    ScriptedModel,
    StoreCorrupt,
    call,
    interrupt,
    views,
)
from durable_nb.cli import main
from tests.notebook.clicking import Clicker, clicker
from tests.notebook.conftest import Notebook
from tests.support.ledger import Ledger

__all__ = ["clicker"]

DAMAGES = {"a byte": "replace(body, 'manager', 'mbnager')", "its end": "substr(body, 1, 12)"}


def damage(store: Checkpointer, how: str) -> None:
    """Change what the pause of run `broken` has on disk, behind everybody's back."""
    with sqlite3.connect(store.path) as db:  # type: ignore[attr-defined]
        where = "kind = 'pause' and run = (select key from runs where id = 'broken')"
        assert db.execute(f"update entries set body = {how} where {where}").rowcount == 1
    db.close()


@pytest.fixture(params=DAMAGES.values(), ids=DAMAGES)
def damaged(request: pytest.FixtureRequest, bot: Agent, store: Checkpointer) -> Checkpointer:
    """A store where `one`, `broken` and `two` wait, and `over` does not any more."""
    for name in ("one", "broken", "two", "over"):
        bot.run("Refund order 1042", execution_id=name)
    store.cancel("over")
    damage(store, request.param)
    return store


def test_the_inbox_has_the_others_and_says_which_cannot_be_read(
    notebook: Notebook, clicker: Clicker, damaged: Checkpointer, effects: Ledger
) -> None:
    ran = clicker.sees(notebook("%durable pending"))
    assert [each.execution_id for each in ran.value] == ["one", "broken", "two"]
    text = next(each["text/plain"] for each in ran.shown if "text/html" in each)
    assert "3 wait for you" in text
    assert "2 to approve · 1 cannot be read" in text
    assert "✗ cannot be read · broken" in text
    assert "StoreCorrupt: entry 3 of run 'broken'" in text
    clicker.click("Approve", "run two")
    assert effects.lines == ["1042 500"]


def test_load_ext_shows_the_others(notebook: Notebook, damaged: Checkpointer) -> None:
    ran = notebook("%reload_ext durable_nb")
    assert "3 wait for you" in ran.printed
    assert "StoreCorrupt" not in ran.printed
    assert "● waiting for you · two" in str([each["text/plain"] for each in ran.shown])


def test_the_view_has_a_row_for_each(damaged: Checkpointer) -> None:
    assert views.pending()["execution_id"].tolist() == ["one", "broken", "two"]
    assert len(views.sql("from pending")) == 3


def test_a_view_that_needs_what_is_damaged_says_what_finds_it(
    bot: Agent, store: Checkpointer
) -> None:
    for name in ("one", "broken"):
        bot.run("Refund order 1042", execution_id=name)
    damage(store, DAMAGES["its end"])
    with pytest.raises(StoreCorrupt, match="durable-nb doctor says which"):
        views.tool_calls()
    assert views.tool_calls("one")["outcome"].tolist() == ["paused"]


def test_the_shell_lists_the_others_and_fails(
    damaged: Checkpointer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pending"]) == 1
    said = capsys.readouterr()
    assert "durable-nb approve one" in said.out
    assert "durable-nb approve two" in said.out
    assert "StoreCorrupt: entry 3 of run 'broken'" in said.err


def test_a_sweep_goes_on_with_the_others_and_then_says_which_it_could_not(
    notebook: Notebook, store: Checkpointer
) -> None:
    def ask() -> str:
        """Ask."""
        return str(interrupt("manager", {}, expires_in=0.001).approved)

    agent = Agent("asks", ScriptedModel([call("ask"), "Done."]), [ask])
    for name in ("broken", "two"):
        agent.run("hello", execution_id=name)
    damage(store, DAMAGES["a byte"])
    time.sleep(0.002)
    with pytest.raises(StoreCorrupt, match="entry 3 of run 'broken'"):
        agent.sweep()
    assert store.get_last("two").status == "completed"
