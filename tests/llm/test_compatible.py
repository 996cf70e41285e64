"""Servers that speak as OpenAI's Chat Completions do, in their own way: a run hears what they mean."""

from __future__ import annotations

import pytest

from durable_nb import MemoryCheckpointer, Message, call
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
