"""The clients of OpenAI and Anthropic without what makes a long history slow, and without retries.

Both walk through every message of a request to match it with their types, a third of a millisecond
a message. What pydantic-ai hands them is the wire's form already, so it takes the way that they have
for what they do not know: `extra_body`. Retries are ours, so that they are recorded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any

_HISTORY = {  # where a client's requests are made, and what the history is called there
    "openai": (("chat.completions", "messages"), ("responses", "input")),
    "anthropic": (("messages", "messages"), ("beta.messages", "messages")),
}

Create = Callable[..., Awaitable[Any]]


def made_lean(model: object) -> bool:
    """Change the client of a model that was just made, and say whether it is one of those."""
    client: Any = getattr(model, "client", None)
    places = _HISTORY.get(type(client).__module__.partition(".")[0], ())
    for path, name in places:
        resource: Any = client
        for step in path.split("."):
            resource = getattr(resource, step)
        resource.create = _past_types(resource.create, name)
    if places:
        client.max_retries = 0
    return bool(places)


def _past_types(create: Create, name: str) -> Create:
    """`create` with the argument of that name in `extra_body`."""

    @wraps(create)
    async def lean(*, extra_body: Mapping[str, object] | None = None, **asked: Any) -> Any:
        history = asked.get(name)
        if isinstance(history, list):
            asked[name] = []
            extra_body = {name: history, **(extra_body or {})}
        return await create(extra_body=extra_body, **asked)

    return lean
