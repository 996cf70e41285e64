"""What a model is to durable_nb."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, Protocol

from durable_nb.model.messages import Message, Reply


class ToolSpec(Protocol):
    """A tool as a model sees it. `schema` is the JSON schema of its arguments."""

    name: str
    description: str

    @property
    def schema(self) -> dict[str, Any]: ...


class Model(Protocol):
    """Anything with `complete`, sync or async (DESIGN section 4)."""

    def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> Reply | Awaitable[Reply]:
        """The reply to a transcript. What it raises fails the run, which stays resumable."""
