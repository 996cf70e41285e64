"""Agents whose model is a provider's real client, led to a server on loopback.

What a client needs is in the environment alone, as for any user.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from durable_nb import Agent, Checkpointer
from durable_nb.llm import retry
from tests.support.children import TIMEOUT, preload

KEY = "sk-of-the-tests-0123456789"
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
        return {self.address: self.at.format(url=url), self.key: KEY}

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


def hurry() -> None:
    """Let this process wait for no provider that did not say how long."""
    retry.FIRST = IMPATIENT


def until(there: Callable[[], object]) -> None:
    """Wait for it."""
    give_up = time.monotonic() + TIMEOUT
    while not there():
        assert time.monotonic() < give_up, "it does not come"
        time.sleep(0.005)
