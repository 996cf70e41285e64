"""What a kill did to a run, held against the same run without one. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from durable_nb.lab.points import Point

Verdict: TypeAlias = Literal["exact", "repeated", "lost", "diverged", "stuck"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True, slots=True)
class World:
    """What a run left behind. `stuck` says why it did not come to its end, if it did not."""

    effects: tuple[str, ...] = ()
    model_calls: int = 0
    output: str | None = None
    tree: str = ""
    doubts: int = 0
    stuck: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One verdict: why, in words, and the effects that happened `again`."""

    verdict: Verdict
    words: str
    again: tuple[str, ...] = ()


def judge(world: World, whole: World, point: Point) -> Finding:
    """`exact`: effects, output and files are those of the whole run, and no more model calls were
    made than its own and the one that was in flight. `repeated`: something happened once more than
    that; `lost`: something did not happen; `diverged`: something else did; `stuck`: it did not end.
    """
    if world.stuck:
        return Finding("stuck", world.stuck)
    again, missing = _compared(world.effects, whole.effects)
    strange = sorted(set(again) - set(whole.effects))
    if strange or (again and missing):
        return Finding("diverged", f"other effects: {_listed(strange or again)}", tuple(again))
    if missing:
        return Finding("lost", f"did not happen: {_listed(missing)}")
    if again:
        return Finding(
            "repeated", f"happened again: {_listed(again)}{_doubted(world)}", tuple(again)
        )
    return _without_effects(world, whole, point)


def _without_effects(world: World, whole: World, point: Point) -> Finding:
    """The verdict on a run whose effects are all as they should be."""
    if world.output != whole.output:
        return Finding("diverged", f"answered {world.output!r} instead of {whole.output!r}")
    if world.tree != whole.tree:
        return Finding("diverged", "left other files behind")
    more = world.model_calls - whole.model_calls
    if more > point.asks:
        return Finding("repeated", f"the model was asked {_times(more)} more")
    if more < 0:
        return Finding("diverged", f"the model was asked {_times(-more)} less")
    return Finding(
        "exact", "the model call in flight was made again" if more else "as without a crash"
    )


def _compared(found: Sequence[str], wanted: Sequence[str]) -> tuple[list[str], list[str]]:
    more, less = Counter(found) - Counter(wanted), Counter(wanted) - Counter(found)
    return sorted(more.elements()), sorted(less.elements())


def _doubted(world: World) -> str:
    return " (it was in doubt, and was told to run again)" if world.doubts else ""


def _listed(effects: Sequence[str]) -> str:
    first = ", ".join(effects[:3])
    return first if len(effects) <= 3 else f"{first} and {len(effects) - 3} more"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
