"""`examine` over every kind of store: the same findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from durable_nb import Checkpointer, call, idempotent, interrupt
from durable_nb.stores.doctor import Health, examine
from tests.support.agents import bot
from tests.support.stores import Died

Opened = Callable[[], Checkpointer]


def ask() -> str:
    return str(interrupt("may I?", None).approved)


def test_runs_and_entries_are_counted_and_all_is_well(opened: Opened) -> None:
    store = opened()
    bot(store, [call("ask"), "done"], ask).run("Ask", execution_id="r1")
    bot(store, ["hello"]).run("Say hello", execution_id="r2")
    health = examine(opened())
    assert (health.runs, health.entries, health.faults) == (2, 5, ())
    assert (health.driven, health.in_doubt) == ((), ())


def test_a_run_is_driven_while_its_tool_runs_and_in_doubt_when_that_died(opened: Opened) -> None:
    store = opened()
    seen: list[Health] = []

    @idempotent
    def charge() -> str:
        seen.append(examine(store))
        raise Died

    def pay() -> str:
        return charge()

    with pytest.raises(Died):
        bot(store, [call("pay"), "paid"], pay).run("Pay", execution_id="r1")
    (driven,) = seen[0].driven
    assert (driven.execution_id, driven.number, seen[0].in_doubt) == ("r1", 2, ())
    after = examine(opened())
    assert after.driven == ()
    assert [each.execution_id for each in after.in_doubt] == ["r1", "r1"]
    assert [each.call.split()[0] for each in after.in_doubt] == ["tool", "@idempotent"]


def test_a_run_that_failed_in_its_model_leaves_nothing_in_doubt(opened: Opened) -> None:
    def fail(messages: Any) -> str:
        raise ConnectionError("503")

    with pytest.raises(ConnectionError):
        bot(opened(), fail).run("Say hello", execution_id="r1")
    assert examine(opened()).in_doubt == ()
