"""From a model's name to pydantic-ai's model of it, with a client that asks once; and back.

Addresses come from the variables that pydantic-ai's providers and their libraries know:
OPENAI_BASE_URL, ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL, OLLAMA_BASE_URL and the like. A key
never leaves the process: what does is a name, or a model that has no client.
"""

from __future__ import annotations

import os
import re

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel

from durable_nb.llm.lean import made_lean
from durable_nb.llm.leaving import watch
from durable_nb.llm.named import COMPATIBLE, COMPATIBLE_KEY, Named, named
from durable_nb.llm.proxies import spare_loopback
from durable_nb.llm.secrets import scrubbed
from durable_nb.model.errors import InvalidInput

_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")


def connected(source: Named) -> Model:
    """The model of that name, ready to be asked on the running loop.

    Raises `InvalidInput` where the environment lacks what the provider needs, naming the variable.
    """
    made = _made(source)
    if isinstance(made, Exception):  # raised where it is in no chain: an address may hold a key
        raise InvalidInput(_lacking(source.name, scrubbed(str(made) or repr(made))))
    made_lean(made)
    spare_loopback(made)
    watch(made)
    return made


def portable(model: Model) -> Model | Named:
    """What stands in a pickle for a model that the user made: itself if it has no client, else a
    name of which the same model is made, if the environment has its key and its address.

    Raises `InvalidInput` if nothing can.
    """
    if isinstance(model, TestModel | FunctionModel):
        return model
    for provider in (model.system, f"{model.system}-chat", f"{model.system}-responses"):
        try:
            source = named(f"{provider}:{model.model_name}")
            if _is_same(connected(source), model):
                return source
        except (InvalidInput, UserError):
            continue
    raise InvalidInput(
        f"{type(model).__name__}({model.model_name!r}) holds a client, which does not leave this "
        f"process with its key; set the key in the environment and name the model instead, as in "
        f"llm='{model.system}:{model.model_name}'"
    )


def key_of(model: Model) -> str | None:
    """The key that a model's client was made with, where it is known."""
    client = getattr(model, "client", None)
    inner = getattr(client, "_api_client", client)  # google-genai keeps it one step deeper
    key = getattr(inner, "api_key", None)
    return key if isinstance(key, str) else None


def _made(source: Named) -> Model | Exception:
    try:
        return _compatible(source) if source.provider == COMPATIBLE else infer_model(source.name)
    except Exception as error:  # noqa: BLE001  # a provider's client may refuse in any way
        return error


def _compatible(source: Named) -> Model:
    """A server that speaks as OpenAI does. OpenAI's own key is never sent to it."""
    from pydantic_ai.models.openai import OpenAIChatModel  # not there for everybody
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    key = os.environ.get(COMPATIBLE_KEY)
    provider = OpenAICompatibleProvider(COMPATIBLE, base_url=source.url or "", api_key=key)
    return OpenAIChatModel(source.model, provider=provider)


def _lacking(name: str, why: str) -> str:
    variables = list(dict.fromkeys(_VARIABLE.findall(why)))
    if not variables:
        return f"llm={name!r} cannot be used: {why}"
    wanted = " or ".join(variables)
    return f"llm={name!r} is not set up: set the environment variable {wanted}, then go on"


def _is_same(made: Model, given: Model) -> bool:
    """Whether a model that was made of a name asks as the one that was given."""
    return (
        type(made) is type(given)
        and not given.settings
        and made.base_url == given.base_url
        and key_of(made) is not None
        and key_of(made) == key_of(given)
    )
