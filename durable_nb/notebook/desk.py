"""What this notebook works with: its names, its runs, and whether somebody can click."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from durable_nb.model.errors import AgentMismatch
from durable_nb.notebook import agents
from durable_nb.notebook.handle import Handle, cell_number
from durable_nb.notebook.inbox.card import PAGE, Inbox
from durable_nb.notebook.local import LocalRun
from durable_nb.notebook.words import word
from durable_nb.stores.open import default_store, store_key

if TYPE_CHECKING:
    from durable_nb.notebook.screen import Screen
    from durable_nb.runtime.agent import Agent


class Desk:
    """One a shell. Every run has one `LocalRun` here, so that all its cards agree."""

    def __init__(self, names: dict[str, Any], screen: Screen) -> None:
        self.names = names
        self._screen = screen
        self._runs: dict[tuple[object, str], LocalRun] = {}
        self._of_cell: dict[str, str] = {}
        self._inbox: Inbox | None = None
        self._agents: frozenset[int] = frozenset()

    def run_of(self, agent: Agent, variable: str, execution_id: str) -> LocalRun:
        """The run, driven from now on by what that variable, or else that name, means then."""

        def now() -> Agent:
            return agents.find(self.names, variable if variable in self.names else agent.name)

        run = self._local(execution_id, now)
        run.agent = now
        return run

    def run(self, execution_id: str, variable: str | None = None) -> LocalRun:
        """A run that is there, with the agent of that variable, or else with whatever agent of its
        agent's name is defined when needed.

        Raises `UnknownExecution`, and `AgentMismatch` for a variable with another agent.
        """
        run = self._local(execution_id, lambda: agents.find(self.names, run.log().run.agent))
        name = run.log().run.agent
        if variable is not None:
            agent = agents.find(self.names, variable)
            if agent.name != name:
                raise AgentMismatch(
                    f"run {word(execution_id)} belongs to agent {name!r}, and {variable} is "
                    f"{agent.name!r}; name a variable with {name!r}: %durable agents"
                )
            return self.run_of(agent, variable, execution_id)
        return run

    def waiting(self, execution_id: str, agent: str) -> LocalRun:
        """A run of the agent of that name, which is looked for when it is needed."""
        return self._local(execution_id, lambda: agents.find(self.names, agent))

    def pending(self, most: int = PAGE) -> Inbox:
        """What waits in the store, `most` at a time. There is one inbox here: the one before is
        closed."""
        if self._inbox is not None:
            self._inbox.close()
        self._inbox = Inbox(default_store(), self.waiting, self._screen, most=most)
        return self._inbox

    def look_again(self) -> None:
        """Draw what could not be asked for want of an agent, if the agents here are not those that
        were here before."""
        here = frozenset(map(id, agents.defined(self.names).values()))
        if here != self._agents:
            self._agents = here
            for run in list(self._runs.values()):
                if run.faces.lacks_agent:
                    run.faces.redraw()

    def drawn(self, run: LocalRun) -> Handle:
        """The handle of a run whose card the running cell shows."""
        return Handle(run, drawn_in=cell_number())

    def moved_from(self, cell: str | None, execution_id: str) -> str | None:
        """The run that this cell stood for until now, if it is another one."""
        if cell is None:
            return None
        before = self._of_cell.get(cell)
        self._of_cell[cell] = execution_id
        return None if before == execution_id else before

    def _local(self, execution_id: str, agent: Callable[[], Agent]) -> LocalRun:
        store = default_store()
        key = store_key(store), execution_id
        if key not in self._runs:
            beside = partial(self._local, agent=agent)
            self._runs[key] = LocalRun(
                store,
                execution_id,
                agent=agent,
                screen=self._screen,
                beside=beside,
                option=partial(agents.option, self.names),
            )
        return self._runs[key]
