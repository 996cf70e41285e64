"""`%durable show`: a card that opens to everything a run's log holds, and controls below it.

What is drawn is read from the store each time; the widgets only say which step is meant. A click
acts in its own callback, and what it refuses lands on the card. A fork that a click made is driven
on the engine's thread, and has a card of its own below.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from durable_nb.core.nodes import status_of
from durable_nb.core.text import visible
from durable_nb.model.entries import End, Log
from durable_nb.model.errors import DurableError, UnknownExecution
from durable_nb.notebook.cards import Card, publish, widget
from durable_nb.notebook.inspector.diff import difference_of
from durable_nb.notebook.inspector.page import (
    Family,
    Place,
    diff_command,
    fork_says,
    inside,
)
from durable_nb.notebook.inspector.steps import Page, page_of, step_label
from durable_nb.notebook.parts import Block, Part
from durable_nb.notebook.portrait import Look
from durable_nb.notebook.words import head

if TYPE_CHECKING:
    from durable_nb.notebook.inspector.controls import Choices, Controls, Offer
    from durable_nb.notebook.local import LocalRun
    from durable_nb.stores.protocol import EffectRow

NAME = 60  # characters of a run's id in a list to choose from
FORKS = 10  # that are offered to compare with
NEWEST = 0  # in place of a step's number


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look at the store has found."""

    log: Log
    page: Page
    status: str
    effects: tuple[EffectRow, ...]
    family: Family


class Inspector:
    """One showing of a run, at a page or a step of it."""

    def __init__(self, run: LocalRun, *, page: int = 1, step: int | str | None = None) -> None:
        self._run, self._page, self._step = run, page, step
        self._card = Card(Look(), inside=self._inside)
        self._room = Card(Look())
        self._forked: LocalRun | None = None
        self._compared = f"durable-{secrets.token_hex(8)}"
        self._controls: Controls | None = None
        self._seen: Seen | None = None
        self._parts: tuple[Part, ...] = ()

    def show(self) -> None:
        """Draw it in the cell that is running. Raises `InvalidInput` for a page or step that is
        not there."""
        page_of(self._run.log(), self._page, self._step)
        self._run.faces.put(self._card)
        if self._run.faces.screen.clickable():
            self._add_controls()

    def turn_to(self, page: int) -> None:
        """Show another page."""
        self._page, self._step = page, None
        self._run.faces.redraw()

    def fork(self, place: Place) -> None:
        """Claim a fork now, let a thread drive it, and show it below."""
        from durable_nb.runtime.begin import start_fork

        source, number = place
        name = self._free(f"{source}-fork-{number}")
        note = fork_says(self._run.log(), number)
        started = start_fork(self._run.agent(), source, at=number, execution_id=name)
        if self._forked is not None:
            self._forked.faces.take_away(self._room)
        self._forked = self._run.beside(name)
        self._room.look = Look(notes=(f"Forked from {source} at step {number}. {note}",))
        self._forked.faces.put(self._room)
        self._forked.drive_behind(started)
        self._run.faces.redraw()

    def cancel(self) -> None:
        from durable_nb.runtime.ports import SYSTEM

        self._run.cancel(by=SYSTEM.user())

    def compare(self, before: Place, after: Place) -> None:
        """Show what differs, below."""
        (run, a), (other, b) = map(self._resolved, (before, after))
        found = difference_of(self._run.store, run, a, b, other=None if other == run else other)
        drawn = {"text/html": found._repr_html_(), "text/plain": repr(found)}
        publish(drawn, self._compared, update=True)

    def diff_command(self, before: Place, after: Place) -> str:
        return diff_command(self._resolved(before), self._resolved(after))

    def _add_controls(self) -> None:
        from durable_nb.notebook.inspector.controls import Controls

        if self._seen is None:
            return
        self._controls = Controls(_offer(self._seen, self._run.which_agent()), self, self._guarded)
        publish(widget(self._controls.box), f"{self._compared}-controls", update=False)
        self._room.place()
        publish({}, self._compared, update=False)

    def _inside(self, log: Log) -> tuple[Part, ...]:
        """What the card opens to now; the controls offer the same steps."""
        try:
            seen = self._look(log)
        except DurableError as error:  # the store is gone since the log was read
            return (Block(f"{type(error).__name__}: {error}", ""),)
        if seen != self._seen:
            self._seen = seen
            self._parts = inside(log, seen.page, seen.status, seen.effects, seen.family)
            if self._controls is not None:
                self._controls.update(_offer(seen, self._run.which_agent()))
        return self._parts

    def _look(self, log: Log) -> Seen:
        page = page_of(log, self._page, self._step)
        self._page = page.number
        store, run = self._run.store, self._run.execution_id
        family = Family(tuple(store.session(run)), tuple(store.branches(run)))
        same = self._seen is not None and self._seen.log is log
        status = self._seen.status if self._seen is not None and same else status_of(log)
        return Seen(log, page, status, tuple(store.effects(run)), family)

    def _resolved(self, place: Place) -> Place:
        """The place with a step's number in it."""
        run, number = place
        return run, number or self._run.store.get_last(run).number

    def _free(self, base: str) -> str:
        """`base`, or the first of base-2, base-3, … that no run has: each click is a fork."""
        names = (base if number == 1 else f"{base}-{number}" for number in count(1))
        return next(name for name in names if not self._is_there(name))

    def _is_there(self, execution_id: str) -> bool:
        try:
            self._run.store.get_last(execution_id)
        except UnknownExecution:
            return False
        return True

    def _guarded(self, act: Callable[[], None]) -> None:
        """What a callback raises nobody sees: the card says it."""
        try:
            act()
        except Exception as error:  # noqa: BLE001  # see above
            self._run.refused(error)


def _offer(seen: Seen, which_agent: str) -> Offer:
    """What there is to choose from."""
    from durable_nb.notebook.inspector.controls import Offer

    log, page = seen.log, seen.page
    run = log.run.execution_id
    steps = tuple((step_label(log, row), (run, row.number)) for row in page.rows)
    ends = {row.number for row in page.rows if isinstance(row.entry, End)}
    return Offer(
        run,
        page.number,
        page.pages,
        tuple(each for each in steps if each[1][1] not in ends),
        (*steps, *_elsewhere(log, seen.family)),
        steps[-1:],
        partial(fork_says, log),
        seen.status not in ("completed", "cancelled"),
        which_agent,
    )


def _elsewhere(log: Log, family: Family) -> Choices:
    """The run's parent and its newest forks, to compare with: their newest steps."""
    names = [log.run.parent] if log.run.parent else []
    names += [each.execution_id for each in family.forks[-FORKS:]]
    return tuple(
        (f"{head(visible(name), NAME)} · its newest step", (name, NEWEST)) for name in names
    )
