"""Getting hold of a run: a new one, a paused one, a dead one. Nothing here performs a step.

Everything that can refuse is asked before the claim is written (DESIGN R2).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from durable_nb.core.decide import arguments_of
from durable_nb.core.reopen import needed_tools, reopen
from durable_nb.core.state import State, fold
from durable_nb.model.decisions import Resume
from durable_nb.model.entries import Log, Row, Run, Turn
from durable_nb.model.errors import (
    AgentMismatch,
    InvalidInput,
    MissingTool,
    RunIsLive,
    StaleLog,
)
from durable_nb.model.messages import Message
from durable_nb.model.values import digest
from durable_nb.runtime.loop import Drive
from durable_nb.stores import refusals
from durable_nb.stores.protocol import Checkpointer, Lease

if TYPE_CHECKING:
    from durable_nb.runtime.agent import Agent

PATIENCE = 2.0  # seconds that a resume waits for whoever drives the run
MAX_PROMPT = 10_000_000  # bytes
MAX_ID = 512  # bytes
HEAD = 500  # characters of the prompt that lists show


def start(
    agent: Agent,
    prompt: str,
    *,
    execution_id: str | None = None,
    workdir: str | None = None,
    tags: Sequence[str] = (),
) -> Drive:
    """Write a new run's first entry. Raises `InvalidInput` and `ExecutionExists`."""
    _check_prompt(prompt)
    execution_id = agent.ports.new_id() if execution_id is None else execution_id
    _check_id(execution_id)
    at, writer = agent.ports.clock(), agent.ports.new_writer()
    definition = agent.definition()
    run = Run(
        execution_id=execution_id,
        agent=agent.name,
        prompt=_head(prompt),
        created_at=at,
        session=execution_id,
        definition=json.dumps(definition),
        fingerprint=digest(definition),
        workdir=workdir,
        tags=tuple(tags),
    )
    said = [Message("user", prompt)]
    if agent.system_prompt:
        said.insert(0, Message("system", agent.system_prompt))
    opening = Turn(0, tuple(said))
    store = agent.checkpointer
    lease = store.create(run, opening, at=at, writer=writer)
    return _drive(agent, store, lease, fold([Row(lease.number, at, writer, opening)]), run)


def claim(
    agent: Agent,
    execution_id: str,
    *,
    decision: Resume | None = None,
    pause: int | None = None,
    take_over: bool = False,
) -> Drive:
    """Append the entry that makes this process the run's driver.

    Raises `UnknownExecution`, `AgentMismatch`, `MissingTool`, `RunPaused`, `AlreadyResumed`,
    `RunIsLive`, `NotStorable` or `InvalidInput`, and then nothing was written.
    """
    store, ports = agent.checkpointer, agent.ports
    give_up = ports.monotonic() + PATIENCE
    first: State | None = None
    while True:
        log = store.load(execution_id)
        state = fold(log.rows)
        entry = reopen(execution_id, state, decision=decision, pause=pause, by=ports.user())
        _check_agent(agent, log, state, decision)
        first = first or state
        if state.claim.number == first.claim.number:
            at, writer = ports.clock(), ports.new_writer()
            try:
                lease, row = store.claim(
                    execution_id,
                    entry,
                    after=state.number,
                    at=at,
                    writer=writer,
                    take_over=take_over,
                )
                return _drive(agent, store, lease, state.plus(row), log.run)
            except (RunIsLive, StaleLog):
                pass  # somebody drives it: see what becomes of it
        elif not log.live:
            raise refusals.beaten(execution_id)
        if ports.monotonic() > give_up:
            raise refusals.live(execution_id)
        ports.sleep(0.01)


def _drive(agent: Agent, store: Checkpointer, lease: Lease, state: State, run: Run) -> Drive:
    return Drive(
        agent=agent.name,
        llm=agent.llm,
        tools=agent.toolbox,
        max_turns=agent.max_turns,
        store=store,
        ports=agent.ports,
        lease=lease,
        state=state,
        workdir=run.workdir,
    )


def _check_agent(agent: Agent, log: Log, state: State, decision: Resume | None) -> None:
    execution_id = log.run.execution_id
    if log.run.agent != agent.name:
        raise AgentMismatch(
            f"run {execution_id!r} belongs to agent {log.run.agent!r}, not to {agent.name!r}; "
            "resume it with that one"
        )
    for tool in needed_tools(state):
        if tool not in agent.toolbox:
            raise MissingTool(
                f"run {execution_id!r} needs the tool {tool!r}, which agent {agent.name!r} does "
                "not have; add it and resume again. Nothing was claimed"
            )
    if decision is not None and decision.edited and state.step is not None:
        try:
            agent.toolbox[state.step.tool].validate({**arguments_of(state), **decision.edited})
        except ValueError as error:
            raise InvalidInput(f"the edit was not taken: {error}") from error


def _check_prompt(prompt: object) -> None:
    if not isinstance(prompt, str) or not prompt.strip():
        raise InvalidInput(f"a prompt is text with something in it, not {prompt!r}")
    size = len(prompt.encode("utf-8", "surrogatepass"))
    if size > MAX_PROMPT:
        raise InvalidInput(
            f"the prompt is {size:,} bytes, the limit is {MAX_PROMPT:,}; put the data in a file "
            "and let a tool read it"
        )


def _check_id(execution_id: object) -> None:
    if not isinstance(execution_id, str) or not execution_id:
        raise InvalidInput(f"an execution_id is text with something in it, not {execution_id!r}")
    try:
        size = len(execution_id.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(f"the execution_id {execution_id!r} is not valid text") from error
    if size > MAX_ID or "\0" in execution_id:
        raise InvalidInput(
            f"an execution_id has at most {MAX_ID} bytes and no NUL; this one has {size}"
        )


def _head(prompt: str) -> str:
    """The prompt's first line or so, for lists: text that every database can hold."""
    return prompt[:HEAD].replace("\0", "\ufffd").encode("utf-8", "replace").decode()
