"""What happened when the loop performed a command: past tense."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from durable_nb.model.entries import Asks, OnReject
from durable_nb.model.messages import Asked, Message, Usage


@dataclass(frozen=True, slots=True)
class Replied:
    """The model answered. `refused` maps the id of a call that cannot run to the reason."""

    message: Message
    usage: Usage = Usage()
    refused: Mapping[str, str] = field(default_factory=dict)
    asked: Asked = Asked()


@dataclass(frozen=True, slots=True)
class Returned:
    """The tool is done; `content` is what the model will read, an error's text included."""

    content: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A person is needed: the fields of the `Pause` to write."""

    reason: str
    context: object
    position: int = 0
    on_reject: OnReject = "run"
    asks: Asks = "approval"
    key: str | None = None
    expires_at: int | None = None


@dataclass(frozen=True, slots=True)
class Stopped:
    """A person ended the run."""

    why: str


Event: TypeAlias = Replied | Returned | Interrupted | Stopped
