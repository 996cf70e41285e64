"""Servers that speak as OpenAI's Chat Completions do, in their own way: a run hears what they mean."""

from __future__ import annotations

import pytest

from durable_nb import BudgetExceeded, MemoryCheckpointer, Message, call, tool
from tests.llm.wire import PROVIDERS, ask, model_of, settle
from tests.support.agents import told
from tests.support.provider_server import ProviderServer, Said, asks, says

CHAT = ("openai-chat", "ollama", "openai-compatible")
TWO = (call("note", name="a", at=1), call("note", name="b", at=2))


def note(name: str, at: int) -> str:
    """Note a name."""
    return f"noted {name} {at}"


@pytest.fixture(params=CHAT)
def name(request: pytest.FixtureRequest) -> str:
    """Which provider: one of those."""
    return str(request.param)


@pytest.mark.parametrize(
    "manners",
    [
        ("one index",),
        ("one index", "ids again"),
        ("one index", "ids again", "names again"),
        ("one index", "names again"),
        ("names again",),
        ("ids again", "names again"),
        ("an id a piece",),
        ("late ids",),
        ("by turns",),
        ("one index", "by turns"),
    ],
    ids=" ".join,
)
def test_each_call_is_one_whatever_its_pieces_say_again(name, manners, monkeypatch):
    store = MemoryCheckpointer()
    with ProviderServer([Said("Two.", TWO, manners=manners), says("ok")]) as server:
        settle(monkeypatch, server)
        result = PROVIDERS[name].agent(server.url, store, note).run("go")
    assert (told(result), result.output) == (["noted a 1", "noted b 2"], "ok")
    assert server.refused == []


def test_a_call_without_an_id_is_the_next_at_its_index(monkeypatch):
    with ProviderServer([asks(*TWO, ids=["", ""])]) as server:
        settle(monkeypatch, server)
        message = ask(model_of("ollama", server), [Message("user", "go")]).message
    assert [(each.tool, each.arguments) for each in message.tool_calls] == [
        (each.tool, each.arguments) for each in TWO
    ]


UNTOLD = [
    *(
        Said("", (call("note", name="x" * 300, at=at),), "Think.", manners=("no usage",))
        for at in range(9)
    ),
    Said("ok", manners=("no usage",)),
]


def test_a_budget_holds_where_the_server_tells_no_usage(name, monkeypatch):
    store = MemoryCheckpointer()
    with ProviderServer(UNTOLD) as server:
        settle(monkeypatch, server)
        agent = PROVIDERS[name].agent(server.url, store, note, max_tokens=1500)
        with pytest.raises(BudgetExceeded, match="of the 1,500"):
            agent.run("go", execution_id="r1")
        assert 1 < len(server.requests) < 9
        more = PROVIDERS[name].agent(server.url, store, note, max_tokens=100_000)
        assert more.resume("r1").output == "ok"  # what is kept of an estimate is not sent back
    assert server.refused == []


def test_an_estimate_is_on_the_safe_side_and_stored_as_one(name, monkeypatch):
    sent = [Message("user", "Ünïcode " * 100), Message("assistant", "x"), Message("user", "y")]
    with ProviderServer([says(""), Said("ok " * 100, manners=("no usage",))]) as server:
        settle(monkeypatch, server)
        reply = ask(model_of(name, server), sent, [tool(note)])
        bare = ask(model_of(name, server), sent)
    assert 1000 // 3 <= bare.usage.input_tokens < reply.usage.input_tokens
    assert reply.usage.output_tokens >= 100
    assert reply.usage.cost is None
    assert reply.message.extra["provider"]["usage"] == "estimated"


def test_a_budget_in_money_needs_usage_that_is_told(monkeypatch):
    store = MemoryCheckpointer()
    with ProviderServer(UNTOLD) as server:
        settle(monkeypatch, server)
        agent = PROVIDERS["openai-chat"].agent(server.url, store, note, max_cost=1)
        with pytest.raises(BudgetExceeded, match="not known"):
            agent.run("go")
        assert len(server.requests) == 1
