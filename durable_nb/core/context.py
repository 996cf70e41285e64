"""What of a history is sent where all of it is too long for the model. What is stored stays.

Sent are the system prompt and the newest part of the rest that fits, cut where no call is parted
from its results, with the instruction that was being followed there before it: so the newest one is
always sent. A cut makes room for more than the next turn, so that most turns send what was sent
before and more (which is what providers keep cached).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import overload

from durable_nb.model.messages import Message, Trim
from durable_nb.model.transcript import Transcript
from durable_nb.model.values import Json, dumps, freeze

BYTES_PER_TOKEN = 3  # English has 4 and more, JSON and most other scripts about 3
FRAMING = 4  # tokens that a provider's format spends on a message or a call
ROOM = 4  # a cut leaves one part in so many free


class Excerpt(Sequence[Message]):
    """The messages that are sent of a longer history, at those places of it. `replies` counts all
    of the history's: the next one has that number."""

    def __init__(self, history: Transcript, *places: range) -> None:
        self._history, self._places = history, places
        self._length = sum(map(len, places))
        self.replies = history.replies

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Message]:
        return (self._history[at] for at in chain(*self._places))

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        return tuple(self)[index]


class Gauge:
    """How long a run's messages are: each is measured once, whoever asks how often."""

    def __init__(self) -> None:
        self._sums = [0]

    def tokens(self, transcript: Transcript, start: int) -> int:
        """About how many tokens the messages from `start` on come to, on the safe side."""
        for message in transcript[len(self._sums) - 1 :]:
            self._sums.append(self._sums[-1] + tokens_of(message))
        return self._sums[len(transcript)] - self._sums[start]


def tokens_of(message: Message) -> int:
    """About how many tokens a message is, what its provider needs back included."""
    parts = [message.content, *(_text(call.arguments) + call.tool for call in message.tool_calls)]
    return sum(map(text_tokens, parts)) + (
        text_tokens(_text(message.extra)) if message.extra else 0
    )


def text_tokens(text: str) -> int:
    """About how many tokens a text is, its framing included."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return FRAMING + -(-size // BYTES_PER_TOKEN)


def offer_tokens(name: str, description: str, schema: Json) -> int:
    """About how many tokens a request spends on saying that there is such a tool."""
    return text_tokens(f"{name}{description}{dumps(schema)}")


def excerpt(
    transcript: Transcript, limit: int, gauge: Gauge, *, start: int = 0
) -> tuple[Sequence[Message], Trim | None]:
    """What to send of a history within `limit` tokens, and what that leaves out, if anything.

    `start` is where the last cut was, which stands if no more would have fitted. Where not even
    the newest messages fit, they are sent all the same: what the model is asked now has to reach it.
    """
    before = gauge.tokens(transcript, 0)
    if before <= limit:
        return transcript, None
    cut = _Cut(transcript, gauge)
    start, roomy = max(start, cut.head), limit - limit // ROOM
    if cut.size(cut.before(start)) <= roomy:
        start = cut.head  # the limit was lower when that was cut
    if cut.size(start) > limit:
        places = cut.places(range(start, cut.last + 1))
        start = next((at for at in places if cut.size(at) <= roomy), cut.last)
    sent = cut.excerpt(start)
    return sent, Trim(len(transcript) - len(sent), before, cut.size(start), start)


class _Cut:
    """The ways to shorten a history from `head`, the end of its system prompt, on."""

    def __init__(self, transcript: Transcript, gauge: Gauge) -> None:
        self._all, self._gauge = transcript, gauge
        self.head = next(at for at, each in enumerate(transcript) if each.role != "system")
        self.last = max(self._newest_reply(), transcript.instruction(len(transcript)))

    def places(self, among: range) -> Iterator[int]:
        """Those where a history may be cut: results stay with their calls."""
        return (at for at in among if self._all[at].role != "tool")

    def before(self, start: int) -> int:
        """The place before that one where it could be cut, if there is one."""
        return next(self.places(range(start - 1, self.head - 1, -1)), start)

    def excerpt(self, start: int) -> Excerpt:
        """What is sent if it is cut there; the first to speak after the system is the user."""
        rest = range(start, len(self._all))
        if (followed := self._followed(start)) is None:
            return Excerpt(self._all, range(self.head), rest)
        return Excerpt(self._all, range(self.head), range(followed, followed + 1), rest)

    def size(self, start: int) -> int:
        """How many tokens that is."""
        kept = self._gauge.tokens(self._all, start) + self._between(0, self.head)
        if (followed := self._followed(start)) is not None:
            kept += self._between(followed, followed + 1)
        return kept

    def _followed(self, start: int) -> int | None:
        """The place of the instruction that a reply there was following."""
        return None if self._all[start].role == "user" else self._all.instruction(start)

    def _between(self, start: int, stop: int) -> int:
        return self._gauge.tokens(self._all, start) - self._gauge.tokens(self._all, stop)

    def _newest_reply(self) -> int:
        backwards = range(len(self._all) - 1, -1, -1)
        return next((at for at in backwards if self._all[at].role == "assistant"), 0)


def _text(value: object) -> str:
    return value if isinstance(value, str) else dumps(freeze(value))
