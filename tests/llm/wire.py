"""Providers' real clients, led to a server on loopback: with an agent, or asked without one.

What a client needs is in the environment alone, as for any user.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from durable_nb import Agent, Checkpointer, Message, Reply
from durable_nb.llm import retry
from durable_nb.llm.adopt import as_model
from durable_nb.runtime import engine
from durable_nb.runtime.tools import Tool
from tests.support.children import TIMEOUT, preload
from tests.support.provider_server import ProviderServer

KEYS = {
    "OPENAI_API_KEY": "sk-of-openai-41c8f2",
    "ANTHROPIC_API_KEY": "sk-ant-of-anthropic-9d07",
    "GOOGLE_API_KEY": "AIza-of-google-5b3e",
    "OLLAMA_API_KEY": "of-ollama-3e1c94",
    "OPENAI_COMPATIBLE_API_KEY": "of-the-compatible-77aa",
}
SEALING = ("openai", "anthropic", "google")  # they seal their thinking and want it back
IMPATIENT = 0.002  # seconds before a second attempt

preload(
    *(f"pydantic_ai.models.{each}" for each in ("openai", "anthropic", "google")),
    "durable_nb.llm.asking",
    "durable_nb.stores.sqlite",
    "tests.support.provider_server",
)


@dataclass(frozen=True, slots=True)
class Provider:
    """One that `Agent(llm=...)` can name. `{url}` stands for the server's address."""

    llm: str
    address: str
    at: str
    key: str = "OPENAI_API_KEY"

    def environment(self, url: str) -> dict[str, str]:
        """The variables that lead its client to the server."""
        return {self.address: self.at.format(url=url), self.key: KEYS[self.key]}

    def agent(self, url: str, store: Checkpointer, *tools: Any, **options: Any) -> Agent:
        """An agent named `bot` that asks it."""
        return Agent("bot", self.llm.format(url=url), tools, checkpointer=store, **options)


PROVIDERS = {
    "openai": Provider("openai:gpt-5", "OPENAI_BASE_URL", "{url}/v1"),
    "openai-chat": Provider("openai-chat:gpt-5", "OPENAI_BASE_URL", "{url}/v1"),
    "anthropic": Provider(
        "anthropic:claude-sonnet-5-5", "ANTHROPIC_BASE_URL", "{url}", "ANTHROPIC_API_KEY"
    ),
    "google": Provider(
        "google:gemini-3-pro-preview", "GOOGLE_GEMINI_BASE_URL", "{url}", "GOOGLE_API_KEY"
    ),
    "ollama": Provider("ollama:qwen3", "OLLAMA_BASE_URL", "{url}/v1", "OLLAMA_API_KEY"),
    "openai-compatible": Provider(
        "openai-compatible:any-model@{url}/v1", "NO_ADDRESS", "", "OPENAI_COMPATIBLE_API_KEY"
    ),
}


def lead(name: str, url: str, put: Callable[[str, str], object] = os.environ.__setitem__) -> None:
    """Lead a provider's client to the server, with `put(variable, value)`."""
    for variable, value in PROVIDERS[name].environment(url).items():
        put(variable, value)


def settle(patch: pytest.MonkeyPatch, server: ProviderServer) -> None:
    """Lead the clients of all providers to the server."""
    for name in PROVIDERS:
        lead(name, server.url, patch.setenv)


def model_of(name: str, server: ProviderServer, **settings: Any) -> Any:
    """The model of that provider on this server."""
    return as_model(PROVIDERS[name].llm.format(url=server.url), settings or None)


def ask(model: Any, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> Reply:
    """What the model replies, on the engine's loop as in a run."""
    reply: Reply = engine.call(model.complete(messages, tools), engine.Stop())
    return reply


def sent(server: ProviderServer) -> list[Mapping[str, Any]]:
    """The bodies of the requests so far."""
    return [seen.body for seen in server.requests]


async def leave(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait until it has gone."""
    task.cancel()
    await asyncio.wait([task])


def hurry() -> None:
    """Let this process wait for no provider that did not say how long."""
    retry.FIRST = IMPATIENT


def until(there: Callable[[], object]) -> None:
    """Wait for it."""
    give_up = time.monotonic() + TIMEOUT
    while not there():
        assert time.monotonic() < give_up, "it does not come"
        time.sleep(0.005)
