"""T5, T8, over every store: budgets and the context window, over the whole run and all resumes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from durable_nb import (
    BudgetExceeded,
    Call,
    InvalidInput,
    Message,
    Reply,
    ScriptedModel,
    Usage,
    call,
    tool,
)
from durable_nb.core.context import tokens_of
from durable_nb.model.messages import Asked
from tests.support.agents import bot
from tests.support.providers import assert_all_valid, faults


def said(what: object, usage: Usage) -> Reply:
    message = (
        Message("assistant", what) if isinstance(what, str) else Message("assistant", "", (what,))
    )
    return Reply(message, usage)


def priced(*costs: float | None) -> list[Reply]:
    """Replies of ten tokens and a call each, and a last one that is text."""
    usages = [Usage(7, 3, 2, cost) for cost in costs]
    looks = [call("look", at=at) for at in range(len(costs) - 1)]
    return [said(what, usage) for what, usage in zip([*looks, "done"], usages, strict=True)]


@tool(name="look")
def look(at: int) -> str:
    return f"seen {at} " + "x" * 300


def test_usage_and_what_was_asked_come_back_as_they_were(store, elsewhere) -> None:
    result = bot(store, priced(0.5, 0.25, 0.125), look).run("go", execution_id="r1")
    assert result.usage == Usage(21, 9, 6, 0.875)
    assert elsewhere.load("r1").rows[-1].entry.usage == Usage(7, 3, 2, 0.125)
    told = Reply(Message("assistant", "hi"), Usage(), "small-1", ("503: waited 1 s",))
    bot(store, [told]).run("go", execution_id="r2")
    assert elsewhere.load("r2").rows[-1].entry.asked == Asked("small-1", ("503: waited 1 s",))


def test_a_price_that_is_not_known_is_not_counted_as_nothing(store) -> None:
    assert bot(store, priced(0.5, None), look).run("go").usage == Usage(14, 6, 4, None)
    assert bot(store, priced(None, 0.5), look).run("go").usage.cost is None
    free = [call("look", at=1), said("done", Usage(1, 1, 0, 0.5))]
    assert bot(store, free, look).run("go").usage.cost == 0.5


@pytest.mark.parametrize(
    ("limit", "more", "words"),
    [
        ({"max_tokens": 20}, {"max_tokens": 31}, r"'r1' used 20 tokens of the 20.*max_tokens"),
        ({"max_cost": 0.5}, {"max_cost": 0.9}, r"'r1' has cost \$0.5000 of the \$0.5.*max_cost"),
    ],
)
def test_a_budget_holds_over_resumes_until_it_is_raised(
    store, elsewhere, limit, more, words
) -> None:
    script = priced(0.25, 0.25, 0.25)
    with pytest.raises(BudgetExceeded, match=words):
        bot(store, script, look, **limit).run("go", execution_id="r1")
    for _ in range(3):
        again = bot(elsewhere, script, look, **limit)
        with pytest.raises(BudgetExceeded, match=words):
            again.resume("r1")
        assert again.llm.asked == 0
    result = bot(elsewhere, script, look, **more).resume("r1")
    assert (result.output, result.usage) == ("done", Usage(21, 9, 6, 0.75))


def test_a_budget_in_money_is_used_up_to_the_cent(store) -> None:
    agent = bot(store, priced(*[0.1] * 12), look, max_cost=1)
    with pytest.raises(BudgetExceeded, match=r"\$1.0000 of the \$1 "):
        agent.run("go")
    assert agent.llm.asked == 10


def test_a_budget_in_money_needs_a_price(store) -> None:
    with pytest.raises(BudgetExceeded, match=r"max_cost of \$1.*price .* not known.*max_tokens"):
        bot(store, priced(None, None), look, max_cost=1).run("go")
    assert bot(store, [call("look", at=1), "done"], look, max_cost=1).run("go").output == "done"


@pytest.mark.parametrize("name", ["max_tokens", "max_cost", "max_context_tokens"])
@pytest.mark.parametrize("value", [0, -1, True, "9", float("nan")])
def test_a_limit_that_cannot_be_meant_is_refused(store, name: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=name):
        bot(store, ["hi"], **{name: value})


class Narrow(ScriptedModel):
    """A model that keeps what it was sent, and refuses what is too long for it."""

    def __init__(self, script, limit: int) -> None:
        super().__init__(script)
        self.limit = limit
        self.sent: list[list[Message]] = []

    def complete(self, messages: Sequence[Message], tools) -> Reply:
        assert faults(messages) == []
        assert sum(map(tokens_of, messages)) <= self.limit
        self.sent.append(list(messages))
        return super().complete(messages, tools)


def narrow(store, script, limit: int):
    agent = bot(store, script, look, system_prompt="be brief", max_context_tokens=limit)
    agent.llm = Narrow(script, limit)
    return agent


def test_a_history_that_is_too_long_is_kept_whole_and_sent_in_part(store, elsewhere) -> None:
    script = [*(call("look", at=at) for at in range(12)), "done"]
    agent = narrow(store, script, 600)
    result = agent.run("go", execution_id="r1")
    assert result.output == "done"
    assert len(result.messages) == 2 + 12 * 2 + 1
    assert [message.role for message in agent.llm.sent[-1][:2]] == ["system", "user"]
    trims = [
        row.entry.asked.trim
        for row in elsewhere.load("r1").rows
        if getattr(row.entry, "asked", None) and row.entry.asked.trim
    ]
    assert len(trims) >= 6
    assert all(trim.before > 600 >= trim.after for trim in trims)
    assert [trim.before for trim in trims] == sorted(trim.before for trim in trims)
    assert_all_valid(store)


def test_after_a_resume_the_same_is_sent(store, elsewhere) -> None:
    script = [*(Call("look", {"at": at}, f"c{at}") for at in range(12)), "done"]
    whole = narrow(store, script, 600)
    whole.run("go", execution_id="r1")
    for stop in (3, 7, 10):
        first = narrow(store, [*script[:stop], RuntimeError("no"), *script[stop:]], 600)
        with pytest.raises(RuntimeError):
            first.run("go", execution_id=f"r{stop}")
        second = narrow(elsewhere, script, 600)
        second.resume(f"r{stop}")
        assert [*first.llm.sent[:-1], *second.llm.sent] == whole.llm.sent


def test_most_turns_send_what_was_sent_before_and_more(store) -> None:
    agent = narrow(store, [*(call("look", at=at) for at in range(30)), "done"], 1200)
    agent.run("go")
    grown = [later[: len(sent)] == sent for sent, later in pairwise(agent.llm.sent)]
    assert not all(grown)  # it was cut
    assert sum(grown) > 20


def test_a_prompt_after_a_long_run_is_sent_with_what_fits(store) -> None:
    script = [*(call("look", at=at) for at in range(8)), "done", call("look", at=9), "done again"]
    agent = narrow(store, script, 600)
    agent.run("go", execution_id="r1")
    result = agent.resume("r1", prompt="and more")
    assert result.output == "done again"
    roles = [message.role for message in agent.llm.sent[-1]]
    assert roles[:3] == ["system", "user", "assistant"]
    assert agent.llm.sent[-1][1] == Message("user", "go")  # which the replies after it follow
    assert Message("user", "and more") in agent.llm.sent[-1]
    assert len(agent.llm.sent[-1]) < len(result.messages) - 6
    assert result.messages[:2] == (Message("system", "be brief"), Message("user", "go"))


def test_tools_take_their_part_of_the_window(store) -> None:
    script = [*(call("look", at=at) for at in range(6)), "done"]
    agent = narrow(store, script, 600)
    agent.run("go", execution_id="r1")
    room = 600 - agent.toolbox.tokens
    assert 0 < agent.toolbox.tokens < 100
    assert all(sum(map(tokens_of, sent)) <= room for sent in agent.llm.sent)
