"""What is refused before anything is written, in words that say what next."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from durable_nb.core.decide import arguments_of
from durable_nb.core.reopen import needed_tools
from durable_nb.core.state import State
from durable_nb.model.entries import Log
from durable_nb.model.errors import AgentMismatch, InvalidInput, MissingTool
from durable_nb.runtime.actor import Actor

MAX_PROMPT = 10_000_000  # bytes
MAX_ID = 512  # bytes


def check_text(value: object, what: str) -> None:
    """Raise `InvalidInput` for what is not text that every store can hold."""
    if not isinstance(value, str) or not value or value.isspace():
        raise InvalidInput(f"{what} is text with something in it, not {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{what} {value!r} is not valid text") from error
    if "\0" in value:
        raise InvalidInput(f"{what} has no NUL in it, since no store can hold one: {value!r}")


def check_options(system_prompt: object, checkpointer: object) -> None:
    """Raise `InvalidInput` for what an agent cannot be made with."""
    if system_prompt is not None and not isinstance(system_prompt, str):
        raise InvalidInput(f"a system prompt is text, not {system_prompt!r}")
    if checkpointer is not None and not callable(getattr(checkpointer, "claim", None)):
        raise InvalidInput(
            f"checkpointer={checkpointer!r} is not a store; pass SQLiteCheckpointer(path), "
            "PostgresCheckpointer(address) or MemoryCheckpointer()"
        )


def check_tags(tags: object) -> None:
    """Raise `InvalidInput` for what is not a collection of texts."""
    if isinstance(tags, str) or not isinstance(tags, Collection):
        raise InvalidInput(f"tags are several texts, as in tags=('demo',), not {tags!r}")
    for tag in tags:
        check_text(tag, "a tag")


def check_prompt(prompt: object) -> None:
    """Raise `InvalidInput` for a prompt that is empty or too large."""
    if not isinstance(prompt, str) or not prompt.strip():
        raise InvalidInput(f"a prompt is text with something in it, not {prompt!r}")
    size = len(prompt.encode("utf-8", "surrogatepass"))
    if size > MAX_PROMPT:
        raise InvalidInput(
            f"the prompt is {size:,} bytes, the limit is {MAX_PROMPT:,}; put the data in a file "
            "and let a tool read it"
        )


def check_id(execution_id: object) -> None:
    """Raise `InvalidInput` for what cannot be a new run's id."""
    check_text(execution_id, "an execution_id")
    size = len(str(execution_id).encode())
    if size > MAX_ID:
        raise InvalidInput(f"an execution_id has at most {MAX_ID} bytes; this one has {size}")


def check_name(agent: Actor, log: Log) -> None:
    """Raise `AgentMismatch` for another agent's run."""
    if log.run.agent != agent.name:
        raise AgentMismatch(
            f"run {log.run.execution_id!r} belongs to agent {log.run.agent!r}, not to "
            f"{agent.name!r}; resume it with that one"
        )


def check_tools(agent: Actor, execution_id: str, state: State) -> None:
    """Raise `MissingTool` if the next steps need a tool that the agent does not have."""
    for tool in needed_tools(state):
        if tool not in agent.toolbox:
            raise MissingTool(
                f"run {execution_id!r} needs the tool {tool!r}, which agent {agent.name!r} does "
                "not have; add it and resume again. Nothing was claimed"
            )


def check_edit(agent: Actor, state: State, edited: Mapping[str, object]) -> None:
    """Raise `InvalidInput` if the step's tool cannot run with its arguments edited like this."""
    if state.step is None:
        raise InvalidInput("there is no tool call here whose arguments could be edited")
    tool = agent.toolbox[state.step.tool]
    try:
        tool.validate({**arguments_of(state), **edited})
    except ValueError as error:
        known = tool.schema.get("properties", {})
        takes = "" if edited.keys() <= known.keys() else f"; {tool.name} takes {', '.join(known)}"
        raise InvalidInput(f"the edit was not taken: {error}{takes}") from error


def placed(workdir: str | os.PathLike[str] | None) -> str | None:
    """A working directory as a run keeps it. Raises `InvalidInput` for what is not a path."""
    if workdir is None:
        return None
    try:
        place = os.path.abspath(os.fsdecode(workdir))
    except TypeError as error:
        raise InvalidInput(f"workdir is a path, not {workdir!r}") from error
    check_text(place, "a workdir")
    return place


def checked_place(
    execution_id: str, state: State, workdir: str | os.PathLike[str] | None, *, move: bool
) -> str | None:
    """Where the run goes on if that is not where it was; None if it stays.

    Raises `InvalidInput` for another directory that was not asked for with `move=True`.
    """
    place = placed(workdir)
    if place is None or place == state.workdir:
        return None
    if state.workdir is not None and not move:
        raise InvalidInput(
            f"run {execution_id!r} works in {state.workdir}, not in {place}; its files may not be "
            "there. Pass move=True if that is meant"
        )
    return place
