"""What starting and resuming a run need of an agent."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from durable_nb.core.state import State
from durable_nb.runtime.loop import Drive
from durable_nb.runtime.ports import Ports
from durable_nb.runtime.tools import Toolbox
from durable_nb.stores.protocol import Checkpointer, Lease


class Definition(NamedTuple):
    """What an agent is made of: JSON text, and the fingerprint that equal texts share."""

    text: str
    fingerprint: str


class Actor(Protocol):
    """An agent, as far as its runs are concerned."""

    name: str
    system_prompt: str | None
    ports: Ports

    @property
    def toolbox(self) -> Toolbox:
        """Its tools by name."""

    @property
    def checkpointer(self) -> Checkpointer:
        """The store of its runs."""

    def definition(self) -> Definition:
        """What it is made of: what a later process compares itself with."""

    def drive_of(self, lease: Lease, state: State) -> Drive:
        """A claimed run, ready to be driven with its model and tools."""
