"""`Agent`: a name, a model, tools and a store. Its runs are durable without asking."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from durable_nb.core.nodes import moment
from durable_nb.core.state import State
from durable_nb.llm.adopt import as_model
from durable_nb.llm.protocol import Model
from durable_nb.model.decisions import Resume
from durable_nb.model.errors import AlreadyResumed, DurableError, RunIsLive
from durable_nb.model.values import digest, dumps, freeze
from durable_nb.runtime import engine
from durable_nb.runtime.actor import Definition
from durable_nb.runtime.begin import start, start_fork
from durable_nb.runtime.checks import check_options, check_text, placed
from durable_nb.runtime.claim import Wish, claim
from durable_nb.runtime.foreign import tools_of
from durable_nb.runtime.limits import Limits
from durable_nb.runtime.loop import Drive, drive
from durable_nb.runtime.ports import SYSTEM, Ports
from durable_nb.runtime.result import RunResult
from durable_nb.runtime.tools import Toolbox
from durable_nb.stores.open import default_store
from durable_nb.stores.protocol import Checkpointer, Lease
from durable_nb.stores.waiting import what_waits

if TYPE_CHECKING:
    import pydantic_ai.models

Place: TypeAlias = str | os.PathLike[str] | None


class Agent:
    """An LLM agent whose every step is on disk before it happens (DESIGN section 2).

    `llm` names a model, `"openai:gpt-5"` or `"local"`, which `model_settings` may tune; or it is
    one: of pydantic-ai's, or anything with `complete(messages, tools) -> Reply`. `tools` are
    functions with annotated parameters, `Tool`s, and those of pydantic-ai and of MCP servers
    (`runtime/foreign.py`). `checkpointer=None` means the default store, looked up at each call.

    A run asks its model at most `max_turns` times, and not again once it has used `max_tokens`
    (input and output) or `max_cost` (US dollars): `TurnLimit`, `BudgetExceeded`. They count over
    the whole run, however often it is resumed; where a server does not tell the tokens, they are
    estimated at three bytes each. Of a history that is longer than `max_context_tokens` (estimated
    so, too) the oldest messages are not sent; the log keeps all of them and says each time how many
    were left out.

    Raises `InvalidInput` and `InvalidTool` for what cannot work.
    """

    def __init__(
        self,
        name: str,
        llm: str | Model | pydantic_ai.models.Model,
        tools: Sequence[object] = (),
        *,
        system_prompt: str | None = None,
        max_turns: int = 50,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        max_context_tokens: int | None = None,
        model_settings: Mapping[str, Any] | None = None,
        checkpointer: Checkpointer | None = None,
        ports: Ports = SYSTEM,
    ) -> None:
        check_text(name, "an agent's name")
        check_options(system_prompt, checkpointer)
        self.limits = Limits(max_turns, max_tokens, max_cost, max_context_tokens)
        self.name = name
        self.llm = as_model(llm, model_settings)
        self.tools = tools_of(tools)
        self.toolbox = Toolbox(self.tools)
        self.system_prompt = system_prompt
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
        workdir: Place = None,
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
        workdir: Place = None,
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
        prompt: str | None = None,
        pause: int | None = None,
        take_over: bool = False,
        workdir: Place = None,
        move: bool = False,
    ) -> RunResult:
        """Answer a pause, go on with a run that died, or say something more (DESIGN R2, R3, R7).

        `resume_value` answers the open pause, the one of number `pause` if that is given. `prompt`
        continues the conversation: in the same run if that had died, in the session's next one if
        it was over. `take_over` is for a run whose owner is known to be stopped, not dead. Another
        `workdir` than the stored one has to be meant: `move=True`.

        Raises `UnknownExecution`, `AgentMismatch`, `MissingTool`, `RunPaused`, `AlreadyResumed`,
        `RunIsLive`, `NotStorable`, `InvalidInput`: nothing was done then.
        """
        wish = Wish(
            decision=resume_value,
            prompt=prompt,
            pause=pause,
            take_over=take_over,
            workdir=workdir,
            move=move,
        )
        return drive(claim(self, execution_id, wish))

    async def aresume(
        self,
        execution_id: str,
        *,
        resume_value: Resume | None = None,
        prompt: str | None = None,
        pause: int | None = None,
        take_over: bool = False,
        workdir: Place = None,
        move: bool = False,
    ) -> RunResult:
        """`resume` without blocking the event loop."""
        wish = Wish(
            decision=resume_value,
            prompt=prompt,
            pause=pause,
            take_over=take_over,
            workdir=workdir,
            move=move,
        )
        return await engine.awaited(lambda stop: drive(claim(self, execution_id, wish), stop))

    def fork(
        self,
        source: str,
        /,
        *,
        at: str | int | None = None,
        prompt: str | None = None,
        edit: Mapping[str, object] | None = None,
        execution_id: str | None = None,
    ) -> RunResult:
        """Branch a run at a step under a new id, and drive the branch; the original stays as it is.

        `at` is a node (`turn:1`, `turn:0/tool:refund`: its first step) or an entry's number; None
        is the newest step. `edit` replaces arguments of the tool there, `prompt` is said before
        the model is asked next. A fork at a pause waits for a decision of its own, and effects may
        repeat: a new execution remembers nothing (DESIGN R5).

        Raises `UnknownExecution`, `ForkRefused`, `ExecutionExists`, `AgentMismatch`,
        `MissingTool`, `InvalidInput`, and whatever escapes the run.
        """
        return drive(
            start_fork(self, source, at=at, prompt=prompt, edit=edit, execution_id=execution_id)
        )

    async def afork(
        self,
        source: str,
        /,
        *,
        at: str | int | None = None,
        prompt: str | None = None,
        edit: Mapping[str, object] | None = None,
        execution_id: str | None = None,
    ) -> RunResult:
        """`fork` without blocking the event loop."""
        forked = partial(
            start_fork, self, source, at=at, prompt=prompt, edit=edit, execution_id=execution_id
        )
        return await engine.awaited(lambda stop: drive(forked(), stop))

    def sweep(self) -> list[RunResult]:
        """Go on with every run of this agent whose pause has expired: a no, marked as a timeout.

        A run that cannot go on does not keep the others waiting: what it raises is raised at the
        end. One that somebody else goes on with meanwhile is theirs.
        """
        due = self.ports.clock()
        waiting, damaged = what_waits(self.checkpointer)
        expired = [
            pending.execution_id
            for pending in waiting
            if pending.agent == self.name
            and pending.expires_at is not None
            and pending.expires_at <= moment(due)
        ]
        results: list[RunResult] = []
        refused: list[DurableError] = [each.error for each in damaged if each.agent == self.name]
        for execution_id in expired:
            try:
                results.append(self.resume(execution_id))
            except (AlreadyResumed, RunIsLive):
                continue
            except DurableError as error:
                refused.append(error)
        if refused:
            for other in refused[1:]:
                refused[0].add_note(f"and {other}")
            raise refused[0]
        return results

    def definition(self) -> Definition:
        """What this agent is made of, as text: what a later process compares itself with."""
        parts = {
            "system_prompt": self.system_prompt,
            "model": _name_of(self.llm),
            "tools": {each.name: each.source for each in self.tools},
        }
        if settings := getattr(self.llm, "settings", None):
            parts["settings"] = settings
        return Definition(dumps(freeze(parts)), digest(parts))

    def drive_of(self, lease: Lease, state: State) -> Drive:
        """A claimed run, ready to be driven with this agent's model and tools."""
        return Drive(
            agent=self.name,
            llm=self.llm,
            tools=self.toolbox,
            limits=self.limits,
            store=self.checkpointer,
            ports=self.ports,
            lease=lease,
            state=state,
        )

    def _start(
        self,
        prompt: str,
        execution_id: str | None,
        workdir: Place,
        tags: Sequence[str],
    ) -> Drive:
        place = placed(workdir)
        return start(self, prompt, execution_id=execution_id, workdir=place, tags=tags)


def _name_of(llm: Model) -> str:
    """What a model says that it is, else its class."""
    name = getattr(llm, "name", None)
    return name if isinstance(name, str) and name else type(llm).__name__
