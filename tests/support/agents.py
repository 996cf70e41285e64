"""Agents for tests: named `bot`, offline, with a model that minds its provider's rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from durable_nb import Agent, Checkpointer, RunResult, Tool
from tests.support.providers import StrictModel


def bot(
    store: Checkpointer, script: Any, *tools: Callable[..., Any] | Tool, **options: Any
) -> Agent:
    """An agent over the store; two with the same script and tools are two processes' own."""
    return Agent("bot", StrictModel(script), tools, checkpointer=store, **options)


def told(result: RunResult) -> list[str]:
    """What the model has read of its tools, in order."""
    return [message.content for message in result.messages if message.role == "tool"]


def nodes(store: Checkpointer, execution_id: str) -> list[tuple[str, str]]:
    """A run's rows as (node, status)."""
    return [(row.node_id, row.status) for row in store.list(execution_id)]
