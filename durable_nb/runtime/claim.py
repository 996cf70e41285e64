"""Getting hold of a run that paused or died. Nothing here performs a step.

Everything that can refuse is asked before the claim is written (DESIGN R2).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from durable_nb.core.branch import follow_up
from durable_nb.core.changes import changes
from durable_nb.core.reopen import Claimant, reopen
from durable_nb.core.state import State, state_of
from durable_nb.model.decisions import Resume
from durable_nb.model.entries import Answer, Log, Reentry, Turn
from durable_nb.model.errors import ExecutionExists, InvalidInput, RunIsLive, StaleLog
from durable_nb.runtime.actor import Actor
from durable_nb.runtime.begin import start_follow_up
from durable_nb.runtime.checks import (
    check_edit,
    check_name,
    check_prompt,
    check_tools,
    checked_place,
)
from durable_nb.runtime.loop import Drive
from durable_nb.stores import refusals

PATIENCE = 2.0  # seconds that a resume waits for whoever drives the run


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a resume asks for: an answer to a pause, a prompt, or just to go on. The fields are the
    arguments of `Agent.resume`. Raises `InvalidInput` for what cannot be asked."""

    decision: Resume | None = None
    pause: int | None = None
    prompt: str | None = None
    take_over: bool = False
    workdir: str | os.PathLike[str] | None = None
    move: bool = False

    def __post_init__(self) -> None:
        if self.decision is not None:
            _check_decision(self.decision)
        if self.pause is not None and type(self.pause) is not int:
            raise InvalidInput(f"a pause is named by its number, not {self.pause!r}")
        if self.prompt is not None:
            check_prompt(self.prompt)
            if self.decision is not None:
                raise InvalidInput("answer the pause first, then go on with a prompt")


def _check_decision(decision: object) -> None:
    """Nothing approves by accident, no kind of `Resume` that checks less than it does either."""
    if not isinstance(decision, Resume) or not isinstance(decision.approved, bool):
        raise InvalidInput(f"a decision is a Resume(approved=True or False), not {decision!r}")


def claim(agent: Actor, execution_id: str, wish: Wish) -> Drive:
    """Append the entry that makes this process the run's driver.

    With a `prompt` the newest run of the session is meant, and one that is over is followed by the
    session's next. Raises `UnknownExecution`, `AgentMismatch`, `MissingTool`, `RunPaused`,
    `AlreadyResumed`, `RunIsLive`, `NotStorable` or `InvalidInput`; nothing was written then.
    """
    give_up = agent.ports.monotonic() + PATIENCE
    first: tuple[str, int] | None = None
    while True:
        log = agent.checkpointer.load(_meant(agent, execution_id, wish))
        state = state_of(log)
        wish = _bound(wish, state)
        entry = _entry(agent, log, state, wish)
        seen = (log.run.execution_id, state.claim.number)
        first = first or seen
        if seen == first:
            try:
                return _take(agent, log, state, entry, wish)
            except (RunIsLive, StaleLog, ExecutionExists):
                pass  # somebody drives it: see what becomes of it
        elif not log.live:
            raise refusals.beaten(log.run.execution_id)
        if agent.ports.monotonic() > give_up:
            raise refusals.live(log.run.execution_id)
        agent.ports.sleep(0.01)


def _bound(wish: Wish, state: State) -> Wish:
    """A decision is for the pause that is open when the run is first read, and for no later one."""
    if wish.decision is None or wish.pause is not None or state.status != "paused":
        return wish
    return replace(wish, pause=state.number)


def _meant(agent: Actor, execution_id: str, wish: Wish) -> str:
    """A prompt goes to the newest run of the conversation, everything else to the run named."""
    if wish.prompt is None:
        return execution_id
    return agent.checkpointer.session(execution_id)[-1]


def _entry(agent: Actor, log: Log, state: State, wish: Wish) -> Answer | Reentry | Turn:
    """What to append for the wish. Raises whatever there is to refuse."""
    execution_id = log.run.execution_id
    check_name(agent, log)
    place = checked_place(execution_id, state, wish.workdir, move=wish.move)
    if wish.prompt is not None and state.status in ("completed", "cancelled"):
        return follow_up(state, wish.prompt)
    definition = agent.definition()
    who = Claimant(
        by=agent.ports.user(),
        at=agent.ports.clock(),
        fingerprint=definition.fingerprint,
        changed=changes(log.definition, definition.text),
        workdir=place,
    )
    entry = reopen(
        execution_id, state, who, decision=wish.decision, pause=wish.pause, prompt=wish.prompt
    )
    check_tools(agent, execution_id, state)
    if isinstance(entry, Answer) and entry.edited:
        check_edit(agent, state, entry.edited)
    return entry


def _take(
    agent: Actor, log: Log, state: State, entry: Answer | Reentry | Turn, wish: Wish
) -> Drive:
    if isinstance(entry, Turn):
        place = checked_place(log.run.execution_id, state, wish.workdir, move=wish.move)
        return start_follow_up(agent, log, state, entry, place)
    lease, row = agent.checkpointer.claim(
        log.run.execution_id,
        entry,
        after=state.number,
        at=agent.ports.clock(),
        writer=agent.ports.new_writer(),
        take_over=wish.take_over,
        definition=agent.definition().text,
    )
    return agent.drive_of(lease, state.plus(row))
