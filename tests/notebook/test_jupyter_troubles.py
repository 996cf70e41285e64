"""Troubles that others had in notebooks, tried on ours (docs/test_jupyter_issues.py lists them)."""

from __future__ import annotations

import pandas as pd
import pytest

from durable_nb import Agent, Checkpointer, ScriptedModel, call, idempotent, interrupt
from tests.notebook.conftest import Notebook
from tests.notebook.test_inspector_clicks import choice
from tests.support.ledger import Ledger


def test_what_an_observer_raises_is_on_the_card(
    notebook: Notebook, bot: Agent, store: Checkpointer
) -> None:
    notebook("%config DurableMagics.headless = False\n%%durable bot --id refund-1042\nRefund")
    bot.run("Refund", execution_id="refund-1042")
    bot.fork("refund-1042", at=1, execution_id="other")
    ran = notebook("%durable show refund-1042")
    compared = choice(ran, "with")
    (place,) = [place for _, place in compared.options if place[0] == "other"]
    store.cancel("other")
    store.delete_execution("other")

    def choose() -> None:
        compared.value = place

    notebook.while_capturing(choose)
    assert any("UnknownExecution" in each.get("text/plain", "") for each in ran.shown)


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("select 'refund'[2:3] as x", "ef"),
        ("select '7'::int as x", 7),
        ("""select '{"a": {"b": 5}}'->>'$.a.b' as x""", "5"),
        ("select $$it's {here}$$ as x", "it's {here}"),
        ("select '$HOME {x} {{x}}' as x", "$HOME {x} {{x}}"),
        ("set variable n = 5; select getvariable('n') as x", 5),
    ],
)
def test_a_query_is_taken_as_it_was_written(notebook: Notebook, query: str, answer: object) -> None:
    notebook.names.update(x="wrong", here="wrong")
    (found,) = notebook(f"%%durable_sql\n{query}").value.x
    assert found == answer


def test_an_answer_is_a_frame_that_stays_as_it_was(notebook: Notebook, bot: Agent) -> None:
    notebook("%%durable_sql -o before\nselect execution_id from runs")
    bot.run("Refund", execution_id="refund-1042")
    assert type(notebook.names["before"]) is pd.DataFrame
    assert notebook("len(before)").value == 0


def test_blanks_around_a_prompt_are_no_other_prompt(notebook: Notebook, bot: Agent) -> None:
    bodies = ("Refund it", "\n Refund it \n\n", "Refund  it", "refund it")
    one, same, *others = (notebook(f"%%durable bot\n{body}").value.execution_id for body in bodies)
    assert one == same
    assert len({one, *others}) == 3


def test_three_approvals_in_a_row_have_one_effect_each(notebook: Notebook, effects: Ledger) -> None:
    @idempotent
    def charge(order: str) -> None:
        effects.add(order)

    def refund(order: str) -> str:
        """Pay an order back."""
        charge(order)
        return "paid" if interrupt("approval", {"order": order}).approved else "not paid"

    script = [*(call("refund", order=order) for order in ("1", "2", "3")), "Done."]
    notebook.names["bot"] = Agent("bot", ScriptedModel(script), [refund])
    cell = "%%durable bot --id three -o h\nRefund them"
    for _ in range(3):
        assert notebook(cell).value.status == "paused"
        notebook("h.approve()")
    assert notebook(cell).value.status == "completed"
    assert effects.lines == ["1", "2", "3"]
