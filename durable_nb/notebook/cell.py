"""`%%durable`: a cell only ever moves a run forward (the table in DESIGN section 6)."""

from __future__ import annotations

from argparse import Namespace
from itertools import count
from typing import TYPE_CHECKING

from durable_nb.core.nodes import status_of
from durable_nb.model.entries import Log
from durable_nb.model.errors import (
    AgentMismatch,
    ExecutionExists,
    InvalidInput,
)
from durable_nb.notebook import agents
from durable_nb.notebook.desk import Desk
from durable_nb.notebook.handle import Handle
from durable_nb.notebook.portrait import NOTEBOOK, prompt_of
from durable_nb.notebook.reading import stored
from durable_nb.notebook.screen import notebook_name
from durable_nb.notebook.typed.prompt import automatic_id, fill
from durable_nb.notebook.waiting import still_waits, wait_for_decision
from durable_nb.notebook.words import head, word
from durable_nb.stores.open import default_store

if TYPE_CHECKING:
    from durable_nb.notebook.config import Decided
    from durable_nb.notebook.local import LocalRun
    from durable_nb.runtime.agent import Agent


def run_cell(desk: Desk, line: Namespace, body: str, *, how: Decided, cell: str | None) -> Handle:
    """Start the run of this cell, or go on with it, as far as it goes without a person.

    `cell` is a hint at which cell this is; it decides nothing.
    """
    _check(line, how)
    agent = agents.find(desk.names, line.agent)
    prompt = fill(body, desk.names)
    base = automatic_id(agent.name, prompt) if line.id is None else line.id
    execution_id = _free(base) if line.new else base
    log = stored(default_store(), execution_id)
    if log is not None:
        _refuse_another(log, agent, prompt)
    run = desk.run_of(agent, line.agent, execution_id)
    notes = _left_behind(desk.moved_from(cell, execution_id))
    if log is None:
        _start(run, agent, prompt, (*notes, *_own(line.new, base)), quiet=how.quiet)
    else:
        run.forward(notes, quiet=how.quiet)
    handle = desk.drawn(run)
    if line.name is not None:
        desk.names[line.name] = handle  # also where a pause stops the cell
    _at_a_pause(run, how)
    return handle


def _check(line: Namespace, how: Decided) -> None:
    """Refuse a wait without an end, and an end without a wait, before anything runs."""
    if how.on_pause == "wait" and how.timeout is None:
        raise InvalidInput("--on-pause wait needs --timeout SECONDS, so that the cell can end")
    if line.timeout is not None and how.on_pause != "wait":
        raise InvalidInput("--timeout belongs to --on-pause wait; drop it, or wait")


def _start(
    run: LocalRun, agent: Agent, prompt: str, notes: tuple[str, ...], *, quiet: bool
) -> None:
    from durable_nb.runtime.begin import start

    name = notebook_name()
    tags = () if name is None else (NOTEBOOK + name,)
    started = start(agent, prompt, execution_id=run.execution_id, tags=tags)
    run.drive_here(started, notes=notes, quiet=quiet)


def _free(base: str) -> str:
    """`base`, or the first of ID-2, ID-3, … that no run has."""
    names = (base if number == 1 else f"{base}-{number}" for number in count(1))
    return next(name for name in names if stored(default_store(), name) is None)


def _own(new: bool, base: str) -> tuple[str, ...]:
    if not new:
        return ()
    return (f"A run of its own (--new): each time this cell runs it starts {base}-2, -3, …",)


def _left_behind(before: str | None) -> tuple[str, ...]:
    """That this cell's earlier prompt has a run that still waits."""
    if before is None:
        return ()
    log = stored(default_store(), before)
    if log is None or status_of(log) != "paused":
        return ()
    return (f"The run of this cell's earlier prompt still waits: %durable show {word(before)}.",)


def _refuse_another(log: Log, agent: Agent, prompt: str) -> None:
    """An id means one agent and one prompt."""
    run = word(log.run.execution_id)
    if log.run.agent != agent.name:
        raise AgentMismatch(
            f"run {run} belongs to agent {log.run.agent!r}, not to {agent.name!r}; choose another --id"
        )
    before = prompt_of(log).strip()
    if before != prompt:
        raise ExecutionExists(
            f"run {run} was started with another prompt, and a run is never repeated. Stored: "
            f"{head(before, 200)!r}. Here: {head(prompt, 200)!r}. Choose another --id, or add --new"
        )


def _at_a_pause(run: LocalRun, how: Decided) -> None:
    """What was decided for where a person has to: go on, stop here, or wait for them."""
    log = run.log()
    status = status_of(log)
    if how.on_pause == "stop" and status == "paused":
        raise still_waits(log, "", ", then run this cell again")
    if how.on_pause == "wait" and how.timeout is not None and status in ("paused", "running"):
        with run.faces.saying(
            f"This cell waits {how.timeout:g} s for a decision from {_ELSEWHERE}."
        ):
            wait_for_decision(run, how.timeout)


_ELSEWHERE = "another tab, another process or the command line; its own buttons may have to wait"
