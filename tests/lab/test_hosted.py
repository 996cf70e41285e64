"""Agents whose model is a provider's: killed in mid-reply, and tried without paying for each kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from durable_nb import Agent, call, idempotent, lab
from tests.lab import shop
from tests.llm.wire import PROVIDERS, lead
from tests.support.provider_server import ProviderServer, Said, Trouble, asks

NAMES = ["openai", "anthropic"]


@idempotent
def charge(order: str) -> str:
    with open("ledger", "a") as ledger:
        ledger.write(f"{order}\n")
    return f"charged {order}"


def charging(order: str) -> str:
    """Charge an order."""
    return charge(order)


def agent_of(name: str, server: ProviderServer, folder: Path, patch: pytest.MonkeyPatch) -> Agent:
    lead(name, server.url, patch.setenv)
    return PROVIDERS[name].agent(server.url, shop.store_in(folder), charging)


@pytest.mark.parametrize("name", NAMES)
def test_during_a_turn_is_when_the_first_text_of_the_reply_has_come(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stalls = {1: Trouble("stall", after=10)}  # the rest of the first reply never comes
    text = "All of it is paid, to the last cent and to nobody else, as it was meant to be."
    with ProviderServer([Said(text)], troubles=stalls) as server:
        agent = agent_of(name, server, tmp_path, monkeypatch)
        crash = lab.crash(agent, "Go", at="turn:0", when="during", execution_id="r")
        assert [row.node_id for row in crash.rows] == ["turn:0"]
        assert len(server.requests) == 1
        assert agent.resume("r").output == text


def test_during_a_turn_whose_reply_has_no_text_is_when_it_is_back_and_not_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = [asks(call("charging", order="a")), Said("Paid.")]
    with ProviderServer(script) as server:
        agent = agent_of("openai", server, tmp_path, monkeypatch)
        crash = lab.crash(agent, "Go", at="turn:0", when="during")
        assert [row.node_id for row in crash.rows] == ["turn:0"]
        assert server.answered == [0]


def test_a_hosted_model_is_asked_in_every_kill_or_in_the_whole_run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = [asks(call("charging", order="a"), text="One to charge."), Said("Paid.")]
    with ProviderServer(script) as server:
        agent = agent_of("openai-chat", server, tmp_path, monkeypatch)
        matrix = lab.crash_matrix(agent, "Go").assert_exact()
        assert len(server.requests) == 2 + matrix["model_calls"].sum()
        assert "The model is asked again in each of the 11 kills" in str(matrix)
        before = len(server.requests)
        played = lab.crash_matrix(agent, "Go", replay=True).assert_exact()
        assert len(server.requests) == before + 2
        assert "The model was asked in the whole run alone, for 30 tokens." in str(played)
