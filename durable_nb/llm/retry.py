"""When to ask a provider again, and how long to wait before: pure, told the chance."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

FIRST = 0.5  # seconds before the second attempt; doubled before each one after
LONGEST = 30.0
LONGEST_ASKED = 60.0  # of what a provider asks for itself

PASSING = frozenset({408, 409, 425, 429, 529})  # beside the 5xx


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt that brought no reply. One that is `passing` may go well the next time.

    `why` says what the provider said, `hint` what to do about it, `after` how many seconds the
    provider asks to wait.
    """

    why: str
    passing: bool
    status: int | None = None
    after: float | None = None
    hint: str = ""


def is_passing(status: int) -> bool:
    """Whether an HTTP status tells of something that goes by."""
    return status in PASSING or 500 <= status < 600


def status_words(status: int) -> str:
    """`503 Service Unavailable`."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} Overloaded" if status == 529 else str(status)


def pause_before(attempt: int, failure: Failure, chance: float) -> float:
    """Seconds to wait before that attempt, counted from 1: the second half of the back-off is left
    to `chance`, from 0 to 1. What the provider asked for is kept to, up to a limit."""
    backoff: float = min(FIRST * 2 ** (attempt - 1), LONGEST) * (1 + chance) / 2
    return backoff if failure.after is None else max(min(failure.after, LONGEST_ASKED), 0.0)
