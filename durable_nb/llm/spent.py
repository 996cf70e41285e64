"""What a reply has used up: as its provider counts it, else as it is estimated, on the safe side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic_ai.messages import ModelResponse

from durable_nb.core.context import offer_tokens, tokens_of
from durable_nb.llm.named import COMPATIBLE
from durable_nb.llm.protocol import ToolSpec
from durable_nb.model.messages import Message, Usage

_UNPRICED = (COMPATIBLE, "ollama")  # somebody's own server, whatever its models are called


def is_told(response: ModelResponse) -> bool:
    """Whether the provider says how many tokens a reply took. Some servers never do."""
    used = response.usage
    return used.total_tokens > 0 and not used.unmeasured_requests


def usage_of(response: ModelResponse) -> Usage:
    """Tokens as the provider counts them, and what they cost."""
    used = response.usage
    cost = price_of(response)
    return Usage(used.input_tokens, used.output_tokens, used.cache_read_tokens, cost)


def estimated(sent: Iterable[Message], tools: Sequence[ToolSpec], reply: Message) -> Usage:
    """Tokens as a history's are estimated, of what was sent and of what came. No price is known."""
    offered = sum(offer_tokens(each.name, each.description, each.schema) for each in tools)
    return Usage(sum(map(tokens_of, sent)) + offered, tokens_of(reply))


def price_of(response: ModelResponse) -> float | None:
    """In US dollars, from the prices that come with pydantic-ai: the network is never asked. None
    where the price or the usage is not known."""
    if not response.model_name or response.provider_name in _UNPRICED:
        return None
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError):
        return None
