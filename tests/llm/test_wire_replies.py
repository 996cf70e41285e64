"""What a provider's server says is what the run hears, and what the run says is what it takes: on
real clients and real wire formats."""

from __future__ import annotations

import gc
import json

import pytest

from durable_nb import Checkpointer, MemoryCheckpointer, call
from durable_nb.llm.stream import listening
from durable_nb.model.messages import Call, Usage
from tests.llm.wire import PROVIDERS, lead, until
from tests.support.agents import nodes, told
from tests.support.provider_server import ProviderServer, Said, asks, says
from tests.support.providers import assert_all_valid

SCRIPT = [
    asks(call("add", a=1, b=2), call("add", a=3, b=4), text="Two sums.", thinking="Let me add."),
    asks(call("add", a=3, b=7), thinking="One more."),
    Said("It is ten.", usage=Usage(100, 20, 40)),
]
PLANNED = [
    ("turn:0", "completed"),
    ("turn:0/tool:add", "completed"),
    ("turn:0/tool:add", "completed"),
    ("turn:1", "completed"),
    ("turn:1/tool:add", "completed"),
    ("turn:2", "completed"),
    ("run_end", "completed"),
]


def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


@pytest.fixture
def store():
    """A store whose transcripts have to obey every provider in the end."""
    opened = MemoryCheckpointer()
    yield opened
    assert_all_valid(opened)


@pytest.fixture
def ask(name: str, store: Checkpointer, monkeypatch):
    """Runs an agent against a server with that script: its result, and the server."""

    def run(script, *tools, **options):
        with ProviderServer(script) as server:
            lead(name, server.url, monkeypatch.setenv)
            agent = PROVIDERS[name].agent(server.url, store, *(tools or [add]), **options)
            result = agent.run("What is 1 + 2 + 3 + 4?", execution_id="r1")
        assert server.refused == []
        return result, server

    return run


def test_an_agent_with_tools_runs_to_its_end(ask, store) -> None:
    result, server = ask(SCRIPT)
    assert (result.status, result.output) == ("completed", "It is ten.")
    assert told(result) == ["3", "7", "10"]
    assert nodes(store, "r1") == PLANNED
    assert server.answered == [0, 1, 2]


def test_what_replies_cost_is_on_record(ask, store) -> None:
    result, _ = ask(SCRIPT)
    usage = result.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (120, 30, 40)
    asked = [row.entry.asked for row in store.load("r1").rows if hasattr(row.entry, "asked")]
    assert [each.model for each in asked if each.model] == ["scripted-1"] * 3
    assert [each.retries for each in asked] == [()] * len(asked)


def test_the_system_prompt_the_settings_and_the_tools_arrive(ask) -> None:
    _, server = ask(
        SCRIPT, system_prompt="You count on your fingers.", model_settings={"max_tokens": 4321}
    )
    for seen in server.requests:
        sent = json.dumps(seen.body)
        assert "You count on your fingers." in sent
        assert ": 4321" in sent
        assert "The sum of two numbers." in sent


def test_text_is_heard_while_it_comes(ask) -> None:
    heard: list[str] = []
    with listening(heard.append):
        ask([asks(call("add", a=1, b=2), text="One two three."), says("Four five.")])
    assert heard == ["", "One ", "One two ", "One two three.", "", "Four ", "Four five."]


def test_an_unknown_tool_is_an_error_that_the_model_reads(ask) -> None:
    result, _ = ask([asks(call("subtract", a=1, b=2)), says("I see.")])
    assert result.output == "I see."
    [said] = told(result)
    assert said.startswith("Error")
    assert "subtract" in said


@pytest.mark.parametrize("name", [each for each in PROVIDERS if each != "google"])  # has objects
@pytest.mark.parametrize(
    "written", ['{"a": 1, "b"', "[1, 2]", '"three"', "null", '{"a": "x"}', '{"a": NaN}']
)
def test_malformed_arguments_are_an_error_that_the_model_reads(ask, written: str) -> None:
    result, server = ask(
        [asks(call("add", a=1, b=1), Call("add", written)), asks(call("add", a=1, b=2)), says("ok")]
    )
    assert result.output == "ok"
    *first, again = told(result)
    bad, good = sorted(first, key="2".__eq__)
    assert (good, again) == ("2", "3")
    assert bad.startswith("Error")
    assert len(server.requests) == 3


@pytest.mark.parametrize("ids", [("", ""), ("same", "same"), ("fine", "")])
def test_each_call_has_one_result_whatever_the_ids_are(ask, ids: tuple[str, str]) -> None:
    result, _ = ask([asks(call("add", a=1, b=2), call("add", a=3, b=4), ids=ids), says("ok")])
    assert result.output == "ok"
    assert len(told(result)) == 2
    assert "3" in told(result)


def test_an_id_that_an_earlier_reply_used_is_not_mistaken_for_it(ask) -> None:
    twice = [asks(call("add", a=1, b=at), ids=["same"]) for at in (1, 2)]
    result, _ = ask([*twice, says("ok")])
    assert (told(result), result.output) == (["2", "3"], "ok")


def test_the_connections_of_a_model_that_is_gone_are_closed(name, monkeypatch) -> None:
    with ProviderServer([says("ok")]) as server:
        lead(name, server.url, monkeypatch.setenv)
        agent = PROVIDERS[name].agent(server.url, MemoryCheckpointer())
        assert agent.run("Say ok").output == "ok"
        assert len(server.connections) == 1
        del agent
        gc.collect()
        until(lambda: not server.connections)
