"""A run's messages so far: a sequence that grows by one turn in constant time.

Every `Transcript` is immutable. Those of one run share a list, of which each sees its own length;
only adding to one that is not the longest copies.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import overload

from durable_nb.model.messages import Call, Message


class Transcript(Sequence[Message]):
    """The messages of a run. `replies` counts the assistant's among them."""

    __slots__ = ("_askers", "_instructions", "_length", "_shared", "replies")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._shared: list[Message] = []
        self._askers: dict[str, int] = {}  # the id of each call, and which message asked for it
        self._instructions: list[int] = []  # the places of what the user said
        self._length = self.replies = 0
        self._extend(messages)

    def plus(self, messages: Sequence[Message]) -> Transcript:
        """This transcript with `messages` after it; this one stays as it is."""
        if not messages:
            return self
        grown = self._sharing() if len(self._shared) == self._length else Transcript(self)
        grown._extend(messages)
        return grown

    def has_asked(self, call_id: str) -> bool:
        """Whether one of its replies holds a call of that id."""
        return self._askers.get(call_id, self._length) < self._length

    def instruction(self, before: int) -> int:
        """The place of the newest thing that the user said before that place; 0 if there is none."""
        known = bisect_left(self._instructions, before)
        return self._instructions[known - 1] if known else 0

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

    def __reversed__(self) -> Iterator[Message]:
        return (self._shared[at] for at in range(self._length - 1, -1, -1))

    def __iter__(self) -> Iterator[Message]:
        return islice(self._shared, self._length)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transcript) and self[:] == other[:]

    __hash__ = None  # type: ignore[assignment]  # compared by content, which holds dicts

    def __repr__(self) -> str:
        return f"Transcript({list(self)!r})"

    def _sharing(self) -> Transcript:
        """This transcript again, for one that goes on from its tip."""
        again = Transcript.__new__(Transcript)
        again._shared, again._askers = self._shared, self._askers
        again._length, again.replies = self._length, self.replies
        again._instructions = self._instructions
        return again

    def _extend(self, messages: Iterable[Message]) -> None:
        for message in messages:
            for call in message.tool_calls:
                self._askers.setdefault(call.id, self._length)
            self._shared.append(message)
            if message.role == "user":
                self._instructions.append(self._length)
            elif message.role == "assistant":
                self.replies += 1
            self._length += 1
