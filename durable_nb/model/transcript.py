"""A run's messages so far: a sequence that grows by one turn in constant time.

Every `Transcript` is immutable. Those of one run share a list, of which each sees its own length;
only adding to one that is not the longest copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import overload

from durable_nb.model.messages import Call, Message


class Transcript(Sequence[Message]):
    """The messages a model is sent. `replies` counts the assistant's among them."""

    __slots__ = ("_length", "_shared", "replies")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._shared = list(messages)
        self._length = len(self._shared)
        self.replies = _replies(self._shared)

    def plus(self, messages: Sequence[Message]) -> Transcript:
        """This transcript with `messages` after it; this one stays as it is."""
        if not messages:
            return self
        grown = Transcript.__new__(Transcript)
        at_the_tip = len(self._shared) == self._length
        grown._shared = self._shared if at_the_tip else self._shared[: self._length]
        grown._shared.extend(messages)
        grown._length = self._length + len(messages)
        grown.replies = self.replies + _replies(messages)
        return grown

    def open_calls(self, said: Sequence[Message] = ()) -> tuple[Call, ...]:
        """The calls of the last reply that have no result yet, in the order they were asked,
        once `said` comes after this transcript."""
        settled: set[str | None] = set()
        for message in chain(reversed(said), reversed(self)):
            if message.role == "assistant":
                return tuple(call for call in message.tool_calls if call.id not in settled)
            settled.add(message.tool_call_id)
        return ()

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            return tuple(self._shared[at] for at in range(*index.indices(self._length)))
        if not -self._length <= index < self._length:
            raise IndexError(f"message {index} of {self._length}")
        return self._shared[index % self._length]

    def __iter__(self) -> Iterator[Message]:
        return islice(self._shared, self._length)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transcript) and self[:] == other[:]

    __hash__ = None  # type: ignore[assignment]  # compared by content, which holds dicts

    def __repr__(self) -> str:
        return f"Transcript({list(self)!r})"


def _replies(messages: Iterable[Message]) -> int:
    return sum(message.role == "assistant" for message in messages)
