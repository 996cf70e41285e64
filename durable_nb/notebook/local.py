"""A run as this kernel drives it: claimed, driven, decided about, stopped. `faces` draw it.

The log is the truth; everything here can be thrown away. Driving happens on the cell's thread, so
that *interrupt kernel* stops it; only what a click started runs on a thread of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING

from durable_nb.core.compare import Change
from durable_nb.core.nodes import status_of
from durable_nb.core.state import state_of
from durable_nb.model.decisions import Resume
from durable_nb.model.entries import Log
from durable_nb.model.errors import DurableError, MissingTool
from durable_nb.notebook.faces import Faces
from durable_nb.notebook.gates import already, answer_to, gate, same
from durable_nb.notebook.portrait import Look, went_on
from durable_nb.notebook.reading import Reading

if TYPE_CHECKING:
    from durable_nb.notebook.screen import Screen
    from durable_nb.runtime.agent import Agent
    from durable_nb.runtime.engine import Stop
    from durable_nb.runtime.loop import Drive
    from durable_nb.runtime.tools import Tool
    from durable_nb.stores.protocol import Checkpointer


class LocalRun:
    """One run here. `agent` finds its agent when it is needed. There is one object a run and
    kernel, so that all its cards say the same."""

    def __init__(
        self,
        store: Checkpointer,
        execution_id: str,
        *,
        agent: Callable[[], Agent],
        screen: Screen,
        beside: Callable[[str], LocalRun],
        option: Callable[[str], str],
    ) -> None:
        self.store = store
        self.execution_id = execution_id
        self.agent = agent
        self.beside = beside
        """Another run of the same agent."""
        self._option = option
        self.faces = Faces(self, screen)
        self._reading = Reading(store, execution_id)
        self._drive: Future[None] | None = None
        self._stop: Stop | None = None

    def log(self) -> Log:
        return self._reading.log()

    def which_agent(self) -> str:
        """What a command about it has to say of its agent; nothing where that is clear here."""
        with suppress(DurableError):
            self.agent()
            return ""
        with suppress(DurableError):  # of a store that has gone meanwhile, as its cards say
            return self._option(self.log().run.agent)
        return ""

    def drive_here(self, run: Drive, *, notes: tuple[str, ...] = (), quiet: bool = False) -> None:
        """Drive a claimed run on this thread, showing a card. What escapes the run is raised."""
        from durable_nb.runtime.loop import drive

        undriven = ExitStack()
        undriven.callback(self.store.release, run.lease)
        try:
            self.faces.begin()
            self.faces.show(Look(notes=notes), quiet=quiet)
            with self.faces.following(run):
                undriven.pop_all()  # from here on, driving it says when it is let go
                drive(run)
        except KeyboardInterrupt:
            self.faces.stop()
            raise
        except DurableError as error:
            self.faces.refuse(error)
            raise
        finally:
            undriven.close()
            self.faces.redraw()

    def changes(self) -> tuple[Change, ...]:
        """What of the agent's code is not as it was when the run stopped, shown on its cards.

        Raises `MissingTool` and the like if the agent cannot go on at all.
        """
        from durable_nb.runtime.checks import check_tools

        log = self.log()
        check_tools(self.agent(), self.execution_id, state_of(log))
        self.faces.redraw()
        return self.faces.changes(log)

    def tool(self, name: str) -> Tool:
        """The tool of that name as it is now. Raises `MissingTool`, `UnknownAgent`."""
        agent = self.agent()
        if name not in agent.toolbox:
            raise MissingTool(f"agent {agent.name!r} has no tool {name!r} any more; add it again")
        return agent.toolbox[name]

    def click(self, decision: Resume | None, pause: int | None) -> None:
        """What a button does: claim here and now, let a thread drive. Errors land on the card."""
        from durable_nb.runtime.claim import Wish, claim

        try:
            wish = Wish(decision=decision, pause=pause)
            run = claim(self.agent(), self.execution_id, wish)
        except Exception as error:  # noqa: BLE001  # nobody sees what a callback raises
            self.refused(error)
        else:
            self.drive_behind(run)

    def drive_behind(self, run: Drive) -> None:
        """Let a thread drive a claimed run. Errors land on the card."""
        from durable_nb.runtime.engine import background

        self.faces.begin()
        self._drive, self._stop = background(partial(self._go_on, run))
        self.faces.redraw()

    def refused(self, error: Exception) -> None:
        """Have the card say why nothing was done."""
        self.faces.refuse(error)
        self.faces.redraw()

    def stop(self) -> None:
        """Stop what a click set going here, as *interrupt kernel* stops a cell: what a tool does on
        a thread is let finish, and the run can be resumed."""
        self.faces.stop()
        if self._stop is not None:
            self._stop.ask()
        self.faces.redraw()

    def cancel(self, by: str | None = None) -> None:
        """End the run as cancelled. What a click set going here is stopped where it can be."""
        self.store.cancel(self.execution_id, by=by)
        if self._stop is not None:
            self._stop.ask()
        self.faces.redraw()

    def wait(self, timeout: float | None = None) -> bool:
        """Until nothing that a click started drives this run. False if the time was up first."""
        if self._drive is None:
            return True
        return bool(wait([self._drive], timeout=timeout).done)

    def driven_here(self) -> bool:
        return self._drive is not None and not self._drive.done()

    def forward(self, notes: tuple[str, ...] = (), *, quiet: bool = False) -> None:
        """Go as far as the run goes without a person, repeating nothing (DESIGN section 6)."""
        log = self.log()
        state = state_of(log)
        status = status_of(log, state)
        if status in ("crashed", "failed"):
            note = went_on(log, state, self.faces.on_crash)
            self.resume(notes=(*notes, note), quiet=quiet)
        elif status == "running":
            self._attach(notes, quiet=quiet)
        else:
            self.faces.show(Look(notes=notes, stored=status == "completed"), quiet=quiet)

    def resume(
        self, *, notes: tuple[str, ...] = (), take_over: bool = False, quiet: bool = False
    ) -> None:
        """Claim a run that died or failed, and drive it here."""
        from durable_nb.runtime.claim import Wish, claim

        run = claim(self.agent(), self.execution_id, Wish(take_over=take_over))
        self.drive_here(run, notes=notes, quiet=quiet)

    def decide(self, decision: Resume, pause: int | None) -> None:
        """Answer a pause and drive on here. If that pause has this same answer already, go on from
        where the run is."""
        from durable_nb.runtime.claim import Wish, claim

        log = self.log()
        number = gate(log, pause)
        recorded = answer_to(log, number)
        if recorded is not None and same(recorded, decision):
            self.forward((already(recorded),))
            return
        wish = Wish(decision=decision, pause=number)
        self.drive_here(claim(self.agent(), self.execution_id, wish))

    def _attach(self, notes: tuple[str, ...], *, quiet: bool) -> None:
        """A run that somebody drives: wait if that is us, else say so."""
        if not self.driven_here():
            elsewhere = "Another process or thread drives it; nothing was done here."
            self.faces.show(Look(notes=(*notes, elsewhere)), quiet=quiet)
            return
        self.faces.show(Look(notes=notes), quiet=quiet)
        self.wait()

    def _go_on(self, run: Drive, stop: Stop) -> None:
        from durable_nb.runtime.engine import Abandoned
        from durable_nb.runtime.loop import drive

        try:
            # whoever abandons it has ended the run
            with suppress(Abandoned), self.faces.following(run):
                drive(run, stop)
        except Exception as error:  # noqa: BLE001  # nobody sees what a thread raises
            self.faces.refuse(error)
        finally:
            self.faces.redraw()
