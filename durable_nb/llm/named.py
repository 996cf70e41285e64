"""Models by name: `"PROVIDER:MODEL"`, checked without importing anything of a provider.

The providers are those of pydantic-ai; `openai-compatible:MODEL@URL` is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from urllib.parse import urlsplit

from durable_nb.core.near import did_you_mean
from durable_nb.model.errors import InvalidInput

COMPATIBLE = "openai-compatible"
COMPATIBLE_KEY = "OPENAI_COMPATIBLE_API_KEY"

_OPENAI = (
    "openai openai-chat openai-responses openai-codex openai-chatgpt alibaba azure azure-responses "
    "cerebras crusoe deepseek fireworks github github-copilot heroku litellm meta moonshotai nebius "
    "ollama openrouter ovhcloud sambanova snowflake together vercel vllm zai"
)
_OTHERS = {
    "anthropic": "anthropic",
    "bedrock": "boto3",
    "bedrock-mantle": "openai",
    "cohere": "cohere",
    "google": "google.genai",
    "google-cloud": "google.genai",
    "groq": "groq",
    "huggingface": "huggingface_hub",
    "mistral": "mistralai",
    "system-one": "pydantic_ai",
    "typesafe": "pydantic_ai",
    "xai": "xai_sdk",
}
MODULES = {**dict.fromkeys([COMPATIBLE, *_OPENAI.split()], "openai"), **_OTHERS}
"""What has to be installed for each provider beside pydantic-ai."""

_OURS = {"openai", "anthropic", "google.genai", "pydantic_ai"}  # what the extra brings
_EXTRAS = {"boto3": "bedrock", "huggingface_hub": "huggingface", "mistralai": "mistral"}
_FAMILIES = {"gpt": "openai", "claude": "anthropic", "gemini": "google", "llama": "ollama"}


@dataclass(frozen=True, slots=True)
class Named:
    """A model's name, taken apart. `url` is that of an `openai-compatible` server."""

    name: str
    provider: str
    model: str
    url: str | None = None


def named(text: str) -> Named:
    """The name taken apart. Raises `InvalidInput` for one that leads nowhere, or nowhere yet:
    an unknown provider, or one whose library is not installed."""
    provider, colon, model = text.partition(":")
    route = provider.removeprefix("gateway/")
    if not colon or route not in MODULES or (route == COMPATIBLE and route != provider):
        raise InvalidInput(f"llm={text!r} {_unknown(provider, with_model=bool(colon))}")
    found = _compatible(text, model) if provider == COMPATIBLE else Named(text, provider, model)
    if not found.model or found.model.isspace():
        raise InvalidInput(f"llm={text!r} names no model; write {provider}:MODEL")
    _check_installed(text, MODULES[route])
    return found


def _unknown(provider: str, *, with_model: bool) -> str:
    if with_model:
        near = did_you_mean(provider, MODULES)
        return f"names no provider that is known; write PROVIDER:MODEL, as in openai:gpt-5{near}"
    near = did_you_mean(provider, ["local", *MODULES])
    for start, family in _FAMILIES.items():
        if provider.startswith(start):
            near = f"; did you mean {family}:{provider}?"
    return f"is no model: a name is PROVIDER:MODEL, as in openai:gpt-5, or local{near}"


def _compatible(text: str, rest: str) -> Named:
    """The parts of `openai-compatible:MODEL@URL`. The URL carries no key: it would be recorded."""
    model, _, url = rest.rpartition("@")
    shown = f"llm='{COMPATIBLE}:…'"
    try:
        parts = urlsplit(url)
        port_is_valid = parts.port is None or parts.port > 0
    except ValueError:
        port_is_valid = False
    if "@" in model or (port_is_valid and (parts.query or parts.fragment or parts.username)):
        raise InvalidInput(
            f"{shown}: the address has a user, a password or a query in it, which would be recorded "
            f"with every run; set the key as {COMPATIBLE_KEY} instead"
        )
    if not port_is_valid or parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput(
            f"llm={text!r} has no address; write {COMPATIBLE}:MODEL@http://127.0.0.1:8000/v1"
        )
    return Named(text, COMPATIBLE, model, url)


def _check_installed(text: str, module: str) -> None:
    for each in ("pydantic_ai", module):
        if not _is_installed(each):
            extra = f"pydantic-ai-slim[{_EXTRAS.get(module, module.partition('_')[0])}]"
            wanted = "durable_nb[models]" if each in _OURS else extra
            raise InvalidInput(f"llm={text!r} needs what is not installed: pip install '{wanted}'")


def _is_installed(module: str) -> bool:
    """Whether a module can be found. Of a dotted name the package it is in is imported."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
