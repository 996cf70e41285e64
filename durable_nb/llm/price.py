"""What a reply has cost, from the prices that come with pydantic-ai. The network is never asked."""

from __future__ import annotations

from pydantic_ai.messages import ModelResponse

from durable_nb.llm.named import COMPATIBLE

_UNPRICED = (COMPATIBLE, "ollama")  # somebody's own server, whatever its models are called


def price_of(response: ModelResponse) -> float | None:
    """In US dollars; None where the price or the usage is not known."""
    if not response.model_name or response.provider_name in _UNPRICED:
        return None
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError):
        return None
