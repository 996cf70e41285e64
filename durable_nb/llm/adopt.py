"""What `Agent(llm=...)` takes, as a model: an object with `complete`, a name, a model of pydantic-ai's.

Nothing of a provider is imported here; that waits for the first question.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from durable_nb.llm.hosted import HostedModel
from durable_nb.llm.local import LocalModel
from durable_nb.llm.named import named
from durable_nb.llm.settings import checked_settings
from durable_nb.model.errors import InvalidInput

if TYPE_CHECKING:
    import pydantic_ai.models

    from durable_nb.llm.protocol import Model


def as_model(llm: object, settings: Mapping[str, Any] | None = None) -> Model:
    """The model that `llm` stands for. `settings` are pydantic-ai's, for what goes through it.

    Raises `InvalidInput` for what stands for none: it says what to write or to install instead.
    """
    wanted = checked_settings(settings)
    if llm == "local":
        return LocalModel(wanted)
    if isinstance(llm, str):
        source = named(llm)
        return HostedModel(source.name, source, wanted)
    if isinstance(llm, type):
        raise InvalidInput(f"llm={llm!r} is a class; make a model of it: llm={llm.__name__}(...)")
    if callable(getattr(llm, "complete", None)):
        _check_none(wanted, llm)
        return cast("Model", llm)
    if _is_pydantic_ai(llm):
        theirs = cast("pydantic_ai.models.Model", llm)
        return HostedModel(f"{theirs.system}:{theirs.model_name}", theirs, wanted)
    raise InvalidInput(
        f"llm={llm!r} is no model; pass a name such as 'openai:gpt-5', an object with "
        "complete(messages, tools) -> Reply, or a model of pydantic-ai's"
    )


def _check_none(settings: Mapping[str, Any], llm: object) -> None:
    if settings:
        raise InvalidInput(
            f"model_settings go to a model by name or one of pydantic-ai's; {llm!r} has its own"
        )


def _is_pydantic_ai(llm: object) -> bool:
    """Whether an object has the interface of pydantic-ai's models."""
    return callable(getattr(llm, "request", None)) and all(
        isinstance(getattr(llm, name, None), str) for name in ("system", "model_name")
    )
