"""`Agent`: a name, a model, tools and a store. Its runs are durable without asking."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from durable_nb.llm.protocol import Model
from durable_nb.model.decisions import Resume
from durable_nb.model.errors import InvalidInput
from durable_nb.runtime import engine
from durable_nb.runtime.claim import claim, start
from durable_nb.runtime.loop import Drive, drive
from durable_nb.runtime.ports import SYSTEM, Ports
from durable_nb.runtime.result import RunResult
from durable_nb.runtime.tools import Tool, Toolbox, as_tool
from durable_nb.stores.open import default_store
from durable_nb.stores.protocol import Checkpointer


class Agent:
    """An LLM agent whose every step is on disk before it happens (DESIGN section 2).

    `tools` are functions with annotated parameters, or `Tool`s. `llm` is anything with
    `complete(messages, tools) -> Reply`. `checkpointer=None` means the default store, looked up
    at each call. Raises `InvalidInput` and `InvalidTool` for what cannot work.
    """

    def __init__(
        self,
        name: str,
        llm: Model,
        tools: Sequence[Callable[..., Any] | Tool] = (),
        *,
        system_prompt: str | None = None,
        max_turns: int = 50,
        checkpointer: Checkpointer | None = None,
        ports: Ports = SYSTEM,
    ) -> None:
        _check(name, llm, max_turns)
        self.name = name
        self.llm = llm
        self.tools = tuple(as_tool(each) for each in tools)
        self.toolbox = Toolbox(self.tools)
        self.system_prompt = system_prompt
        self.max_turns = max_turns
        self.ports = ports
        self._checkpointer = checkpointer

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, tools={[each.name for each in self.tools]})"

    @property
    def checkpointer(self) -> Checkpointer:
        """The store of this agent's runs."""
        return default_store() if self._checkpointer is None else self._checkpointer

    def run(
        self,
        prompt: str,
        *,
        execution_id: str | None = None,
        workdir: str | os.PathLike[str] | None = None,
        tags: Sequence[str] = (),
    ) -> RunResult:
        """Start a run and drive it until it ends or waits for a person.

        Sync tools and models execute on this thread, also where an event loop runs. Raises
        `ExecutionExists` for an id that has rows, `InvalidInput`, and whatever escapes the run.
        """
        return drive(self._start(prompt, execution_id, workdir, tags))

    async def arun(
        self,
        prompt: str,
        *,
        execution_id: str | None = None,
        workdir: str | os.PathLike[str] | None = None,
        tags: Sequence[str] = (),
    ) -> RunResult:
        """`run` without blocking the event loop. Cancelling leaves the run as a crash would."""
        started = partial(self._start, prompt, execution_id, workdir, tags)
        return await engine.awaited(lambda stop: drive(started(), stop))

    def resume(
        self,
        execution_id: str,
        *,
        resume_value: Resume | None = None,
        pause: int | None = None,
        take_over: bool = False,
    ) -> RunResult:
        """Answer a pause with `resume_value`, or go on with a run that died (DESIGN R2, R3).

        `pause` binds the answer to that pause's number. `take_over` is for a run whose owner is
        known to be stopped, not dead. Raises `UnknownExecution`, `AgentMismatch`, `MissingTool`,
        `RunPaused`, `AlreadyResumed`, `RunIsLive`: nothing was done then.
        """
        return drive(self._claim(execution_id, resume_value, pause, take_over))

    async def aresume(
        self,
        execution_id: str,
        *,
        resume_value: Resume | None = None,
        pause: int | None = None,
        take_over: bool = False,
    ) -> RunResult:
        """`resume` without blocking the event loop."""
        claimed = partial(self._claim, execution_id, resume_value, pause, take_over)
        return await engine.awaited(lambda stop: drive(claimed(), stop))

    def definition(self) -> dict[str, Any]:
        """What this agent is made of, as text: what a later process compares itself with."""
        return {
            "system_prompt": self.system_prompt,
            "model": getattr(self.llm, "name", None) or type(self.llm).__name__,
            "tools": {each.name: each.source for each in self.tools},
        }

    def _start(
        self,
        prompt: str,
        execution_id: str | None,
        workdir: str | os.PathLike[str] | None,
        tags: Sequence[str],
    ) -> Drive:
        place = None if workdir is None else os.path.abspath(workdir)
        return start(self, prompt, execution_id=execution_id, workdir=place, tags=tags)

    def _claim(
        self, execution_id: str, decision: Resume | None, pause: int | None, take_over: bool
    ) -> Drive:
        return claim(self, execution_id, decision=decision, pause=pause, take_over=take_over)


def _check(name: object, llm: object, max_turns: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(f"an agent's name is text with something in it, not {name!r}")
    if isinstance(llm, str):
        raise InvalidInput(
            f"llm={llm!r}: models by name come with the extra durable_nb[models], which this "
            "version does not have yet; pass an object with complete(messages, tools), such as "
            "ScriptedModel([...])"
        )
    if not callable(getattr(llm, "complete", None)):
        raise InvalidInput(f"llm={llm!r} has no method complete(messages, tools) -> Reply")
    if not isinstance(max_turns, int) or isinstance(max_turns, bool) or max_turns < 1:
        raise InvalidInput(f"max_turns is a whole number from 1 on, not {max_turns!r}")
