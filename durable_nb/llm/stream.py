"""The text of a reply while it comes: from the model that makes it to whoever watches the run.

What is heard is for the eyes alone: it may be lost, and a reply that is asked for again starts anew.
The log holds whole replies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

Listener: TypeAlias = Callable[[str], object]

_listener: ContextVar[Listener | None] = ContextVar("durable_nb listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Runs that are driven inside of the block tell `listener` the text of their replies: all that
    has come of the present one, each time there is more; `""` when one is asked for. It is called
    on the model's thread and has to be quick."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(text: str) -> None:
    """Say how far the reply has come, if anybody listens."""
    if (listener := _listener.get()) is not None:
        listener(text)


def is_heard() -> bool:
    """Whether anybody listens here."""
    return _listener.get() is not None
