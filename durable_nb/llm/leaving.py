"""A reply that is broken off: its connection is closed then and there, so that the provider stops.

Google's client leaves it to the garbage collector, if a cancellation comes between two chunks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

from pydantic_ai.models import Model

from durable_nb.llm.proxies import client_under

_opened: ContextVar[list[Any] | None] = ContextVar("durable_nb responses", default=None)


def watch(model: Model) -> None:
    """Note the responses that a client gets, one that was just made."""
    if (http := client_under(model)) is not None:
        hooks = http.event_hooks
        http.event_hooks = {**hooks, "response": [*hooks["response"], _note]}


@asynccontextmanager
async def left_closed() -> AsyncIterator[None]:
    """Close what the block has opened and left open, however it ends."""
    opened: list[Any] = []
    token = _opened.set(opened)
    try:
        yield
    finally:
        _opened.reset(token)
        for response in opened:
            await response.aclose()


async def _note(response: Any) -> None:
    if (opened := _opened.get()) is not None:
        opened.append(response)
