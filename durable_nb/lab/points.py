"""Where a run can be killed: a node or an entry, and a moment of the step that it names. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

from durable_nb.model.errors import InvalidInput

When: TypeAlias = Literal["before", "during", "after"]
How: TypeAlias = Literal["kill", "exit", "stop", "full", "locked"]

RUN_END = "run_end"
WHENS: tuple[When, ...] = get_args(When)
HOWS: tuple[How, ...] = get_args(How)

_NODE = re.compile(r"turn:\d+(?:/tool:(?P<tool>[\w-]+))?|run_end", re.ASCII)
_WITHOUT_A_STEP = ("hitl_pause", RUN_END)  # a row after which the process only lets go of the run


@dataclass(frozen=True, slots=True)
class Point:
    """One moment at one node. `tool` is None for a model turn and for the run's end. With a
    `number`, the entry of that number is meant and no other of the same node."""

    node: str
    when: When
    tool: str | None = None
    number: int | None = None

    def __str__(self) -> str:
        return f"{self.when} {self.node}"

    @property
    def asks(self) -> bool:
        """Whether a model call is lost there: it was made, and its reply is on no disk."""
        return self.tool is None and self.node != RUN_END and self.when != "before"


def point(at: object, when: object) -> Point:
    """The point that is meant. Raises `InvalidInput` for one that no run can have."""
    found = _NODE.fullmatch(at) if isinstance(at, str) else None
    if found is None:
        raise InvalidInput(
            f"at={at!r} names no node; nodes are 'turn:N', 'turn:N/tool:NAME' and 'run_end'"
        )
    moment = next((each for each in WHENS if each == when), None)
    if moment is None:
        raise InvalidInput(f"when={when!r} is no moment; moments are 'before', 'during', 'after'")
    if (found[0], moment) == (RUN_END, "during"):
        raise InvalidInput(
            "'run_end' is a row without a step, so there is no 'during'; kill the run 'before' "
            "(its last row is on disk) or 'after' (it also let go of the run)"
        )
    return Point(found[0], moment, found["tool"])


class Written(NamedTuple):
    """A row of a run, as far as killing it there is concerned."""

    number: int
    node: str
    step_type: str
    tool: str | None


def points(rows: Iterable[Written]) -> Iterator[tuple[Written, Point]]:
    """Every point of a run that wrote these rows, in their order."""
    for row in rows:
        for when in WHENS:
            if when != "during" or row.step_type not in _WITHOUT_A_STEP:
                yield row, Point(row.node, when, row.tool, row.number)
