"""From a model's name to pydantic-ai's model of it, with a client that asks once.

Addresses come from the variables that pydantic-ai's providers and their libraries know:
OPENAI_BASE_URL, ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL, OLLAMA_BASE_URL and the like.
"""

from __future__ import annotations

import os
import re

from pydantic_ai.models import Model, infer_model

from durable_nb.llm.lean import made_lean
from durable_nb.llm.named import COMPATIBLE, Named
from durable_nb.llm.secrets import scrubbed
from durable_nb.model.errors import InvalidInput

COMPATIBLE_KEY = "OPENAI_COMPATIBLE_API_KEY"
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")


def connected(named: Named) -> Model:
    """The model of that name, ready to be asked on the running loop.

    Raises `InvalidInput` where the environment lacks what the provider needs, naming the variable.
    """
    made = _made(named)
    if isinstance(made, Exception):  # raised where it is in no chain: an address may hold a key
        raise InvalidInput(_lacking(named.name, scrubbed(str(made) or repr(made))))
    made_lean(made)
    return made


def _made(named: Named) -> Model | Exception:
    try:
        return _compatible(named) if named.provider == COMPATIBLE else infer_model(named.name)
    except Exception as error:  # noqa: BLE001  # a provider's client may refuse in any way
        return error


def _compatible(named: Named) -> Model:
    """A server that speaks as OpenAI does. OpenAI's own key is never sent to it."""
    from pydantic_ai.models.openai import OpenAIChatModel  # not there for everybody
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    key = os.environ.get(COMPATIBLE_KEY)
    provider = OpenAICompatibleProvider(COMPATIBLE, base_url=named.url or "", api_key=key)
    return OpenAIChatModel(named.model, provider=provider)


def _lacking(name: str, why: str) -> str:
    variables = list(dict.fromkeys(_VARIABLE.findall(why)))
    if not variables:
        return f"llm={name!r} cannot be used: {why}"
    wanted = " or ".join(variables)
    return f"llm={name!r} is not set up: set the environment variable {wanted}, then go on"
