"""`model_settings`: what is asked of a model beside its messages, in pydantic-ai's words.

They travel with an agent and are seen by whoever reads it, so a key is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from durable_nb.core.near import did_you_mean
from durable_nb.llm.named import MODULES
from durable_nb.llm.secrets import scrubbed
from durable_nb.model.errors import InvalidInput

MAX_RETRIES = 4

COMMON = [
    *["cache", "extra_body", "extra_headers", "first_event_timeout", "framing_announcement"],
    *["frequency_penalty", "logit_bias", "max_retries", "max_tokens", "parallel_tool_calls"],
    *["presence_penalty", "request_timeout", "seed", "service_tier", "stop_sequences"],
    *["temperature", "thinking", "timeout", "tool_choice", "top_k", "top_p"],
]
"""What pydantic-ai takes for every provider. Those of one provider begin with its name."""

_OWN = tuple(f"{provider.replace('-', '_')}_" for provider in MODULES)
_SECRET_NAME = re.compile(
    r"api[-_]?key|authorization|secret|password|credential|[-_]token$|^token$"
)
_SECRET_VALUE = re.compile(r"(Bearer|Basic) \S|sk-\S")


def checked_settings(settings: object) -> dict[str, Any]:
    """The settings as a mapping of one's own. Raises `InvalidInput` for what is none, for a name
    that is not known, and for a key."""
    if settings is None:
        return {}
    if not isinstance(settings, Mapping) or not all(isinstance(name, str) for name in settings):
        raise InvalidInput(
            f"model_settings is a mapping, as in {{'temperature': 0}}, not {settings!r}"
        )
    for name, value in _items(settings):
        named_so = _SECRET_NAME.search(name.lower())
        if named_so or _SECRET_VALUE.match(value) or scrubbed(value) != value:
            raise InvalidInput(
                f"model_settings has a key in it, under {name!r}; keys come from the environment "
                "alone, for example as OPENAI_API_KEY"
            )
    for name in settings:
        if name not in COMMON and not name.startswith(_OWN):
            raise InvalidInput(f"model_settings has no {name!r}{did_you_mean(name, COMMON)}")
    retries = settings.get("max_retries", MAX_RETRIES)
    if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
        raise InvalidInput(f"max_retries is a whole number from 0 on, not {retries!r}")
    return dict(settings)


def _items(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Every name in a value, and every text with the name it goes under."""
    match value:
        case str():
            yield name, value
        case Mapping():
            for inner_name, inner in value.items():
                yield str(inner_name), ""
                yield from _items(inner, str(inner_name))
        case list() | tuple():
            for inner in value:
                yield from _items(inner, name)
