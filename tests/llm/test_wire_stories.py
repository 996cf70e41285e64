"""Whatever becomes of a run, what is sent of it is valid for each provider (T1)."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from durable_nb import MemoryCheckpointer, Resume, TurnLimit, call, interrupt
from durable_nb.llm.stream import listening
from tests.llm.wire import PROVIDERS, lead
from tests.support.agents import told
from tests.support.provider_server import ProviderServer, Trouble, asks, says
from tests.support.providers import assert_all_valid

SCRIPT = [
    asks(
        call("look", at="a"),
        call("refund", order="1042"),
        call("look", at="b"),
        text="Let me see.",
        thinking="I look, and I refund.",
    ),
    says("That is all.", thinking="Nothing is left."),
    asks(call("look", at="c"), thinking="Once more."),
    says("All looked at."),
]


def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


def refund(order: str) -> str:
    """Refund an order, if somebody lets you."""
    return "refunded" if interrupt("manager", {"order": order}).approved else "not refunded"


@pytest.fixture
def server():
    """A server that refused nothing in the end."""
    with ProviderServer(SCRIPT) as running:
        yield running
        assert running.refused == []


@pytest.fixture
def store():
    opened = MemoryCheckpointer()
    yield opened
    assert_all_valid(opened)


@pytest.fixture
def agent(name: str, server: ProviderServer, store, monkeypatch):
    lead(name, server.url, monkeypatch.setenv)
    return PROVIDERS[name].agent(server.url, store, look, refund, system_prompt="Be brief.")


@pytest.mark.parametrize("approved", [True, False])
def test_a_run_that_a_person_answers_goes_on(agent, approved: bool) -> None:
    assert agent.run("Refund 1042", execution_id="r1").status == "paused"
    answer = Resume(approved, by="ann", reason=None if approved else "no $ left; <b>really</b>")
    result = agent.resume("r1", resume_value=answer)
    assert result.output == "That is all."
    assert len(told(result)) == 3


def test_a_conversation_goes_on(agent, server) -> None:
    agent.run("Refund 1042", execution_id="r1")
    agent.resume("r1", resume_value=Resume(True))
    result = agent.resume("r1", prompt="Look at c, too")
    assert result.output == "All looked at."
    assert server.answered == [0, 1, 2, 3]


def test_a_fork_goes_on_from_its_turn(agent, server) -> None:
    agent.run("Refund 1042", execution_id="r1")
    agent.resume("r1", resume_value=Resume(True))
    result = agent.fork("r1", at="turn:1")
    assert result.output == "That is all."
    assert server.answered == [0, 1, 1]


def test_a_run_that_was_cancelled_with_calls_left_open_goes_on(agent, store) -> None:
    agent.run("Refund 1042", execution_id="r1")
    store.cancel("r1")
    result = agent.resume("r1", prompt="Leave it, then")
    assert result.output == "That is all."
    assert [each for each in told(result) if "cancelled" in each]


def test_a_failed_run_is_given_another_prompt(name, store, monkeypatch) -> None:
    with ProviderServer(SCRIPT) as server:
        lead(name, server.url, monkeypatch.setenv)
        agent = PROVIDERS[name].agent(server.url, store, look, refund, max_turns=1)
        agent.run("Refund 1042", execution_id="r1")
        with pytest.raises(TurnLimit):
            agent.resume("r1", resume_value=Resume(True))
        agent = PROVIDERS[name].agent(server.url, store, look, refund, max_turns=4)
        assert agent.resume("r1", prompt="And be quick").output == "That is all."
        assert (server.refused, server.answered) == ([], [0, 1])


@pytest.mark.parametrize(
    "script",
    [
        [says("", thinking="I have nothing to say."), says("What I meant: ok.")],
        [says(" \n"), says("What I meant: ok.")],
        [asks(call("look", at="a"), text="\n\n"), says("What I meant: ok.")],
        [asks(call("look", at="a"), text="\n\n", thinking="Look."), says("What I meant: ok.")],
    ],
)
def test_a_reply_without_words_is_not_sent_back(name, script, monkeypatch) -> None:
    with ProviderServer([*script, says("No more.")]) as server:
        lead(name, server.url, monkeypatch.setenv)
        agent = PROVIDERS[name].agent(server.url, MemoryCheckpointer(), look)
        first = agent.run("Look", execution_id="r1")
        assert agent.resume("r1", prompt="And?").status == first.status == "completed"
        assert server.refused == []


FOUR = ("openai", "openai-chat", "anthropic", "google")


@pytest.mark.parametrize(("first", "then"), list(permutations(FOUR, 2)))
def test_a_run_that_another_provider_goes_on_with(first, then, store, monkeypatch) -> None:
    others = [replace(each, thinking="") for each in SCRIPT]  # which it never said itself
    with ProviderServer(SCRIPT) as server, ProviderServer(others) as other:
        lead(first, server.url, monkeypatch.setenv)
        PROVIDERS[first].agent(server.url, store, look, refund).run("Refund", execution_id="r1")
        lead(then, other.url, monkeypatch.setenv)
        agent = PROVIDERS[then].agent(other.url, store, look, refund)
        assert agent.resume("r1", resume_value=Resume(True)).output == "That is all."
        assert (other.refused, other.answered) == ([], [1])


def test_what_is_sent_of_a_history_that_is_too_long_is_valid(name, store, monkeypatch) -> None:
    def read(page: int) -> str:
        """Read a page."""
        return "word " * 200

    script = [asks(call("read", page=at), text="More.", thinking="On.") for at in range(9)]
    with ProviderServer(script) as server:
        lead(name, server.url, monkeypatch.setenv)
        agent = PROVIDERS[name].agent(
            server.url, store, read, max_turns=9, max_context_tokens=1200, system_prompt="Read."
        )
        with pytest.raises(TurnLimit):
            agent.run("Read all pages", execution_id="r1")
        assert server.refused == []
        assert len(server.requests) == 9
        assert len(set(server.answered)) < 9  # of the later requests, a part was left out


def test_what_has_come_of_a_reply_that_never_ends_was_heard(name, store, monkeypatch) -> None:
    heard: list[str] = []
    stalls = {1: Trouble("stall", after=7)}
    with ProviderServer([says("one two three four five six")], troubles=stalls) as server:
        lead(name, server.url, monkeypatch.setenv)
        agent = PROVIDERS[name].agent(server.url, store, model_settings={"timeout": 1.0})
        with listening(heard.append):
            assert agent.run("Count").output == "one two three four five six"
    again = heard.index("", 1)
    assert heard[1] == "one "
    assert heard[again - 1] != "one two three four five six"
    assert heard[-1] == "one two three four five six"
