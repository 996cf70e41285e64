"""What the inbox says of the runs that wait, as data: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from durable_nb.notebook.parts import Commands, Fields, Fold, Part, Say
from durable_nb.notebook.portrait import Portrait
from durable_nb.notebook.render import html, text
from durable_nb.notebook.words import head

BRIEF = 100  # characters of a context in short

_AGES = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True, slots=True)
class Waiting:
    """A run that waits: for a person, or, `crashed`, for somebody to go on with it. One that is
    `damaged` waits for a copy of its store."""

    execution_id: str
    agent: str
    kind: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Shown:
    """Which of how many are shown: `first` counts from 0."""

    first: int
    most: int
    total: int

    @property
    def last(self) -> int:
        return min(self.first + self.most, self.total)

    def __str__(self) -> str:
        return f"{self.first + 1} to {self.last} of {self.total:,}"


def row_portrait(card: Portrait, waiting: Waiting, now: datetime, *, typed: bool) -> Portrait:
    """A run's card as one row of the inbox: without its steps, its context in a line that opens.
    `typed` keeps what to type, for where nothing can be clicked."""
    age = (f"waits {ago(now - waiting.since)}",) if waits(card) else ()
    facts = (*card.facts[:1], *age, *card.facts[1:])
    return replace(card, facts=facts, parts=tuple(_short(card.parts, typed=typed)))


def waits(card: Portrait) -> bool:
    """Whether there is still something to decide."""
    return card.tone in ("amber", "red")


def overview(
    name: str,
    all_waiting: Sequence[Waiting],
    shown: Shown,
    rows: Iterable[Portrait],
    now: datetime,
    *,
    fold: bool,
) -> dict[str, str]:
    """The inbox in both forms. Its rows stand behind a fold where they have widgets of their own."""
    top = _top(name, all_waiting, now)
    lines = tuple(_lines(rows, shown))
    said = Fold("as text, with what to type", lines)
    drawn = replace(top, parts=(said,) if fold and lines else lines)
    return {"text/html": html(drawn), "text/plain": text(replace(top, parts=lines))}


def ago(age: timedelta) -> str:
    """An age in one unit: `5 min`, `3 h`, `2 d`."""
    seconds = max(0, int(age.total_seconds()))
    size, unit = next((each for each in _AGES if seconds >= each[0]), (1, "s"))
    return f"{seconds // size:,} {unit}"


def _top(name: str, waiting: Sequence[Waiting], now: datetime) -> Portrait:
    if not waiting:
        return Portrait("green", "✓", "nothing waits for you", name, ())
    kinds = Counter(each.kind for each in waiting)
    counts = [f"{kinds[kind]:,} {words}" for kind, words in _KINDS.items() if kinds[kind]]
    facts = (*counts, f"the oldest for {ago(now - waiting[0].since)}")
    many = f"{len(waiting):,} {'waits' if len(waiting) == 1 else 'wait'} for you"
    return Portrait("amber", "●", many, name, facts)


_KINDS: Mapping[str, str] = {
    "approval": "to approve",
    "in_doubt": "in doubt",
    "crashed": "died in a step",
    "damaged": "cannot be read",
}


def _lines(rows: Iterable[Portrait], shown: Shown) -> Iterator[Part]:
    for row in rows:
        facts = " · ".join((row.headline, row.execution_id, *row.facts))
        yield Say(f"{row.glyph} {facts}", code=row.execution_id)
        yield from row.parts
    if shown.last - shown.first < shown.total:
        yield Say(f"Shown: {shown}. All of them: %durable pending, or views.pending()")


def _short(parts: Iterable[Part], *, typed: bool) -> Iterator[Part]:
    for part in parts:
        match part:
            case Commands() if not typed:
                pass
            case Fields(title, values) if values:
                brief = ", ".join(f"{name}={value}" if name else value for name, value in values)
                yield Fold(_in_short(title), (Fields("", values),), _in_short(brief))
            case _:
                yield part


def _in_short(text: str) -> str:
    return head(" ".join(text.split()), BRIEF)
