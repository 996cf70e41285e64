"""The clients of OpenAI and Anthropic without what makes a long history slow, and without retries.

Both walk through a whole request to match it with their types, a third of a millisecond a message.
What pydantic-ai hands them is the wire's form already, so it takes the way that they have for what
they do not know: `extra_body`. For Chat Completions, pydantic-ai makes that form of each message
once instead of in each request. Retries are ours, so that they are recorded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, TypeAlias

_PLACES = {  # where a client's requests are made, and what the history is called there
    "openai": (("chat.completions", "messages"), ("responses", "input")),
    "anthropic": (("messages", "messages"), ("beta.messages", "messages")),
}
_FORM = "durable_nb form"  # of a message that our translator made, so nobody else's
_NOT_IN_BODY = ("betas", "extra_headers", "extra_query", "timeout")

Create: TypeAlias = Callable[..., Awaitable[Any]]


def made_lean(model: object) -> None:
    """Change a model that was just made and its client, if it is one of those."""
    client: Any = getattr(model, "client", None)
    places = _PLACES.get(type(client).__module__.partition(".")[0], ())
    for path, history in places:
        resource: Any = client
        for step in path.split("."):
            resource = getattr(resource, step)
        resource.create = _past_types(resource.create, history)
    if places:
        client.max_retries = 0
    if any(each.__name__ == "OpenAIChatModel" for each in type(model).__mro__):
        _map_once(model)


def _map_once(model: Any) -> None:
    """Keep the form of each message with it; a request may change the copy that it gets."""
    map_response, map_request = model._map_model_response, model._map_user_message

    def response_once(message: Any) -> dict[str, Any] | None:
        if (form := vars(message).get(_FORM)) is None:
            form = vars(message)[_FORM] = map_response(message)
        return None if form is None else dict(form)

    async def request_once(message: Any) -> AsyncIterator[dict[str, Any]]:
        if (forms := vars(message).get(_FORM)) is None:
            forms = vars(message)[_FORM] = [form async for form in map_request(message)]
        for form in forms:
            yield dict(form)

    model._map_model_response, model._map_user_message = response_once, request_once


def _past_types(create: Create, history: str) -> Create:
    """`create` with every list and mapping of the body in `extra_body`; it insists on a history."""

    @wraps(create)
    async def lean(*, extra_body: Mapping[str, object] | None = None, **asked: Any) -> Any:
        wire = {
            name: value
            for name, value in asked.items()
            if isinstance(value, list | dict) and name not in _NOT_IN_BODY
        }
        rest = {name: value for name, value in asked.items() if name not in wire}
        return await create(**{history: []} | rest, extra_body={**wire, **(extra_body or {})})

    return lean
