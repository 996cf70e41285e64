"""A provider fails, and its run does not notice, or can be resumed; and no key is ever seen."""

from __future__ import annotations

import pickle
import traceback

import cloudpickle
import pytest

from durable_nb import ModelFailed, SQLiteCheckpointer, call
from durable_nb.model.messages import Usage
from durable_nb.notebook.portrait import Look, portrait
from durable_nb.notebook.render import html, text
from tests.llm.wire import KEYS, PROVIDERS, lead
from tests.support.agents import nodes
from tests.support.ledger import Ledger
from tests.support.provider_server import ProviderServer, Trouble, asks, says
from tests.support.provider_server.troubles import PASSING
from tests.support.providers import assert_all_valid

FOREVER = Trouble("status", 503, "0")
SMALL = [asks(call("note", name="a"), thinking="Think."), says("Noted.")]


@pytest.fixture
def file(tmp_path):
    """A store that is a file, whose transcripts obey every provider in the end."""
    opened = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
    yield opened
    assert_all_valid(opened)
    opened.close()


@pytest.fixture
def agent_of(name: str, file, effects: Ledger, monkeypatch):
    """Makes an agent of a server, as each process would: its tool's effects are on the ledger."""

    def note(name: str) -> str:
        effects.add(name)
        return f"noted {name}"

    def make(server: ProviderServer, **settings):
        lead(name, server.url, monkeypatch.setenv)
        return PROVIDERS[name].agent(server.url, file, note, model_settings=settings)

    return make


def retries(store) -> list[int]:
    """How many attempts failed before each reply of the run."""
    rows = store.load("r1").rows
    asked = [row.entry.asked for row in rows if hasattr(row.entry, "asked")]
    return [len(each.retries) for each in asked if each.model]


def test_what_goes_by_costs_a_retry_and_nothing_else(agent_of, file, effects) -> None:
    names = [f"n{at}" for at in range(len(PASSING) - 1)]
    script = [asks(call("note", name=each), text=f"Now {each}.") for each in names] + [says("ok")]
    troubles = {2 * at + 1: trouble for at, trouble in enumerate(PASSING)}
    with ProviderServer(script, troubles=troubles) as server:
        result = agent_of(server).run("Note them", execution_id="r1")
    assert (result.status, result.output, effects.lines) == ("completed", "ok", names)
    assert [node for node, _ in nodes(file, "r1")] == [
        *(f"turn:{at}{step}" for at in range(len(names)) for step in ("", "/tool:note")),
        f"turn:{len(names)}",
        "run_end",
    ]
    assert retries(file) == [1] * len(script)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (90, 45)
    assert (server.refused, server.answered) == ([], list(range(len(script))))


def test_what_does_not_go_by_fails_the_run_which_is_finished_later(agent_of, file, effects) -> None:
    with ProviderServer(SMALL, troubles=lambda n: FOREVER if n > 1 else None) as server:
        with pytest.raises(ModelFailed, match="3 attempts") as failed:
            agent_of(server, max_retries=2).run("Note a", execution_id="r1")
        assert failed.value.status == 503
        assert [run.status for run in file.runs()] == ["failed"]
        server.plan = {}.get
        result = agent_of(server).resume("r1")
    assert (result.status, result.output, effects.lines) == ("completed", "Noted.", ["a"])
    assert result.usage == Usage(20, 10, cost=result.usage.cost)
    assert (server.refused, server.answered) == ([], [0, 1])


def test_a_run_outlives_a_provider_that_was_not_there(agent_of, file, effects) -> None:
    with ProviderServer(SMALL) as server:
        agent = agent_of(server, max_retries=1)
    with pytest.raises(ModelFailed, match="connection refused"):
        agent.run("Note a", execution_id="r1")
    with ProviderServer(SMALL, port=server.port) as server:
        assert agent.resume("r1").output == "Noted."
    assert (effects.lines, server.refused) == (["a"], [])


def test_a_history_that_is_too_long_says_what_to_set(agent_of, file) -> None:
    with ProviderServer(SMALL, troubles={2: Trouble("too long")}) as server:
        with pytest.raises(ModelFailed, match="max_context_tokens"):
            agent_of(server).run("Note a", execution_id="r1")
        assert len(server.requests) == 2
        assert agent_of(server).resume("r1").output == "Noted."


def test_a_key_that_is_echoed_is_nowhere(name, agent_of, file, tmp_path) -> None:
    key = KEYS[PROVIDERS[name].key]
    with ProviderServer(SMALL, troubles={2: Trouble("echo")}) as server:
        agent = agent_of(server)
        with pytest.raises(ModelFailed) as failed:
            agent.run("Note a", execution_id="r1")
    assert key in str(server.requests[1].headers)  # it was sent, and it came back
    card = portrait(file.load("r1"), Look(error=str(failed.value)))
    seen = [
        *traceback.format_exception(failed.value),
        repr(failed.value),
        html(card),
        text(card),
        repr(agent),
        repr(agent.llm),
        str(file.load("r1")),
    ]
    assert not [each for each in seen if key in each]
    stored = [pickle.dumps(agent.llm), cloudpickle.dumps(agent)]
    stored += [path.read_bytes() for path in tmp_path.iterdir() if path.is_file()]
    assert not [each for each in stored if key.encode() in each]
