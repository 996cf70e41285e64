"""A run as lengths of time: what it was at, from when to when, and what its turns used. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from durable_nb.core.calls import model_calls
from durable_nb.core.nodes import node_id
from durable_nb.model.entries import Answer, End, Log, Pause, Reentry, Row, ToolCall, Turn
from durable_nb.model.messages import Usage

Lane: TypeAlias = Literal["model", "tools", "waits", "stopped"]
LANES: tuple[Lane, ...] = ("model", "tools", "waits", "stopped")
WORK: tuple[Lane, ...] = ("model", "tools")


@dataclass(frozen=True, slots=True)
class Span:
    """What a run was at: a model or a tool that worked, a person who was waited for, or nobody,
    since its process had died or it had failed. `seconds` is how long, `what` the node."""

    lane: Lane
    what: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Bar:
    """What a turn used, or several that follow one another. `first` and `last` are their numbers,
    `lost` counts requests whose reply was never stored."""

    first: int
    last: int
    value: float
    lost: int = 0


def spans(log: Log) -> list[Span]:
    """What the run's own rows say that it was at, one after the other; the newest row, which has
    no end yet, is not among them. Clocks differ: a length below zero is none."""
    return [
        Span(_lane(row, after), node_id(row.entry), max(0.0, (after.at - row.at) / 1e6))
        for row, after in pairwise(log.own)
        if not (isinstance(after.entry, End) and isinstance(row.entry, End))
    ]


def shown_lengths(found: Sequence[Span]) -> list[float]:
    """How long each is drawn. A person may take a week: together, what is no work takes at most as
    much room as what is."""
    work = sum(span.seconds for span in found if span.lane in WORK)
    rests = sorted(span.seconds for span in found if span.lane not in WORK)
    most = _level(rests, work) if work else max(rests, default=0.0)
    return [span.seconds if span.lane in WORK else min(span.seconds, most) for span in found]


def bars(log: Log, of: Callable[[Usage], float], most: int) -> list[Bar]:
    """What the run's turns used, at most so many bars: of many turns several share one."""
    turns = {row.number: row.entry.turn for row in log.rows if isinstance(row.entry, Turn)}
    by_turn: dict[int, Bar] = {}
    for call in model_calls(log):
        turn = turns[call.number]
        bar = by_turn.get(turn, Bar(turn, turn, 0.0))
        lost = bar.lost + (call.outcome == "lost")
        by_turn[turn] = Bar(turn, turn, bar.value + of(call.usage), lost)
    return joined([by_turn[turn] for turn in sorted(by_turn)], most)


def joined(found: Sequence[Bar], most: int) -> list[Bar]:
    """The same in at most so many bars."""
    size = -(-len(found) // most) or 1
    groups = (found[at : at + size] for at in range(0, len(found), size))
    return [
        Bar(
            group[0].first,
            group[-1].last,
            sum(bar.value for bar in group),
            sum(bar.lost for bar in group),
        )
        for group in groups
    ]


def _lane(row: Row, after: Row) -> Lane:
    match row.entry, after.entry:
        case Pause(), _:
            return "waits"
        case End(), _:
            return "stopped"
        case _, Reentry():
            return "stopped"
        case (ToolCall() | Answer(), _) | (Reentry(tool=str()), _):
            return "tools"
        case _:
            return "model"


def _level(rests: Sequence[float], room: float) -> float:
    """The length at which to cut, so that what is no work takes no more than this room."""
    left = room
    for at, seconds in enumerate(rests):
        share = left / (len(rests) - at)
        if seconds > share:
            return share
        left -= seconds
    return max(rests, default=0.0)
