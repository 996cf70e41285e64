"""What a parent and the child that it will lose say to each other: a job, and a report.

The agent travels by cloudpickle: what was defined in a cell or a script by value, what was imported
by name. Nothing of this is kept.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from pathlib import Path

import cloudpickle

from durable_nb.lab.points import Point
from durable_nb.model.errors import InvalidInput
from durable_nb.runtime.agent import Agent
from durable_nb.stores.protocol import Checkpointer


@dataclass(frozen=True, slots=True)
class Job:
    """One run, and where it is to be killed. `agent` is packed; `report` is a file's path; `path`
    is where modules are imported from."""

    agent: bytes
    prompt: str
    execution_id: str
    point: Point
    report: str
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """How the child came to its end: killed at the point, or by an error, or neither."""

    killed: bool = False
    error: str = ""
    text: str = ""


def pack(agent: Agent) -> bytes:
    """The agent with the store it uses now. Raises `InvalidInput` if it cannot leave the process."""
    try:
        packed: bytes = cloudpickle.dumps((agent, agent.checkpointer))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"{agent!r} cannot be handed to another process: {error}. Let its tools and its model "
            "open files, locks and connections when they are called"
        ) from error
    return packed


def unpack(packed: bytes) -> tuple[Agent, Checkpointer]:
    """The agent and its store, in the child. Imports what was packed by name."""
    agent, store = pickle.loads(packed)
    return agent, store


def tell(path: str, report: Report) -> None:
    """Write the report where it survives the child."""
    Path(path).write_text(json.dumps([report.killed, report.error, report.text]))


def told(path: str) -> Report:
    """The child's report; an empty one if it left none."""
    try:
        return Report(*json.loads(Path(path).read_text()))
    except FileNotFoundError:
        return Report()
