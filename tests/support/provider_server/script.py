"""What a provider is to answer, whatever format it speaks.

Reply n answers a history that holds n replies, so any process can go on with it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from durable_nb.model.messages import Call, Usage

Manner: TypeAlias = Literal[
    "no usage",  # what was used is not told
    "one index",  # every call has the index 0
    "names again",  # each piece of a call says its name again
    "ids again",  # and its id
    "an id a piece",  # each piece of a call has another id
    "late ids",  # the first piece of a call has none
    "by turns",  # calls come at the same time, each piece with its id
]


@dataclass(frozen=True, slots=True)
class Said:
    """One reply. `ids` are those of its calls, if not the provider's own; `manners` are those of
    servers that speak as OpenAI's Chat Completions do, in their own way."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    usage: Usage = Usage(10, 5)
    ids: tuple[str, ...] | None = None
    manners: tuple[Manner, ...] = ()

    def named(self, number: int) -> list[tuple[str, Call]]:
        """The calls of reply `number`, each with its id."""
        ids = self.ids or [f"call_{number}_{at}" for at in range(len(self.calls))]
        return list(zip(ids, self.calls, strict=True))


Script: TypeAlias = Sequence[Said]


def says(text: str, *, thinking: str = "", usage: Usage = Usage(10, 5)) -> Said:
    """A reply of text alone, which ends a run."""
    return Said(text, thinking=thinking, usage=usage)


def asks(*calls: Call, text: str = "", thinking: str = "", ids: Sequence[str] = ()) -> Said:
    """A reply that asks for tools."""
    return Said(text, calls, thinking, ids=tuple(ids) or None)


def pieces(text: str) -> list[str]:
    """The text as it is streamed: a word at a time."""
    return re.findall(r"\S+\s*|\s+", text)


def arguments_text(call: Call) -> str:
    """The arguments as a model writes them."""
    if isinstance(call.arguments, str):
        return call.arguments
    return json.dumps(dict(call.arguments))


def signature(thinking: str) -> str:
    """What a provider seals its thinking with, so that nobody changes it."""
    return hashlib.blake2b(thinking.encode(), digest_size=12).hexdigest()
