"""A model of pydantic-ai's that the user made, and how it leaves the process: without its key.

One without a client goes as it is. One with a client goes as a name, of which the same model can be
made there: if the environment has the same key, and the address is the same.
"""

from __future__ import annotations

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel

from durable_nb.llm.connect import connected
from durable_nb.llm.named import Named, named
from durable_nb.model.errors import InvalidInput


def portable(model: Model) -> Model | Named:
    """What stands for a model in a pickle. Raises `InvalidInput` if nothing can."""
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


def _is_same(made: Model, given: Model) -> bool:
    """Whether a model that was made of a name asks as the one that was given."""
    return (
        type(made) is type(given)
        and not given.settings
        and made.base_url == given.base_url
        and key_of(made) is not None
        and key_of(made) == key_of(given)
    )


def key_of(model: Model) -> str | None:
    """The key that a model's client was made with, where it is known."""
    client = getattr(model, "client", None)
    inner = getattr(client, "_api_client", client)  # google-genai keeps it one step deeper
    key = getattr(inner, "api_key", None)
    return key if isinstance(key, str) else None
