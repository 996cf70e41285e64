"""Models of the providers on loopback, asked without an agent, each with a key of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from durable_nb import Message, Reply
from durable_nb.llm.adopt import as_model
from durable_nb.runtime import engine
from durable_nb.runtime.tools import Tool
from tests.llm.wire import PROVIDERS
from tests.support.provider_server import ProviderServer

KEYS = {
    "OPENAI_API_KEY": "sk-of-openai-41c8f2",
    "ANTHROPIC_API_KEY": "sk-ant-of-anthropic-9d07",
    "GOOGLE_API_KEY": "AIza-of-google-5b3e",
    "OPENAI_COMPATIBLE_API_KEY": "of-the-compatible-77aa",
}
SEALING = ("openai", "anthropic", "google")  # they seal their thinking and want it back


def settle(patch: pytest.MonkeyPatch, server: ProviderServer) -> None:
    """Let every provider's client find the server, with keys of their own."""
    for provider in PROVIDERS.values():
        patch.setenv(provider.address, provider.at.format(url=server.url))
    for name, key in KEYS.items():
        patch.setenv(name, key)


def model_of(host: str, server: ProviderServer, **settings: Any) -> Any:
    """The model of that provider on this server."""
    return as_model(PROVIDERS[host].llm.format(url=server.url), settings or None)


def ask(model: Any, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> Reply:
    """What the model replies, on the engine's loop as in a run."""
    reply: Reply = engine.call(model.complete(messages, tools), engine.Stop())
    return reply


async def leave(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait until it has gone."""
    task.cancel()
    await asyncio.wait([task])


def sent(server: ProviderServer) -> list[Mapping[str, Any]]:
    """The bodies of the requests so far."""
    return [seen.body for seen in server.requests]
