"""In words: which line to wrap, so that what happened again does not."""

from __future__ import annotations

from collections.abc import Sequence

from durable_nb.lab.acts import Act
from durable_nb.lab.effects import COMMITS
from durable_nb.lab.verdicts import Finding


def advice(acts: Sequence[Act], finding: Finding, tool_function: str) -> str:
    """What to wrap, from what the tool did at the entry whose step was killed. Empty where nothing
    happened again, and where the step was no tool's."""
    if not finding.again or not tool_function:
        return ""
    told = [act for act in acts if any(_names(act, effect) for effect in finding.again)]
    for act in sorted(told or acts, key=lambda act: act.is_wrapped):
        return _to_wrap(act, tool_function)
    return f"wrap what {tool_function} does to the world in a function that is @idempotent"


def _to_wrap(act: Act, tool_function: str) -> str:
    if act.is_wrapped:
        return (
            f"what {act.tool} wraps was in doubt: it had begun and its result was not on disk. Give "
            'the other side current().call_id as a key, or ask with @idempotent(in_doubt="ask")'
        )
    if act.place is None:
        return f"wrap the call of {act.tool} in a function that is @idempotent"
    line = f": {act.place.source}" if act.place.source else ""
    if act.place.function == tool_function:
        return f"{act.tool}, {act.place}: move this into a function that is @idempotent{line}"
    return f"{act.place.function}, {act.place}: make it @idempotent{line}"


def _names(act: Act, effect: str) -> bool:
    """Whether the effect, `PATH: what is new there`, is on what was acted upon."""
    name = effect.partition(": ")[0]
    if name.startswith(COMMITS):
        return act.event == "subprocess.Popen"
    return act.target.replace("\\", "/").endswith(name)
