"""What goes wrong between a provider and its client, and when."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal[
    "status",  # an answer with `status` and the provider's error body
    "reset",  # the connection is reset before the first header
    "cut",  # the connection is reset in mid-stream
    "ended",  # the stream ends well-formed, without its last events
    "stall",  # never another byte
    "event",  # an error as an event of the stream
    "garbage",  # an event that is no JSON
    "html",  # a page with status 200
    "echo",  # 401, and the key it was sent is in the message
    "too long",  # 400: the context is over the model's limit
]


@dataclass(frozen=True, slots=True)
class Trouble:
    """One request's fate. `after` is how many events of the stream come before it."""

    kind: Kind
    status: int = 500
    retry_after: str | None = None
    after: int = 2


Plan: TypeAlias = Callable[[int], Trouble | None]

PASSING = (
    Trouble("status", 429, "0"),
    Trouble("status", 500),
    Trouble("status", 503),
    Trouble("status", 529),
    Trouble("reset"),
    Trouble("cut"),
    Trouble("ended"),
    Trouble("event"),
    Trouble("garbage"),
)
"""What a second attempt may be spared."""


def planned(troubles: Mapping[int, Trouble] | Plan | None) -> Plan:
    """The trouble of each request, which are counted from 1."""
    if callable(troubles):
        return troubles
    return (troubles or {}).get


def at_random(seed: int, *, rate: float = 0.3) -> Plan:
    """Trouble that passes, at random: the same for the same seed and number of the request."""

    def plan(number: int) -> Trouble | None:
        chance = random.Random(f"{seed} {number}")
        return chance.choice(PASSING) if chance.random() < rate else None

    return plan
