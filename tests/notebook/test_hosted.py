"""A provider's reply over HTTP, under the card of its run: what comes, and why it is waited for."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from durable_nb import Agent
from tests.notebook.conftest import Notebook, eventually
from tests.notebook.test_spoken import CELL, drawn
from tests.support.provider_server import ProviderServer, Trouble, says


@pytest.fixture
def watched(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """Somebody is there, with a key."""
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", "of-the-compatible-77aa")
    notebook("%config DurableMagics.headless = False")
    return notebook


@pytest.mark.parametrize(
    ("trouble", "seen"),
    [
        (Trouble("stall", after=3), "one two"),
        (Trouble("status", 503, "60"), "waiting 60.0 s"),
    ],
    ids=["in mid-reply", "before a retry"],
)
def test_what_is_seen_is_the_providers_and_an_interrupt_leaves_a_run_that_goes_on(
    watched: Notebook, trouble: Trouble, seen: str
) -> None:
    """The server never says more, so nothing but the interrupt ends the cell."""
    came: list[str] = []

    def interrupt_when_seen() -> None:
        eventually(lambda: any(seen in html for html in drawn(watched)))
        came.extend(html for html in drawn(watched) if seen in html)
        os.kill(os.getpid(), signal.SIGINT)

    with ProviderServer([says("one two three four")], troubles={1: trouble}) as server:
        llm = f"openai-compatible:any-model@{server.url}/v1"
        watched.names["bot"] = Agent("bot", llm)
        person = threading.Thread(target=interrupt_when_seen)
        person.start()
        stopped = watched(CELL)
        person.join(60)
        assert isinstance(stopped.error, KeyboardInterrupt)
        assert came[0].count("asking the model · ") == 1
        assert stopped.card.startswith("↯ stopped by you")
        assert seen not in stopped.card
        ran = watched(CELL)
        assert len(server.requests) == 2
    assert ran.card.startswith("✓ completed")
    assert "2 model calls, 1 lost · 15 tokens" in ran.card
    assert "one two three four" in ran.card
    frame = watched("from durable_nb import views; views.usage('a')").value
    assert list(frame.outcome) == ["lost", "answered"]
    assert frame.input_tokens.sum() + frame.output_tokens.sum() == 15
