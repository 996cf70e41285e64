"""Where a run can be killed: a node, and a moment of the step that the node names. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from durable_nb.model.errors import InvalidInput

When: TypeAlias = Literal["before", "during", "after"]

RUN_END = "run_end"

_NODE = re.compile(r"turn:\d+(?:/tool:(?P<tool>[\w-]+))?|run_end", re.ASCII)


@dataclass(frozen=True, slots=True)
class Point:
    """One moment at one node. `tool` is None for a model turn and for the run's end."""

    node: str
    when: When
    tool: str | None = None

    def __str__(self) -> str:
        return f"{self.when} {self.node}"


def point(at: object, when: When) -> Point:
    """The point that is meant. Raises `InvalidInput` for one that no run can have."""
    found = _NODE.fullmatch(at) if isinstance(at, str) else None
    if found is None:
        raise InvalidInput(
            f"at={at!r} names no node; nodes are 'turn:N', 'turn:N/tool:NAME' and 'run_end'"
        )
    if when not in get_args(When):
        raise InvalidInput(f"when={when!r} is no moment; moments are 'before', 'during', 'after'")
    if (found[0], when) == (RUN_END, "during"):
        raise InvalidInput(
            "'run_end' is a row without a step, so there is no 'during'; kill the run 'before' "
            "(its last row is on disk) or 'after' (it also let go of the run)"
        )
    return Point(found[0], when, found["tool"])
