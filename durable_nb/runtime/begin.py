"""New runs: the first of a session, a fork, a follow-up. Nothing here performs a step."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from itertools import count

from durable_nb.core.branch import branch
from durable_nb.core.state import State, fold, state_of
from durable_nb.model.entries import Entry, Log, Row, Run, Turn
from durable_nb.model.errors import ExecutionExists, InvalidInput
from durable_nb.model.messages import Message
from durable_nb.runtime.actor import Actor
from durable_nb.runtime.checks import (
    check_edit,
    check_id,
    check_name,
    check_prompt,
    check_tags,
    check_tools,
)
from durable_nb.runtime.loop import Drive
from durable_nb.stores import refusals

HEAD = 500  # characters of the prompt that lists show


def start(
    agent: Actor,
    prompt: str,
    *,
    execution_id: str | None = None,
    workdir: str | None = None,
    tags: Sequence[str] = (),
) -> Drive:
    """Write a new run's first entry. Raises `InvalidInput` and `ExecutionExists`."""
    check_prompt(prompt)
    check_tags(tags)
    said = [Message("user", prompt)]
    if agent.system_prompt:
        said.insert(0, Message("system", agent.system_prompt))
    run = _run(agent, execution_id, prompt, workdir=workdir, tags=tuple(tags))
    return _create(agent, run, (Turn(0, tuple(said)),))


def start_fork(
    agent: Actor,
    source: str,
    *,
    at: str | int | None = None,
    prompt: str | None = None,
    edit: Mapping[str, object] | None = None,
    execution_id: str | None = None,
) -> Drive:
    """Branch a run at a step, under a new id; the original is not touched (DESIGN R5).

    Raises `UnknownExecution`, `AgentMismatch`, `MissingTool`, `ForkRefused`, `InvalidInput` and
    `ExecutionExists`.
    """
    if prompt is not None:
        check_prompt(prompt)
    if edit is not None and not isinstance(edit, Mapping):
        raise InvalidInput(f"edit is a mapping of arguments by name, not {edit!r}")
    log = agent.checkpointer.load(source)
    check_name(agent, log)
    point = branch(source, log.rows, at=at, prompt=prompt, edit=edit, by=agent.ports.user())
    history = tuple(row for row in log.rows if row.number <= point.base)
    state = fold(history)
    check_tools(agent, source, state)
    if edit is not None:
        check_edit(agent, state, edit)
    run = _run(
        agent,
        execution_id,
        prompt or log.run.prompt,
        workdir=state_of(log).workdir,
        tags=log.run.tags,
        parent=source,
        base=point.base,
    )
    return _create(agent, run, point.opening, history)


def start_follow_up(
    agent: Actor, log: Log, state: State, opening: Turn, place: str | None
) -> Drive:
    """Begin the next run of a session: `ID-2`, `ID-3`, …, the next id that is free.

    Raises `ExecutionExists` if somebody else has begun it since `log` was read.
    """
    for number in count(2):
        taken = agent.checkpointer.session(log.run.execution_id)
        if taken[-1] != log.run.execution_id:
            raise refusals.exists(taken[-1])
        name = f"{log.run.session}-{number}"
        if name in taken:
            continue
        run = _run(
            agent,
            name,
            opening.messages[-1].content,
            session=log.run.session,
            workdir=place or state.workdir,
            tags=log.run.tags,
            parent=log.run.execution_id,
            base=state.number,
        )
        with contextlib.suppress(ExecutionExists):  # another session's run has that name
            return _create(agent, run, (opening,), log.rows)
    raise AssertionError("count() does not end")


def _run(
    agent: Actor,
    execution_id: str | None,
    prompt: str,
    *,
    session: str | None = None,
    workdir: str | None = None,
    tags: tuple[str, ...] = (),
    parent: str | None = None,
    base: int = 0,
) -> Run:
    execution_id = agent.ports.new_id() if execution_id is None else execution_id
    check_id(execution_id)
    definition = agent.definition()
    return Run(
        execution_id=execution_id,
        agent=agent.name,
        prompt=_head(prompt),
        created_at=agent.ports.clock(),
        session=session or execution_id,
        definition=definition.text,
        fingerprint=definition.fingerprint,
        workdir=workdir,
        tags=tags,
        parent=parent,
        base=base,
    )


def _create(
    agent: Actor, run: Run, opening: tuple[Entry, ...], history: tuple[Row, ...] = ()
) -> Drive:
    at, writer = run.created_at, agent.ports.new_writer()
    lease = agent.checkpointer.create(run, *opening, at=at, writer=writer)
    own = tuple(
        Row(number, at, writer, entry) for number, entry in enumerate(opening, start=run.base + 1)
    )
    state = state_of(Log(run, (*history, *own), live=True))
    return agent.drive_of(lease, state)


def _head(prompt: str) -> str:
    """The prompt's first line or so, for lists: text that every database can hold."""
    return prompt[:HEAD].replace("\0", "\ufffd").encode("utf-8", "replace").decode()
