"""The agents that are defined in this notebook, found by variable or by name."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from durable_nb.core.near import did_you_mean
from durable_nb.model.errors import InvalidInput, UnknownAgent

if TYPE_CHECKING:
    from durable_nb.runtime.agent import Agent
    from durable_nb.stores.protocol import Checkpointer


def defined(names: Mapping[str, Any]) -> dict[str, Agent]:
    """Every agent here by its variable, each once."""
    module = sys.modules.get("durable_nb.runtime.agent")
    if module is None:  # nobody can have made one
        return {}
    found: dict[int, tuple[str, Agent]] = {}
    for variable, value in list(names.items()):
        if isinstance(value, module.Agent) and not variable.startswith("_"):
            found.setdefault(id(value), (variable, value))
    return dict(found.values())


def store_of(value: object) -> Checkpointer | None:
    """The store that a variable's value is, or that the agent which it is keeps its runs in."""
    if isinstance(value, type):
        return None
    try:
        store = getattr(value, "checkpointer", value)
        is_one = callable(getattr(store, "list_pending_interrupts", None))
    except Exception:  # noqa: BLE001  # an object of anybody's, whose attributes raise anything
        return None
    return cast("Checkpointer", store) if is_one else None


def find(names: Mapping[str, Any], wanted: str) -> Agent:
    """The agent of that variable, or of that name, whose runs are in the store in use.

    Raises `UnknownAgent` where there is none, `InvalidInput` where there are several or the agent
    has another store.
    """
    here = defined(names)
    if wanted in here:
        return in_use(here[wanted], wanted)
    named = {variable: each for variable, each in here.items() if each.name == wanted}
    if not named:
        raise UnknownAgent(_nobody(wanted, here))
    if len(named) > 1:
        raise InvalidInput(_several(wanted, list(named)))
    ((variable, agent),) = named.items()
    return in_use(agent, variable)


def option(names: Mapping[str, Any], name: str) -> str:
    """` --agent VARIABLE` for a command about a run, if several agents here have its agent's name."""
    variables = [variable for variable, each in defined(names).items() if each.name == name]
    return f" --agent {variables[0]}" if len(variables) > 1 else ""


def in_use(agent: Agent, variable: str) -> Agent:
    """The agent, if its runs are in the store that magics look at."""
    from durable_nb.stores.open import default_store, store_key

    theirs, ours = agent.checkpointer, default_store()
    if store_key(theirs) != store_key(ours):
        path = getattr(theirs, "path", None)
        raise InvalidInput(
            f"agent {agent.name!r} keeps its runs in {theirs!r}, and {ours!r} is in use; "
            f"%durable use {variable if path is None else path}"
        )
    return agent


def _several(wanted: str, variables: Sequence[str]) -> str:
    listed = f"{', '.join(variables[:-1])} and {variables[-1]}"
    return (
        f"{len(variables)} agents here are named {wanted!r}: {listed}; name the variable "
        f"(%%durable {variables[0]}), or add --agent {variables[0]} to %durable"
    )


def _nobody(wanted: str, here: Mapping[str, Agent]) -> str:
    if not here:
        return f"no agent {wanted!r} is defined here, nor any other; run the cell that defines it"
    there = ", ".join(f"{variable} ({each.name!r})" for variable, each in here.items())
    names = (*here, *(each.name for each in here.values()))
    return (
        f"no agent {wanted!r} is defined here; run the cell that defines it. There are {there}"
        f"{did_you_mean(wanted, names)}"
    )
