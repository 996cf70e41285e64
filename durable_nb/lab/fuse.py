"""Arms an agent so that its process ends at one point of its run.

Model, tools and store are wrapped from the outside; the loop does not know. What the three moments
mean is said in `durable_nb.lab.crash`.
"""

from __future__ import annotations

import functools
import inspect
import opcode
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, Protocol, cast

from durable_nb.core.nodes import node_id
from durable_nb.lab.points import RUN_END, Point, When
from durable_nb.llm.protocol import Model
from durable_nb.llm.stream import listening
from durable_nb.model.entries import Entry, Row, Run
from durable_nb.runtime.agent import Agent
from durable_nb.runtime.scope import PauseSignal
from durable_nb.stores.protocol import Checkpointer, Lease

_YIELD = opcode.opmap["YIELD_VALUE"]
_OURS = "durable_nb.llm."  # models that tell their text as it comes


def arm(agent: Agent, store: Checkpointer, point: Point, die: Callable[[], None]) -> None:
    """Build the end into an agent that is this process's own copy."""
    fuse = Fuse(point, die)
    for tool in agent.tools:
        tool.function = fuse.around(tool.function)
    agent.llm = _Model(agent.llm, fuse)
    follow(agent, store, fuse)


class Follower(Protocol):
    """Whoever wants to know how far a run is."""

    def wrote(self, entry: Entry, number: int) -> None:
        """The entry is on disk."""

    def let_go(self) -> None:
        """The process no longer drives the run."""


def follow(agent: Agent, store: Checkpointer, follower: Follower) -> None:
    """Let the agent, this process's own copy, use the store and tell of each row."""
    agent._checkpointer = cast("Checkpointer", _Store(store, follower))


class Fuse:
    """Follows a run by the rows that it writes, and calls `die` once where the point is."""

    def __init__(self, point: Point, die: Callable[[], None]) -> None:
        self._point, self._die = point, die
        self._node, self._number = "", 0
        self._is_spent = False

    def wrote(self, entry: Entry, number: int) -> None:
        self._node, self._number = node_id(entry), number
        self._reach("before")

    def let_go(self) -> None:
        if self._node == RUN_END or self._point.number is not None:
            self._reach("after")

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function that performs a step, sync or async, with the fuse in it."""

        @functools.wraps(function)
        def step(*args: Any, **kwargs: Any) -> Any:
            with self._inside(function):
                value = function(*args, **kwargs)
            return awaited(value) if inspect.isawaitable(value) else self._performed(value)

        async def awaited(value: Any) -> Any:
            with self._inside(function):
                value = await value
            return self._performed(value)

        return step

    @contextmanager
    def _inside(self, function: Callable[..., Any]) -> Iterator[None]:
        """While the step's body executes on this thread."""
        with ExitStack() as held:
            if self._is("during"):
                held.enter_context(self._in_the_middle(function))
            try:
                yield
            except (Exception, PauseSignal) as error:  # an error is a step's result too
                if self._point.number is not None or not isinstance(error, PauseSignal):
                    self._performed(None)
                raise

    @contextmanager
    def _in_the_middle(self, function: Callable[..., Any]) -> Iterator[None]:
        """Die in the body: of a model of ours when it tells the first text of its reply, of any
        other function when the first call that it makes is over."""
        if inspect.unwrap(function).__module__.startswith(_OURS):
            with listening(lambda text: self._reach("during") if text else None):
                yield
            return
        before = sys.getprofile()
        sys.setprofile(_first_call(function, lambda: self._reach("during")))
        try:
            yield
        finally:
            sys.setprofile(before)

    def _performed(self, value: Any) -> Any:
        self._reach("during")  # nothing that could be seen happened in the body
        self._reach("after")
        return value

    def _reach(self, when: When) -> None:
        if self._is(when):
            self._is_spent = True
            self._die()

    def _is(self, when: When) -> bool:
        here = self._node if self._point.number is None else self._number
        meant = self._point.node if self._point.number is None else self._point.number
        return not self._is_spent and (here, when) == (meant, self._point.when)


class _Model:
    """The agent's model, with all that the log knows of it."""

    def __init__(self, llm: Model, fuse: Fuse) -> None:
        self._llm = llm
        self.name: str = getattr(llm, "name", None) or type(llm).__name__
        self.complete = fuse.around(llm.complete)

    def __repr__(self) -> str:
        return repr(self._llm)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._llm, name)


class _Store:
    """The agent's store: what writes a row or lets go of the run tells the follower afterwards."""

    def __init__(self, store: Checkpointer, follower: Follower) -> None:
        self._store, self._follower = store, follower

    def create(self, run: Run, *opening: Entry, at: int, writer: int) -> Lease:
        lease = self._store.create(run, *opening, at=at, writer=writer)
        self._follower.wrote(opening[-1], lease.number)
        return lease

    def claim(self, execution_id: str, entry: Any, **how: Any) -> tuple[Lease, Row]:
        lease, row = self._store.claim(execution_id, entry, **how)
        self._follower.wrote(entry, row.number)
        return lease, row

    def append(self, lease: Lease, entry: Entry, *, at: int) -> Row:
        row = self._store.append(lease, entry, at=at)
        self._follower.wrote(entry, row.number)
        return row

    def release(self, lease: Lease) -> None:
        self._store.release(lease)
        self._follower.let_go()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def _first_call(
    function: Callable[..., Any], then: Callable[[], None]
) -> Callable[[FrameType, str, Any], None]:
    """A profile hook: `then()` as soon as the first call that the function's own body makes is over.

    A coroutine that is merely suspended is not over. The body is the one under all decorators.
    """
    own = getattr(inspect.unwrap(function), "__code__", None)

    def hook(frame: FrameType, event: str, argument: Any) -> None:
        match event:
            case "return" if frame.f_back is not None and not _suspended(frame):
                over = frame.f_back.f_code is own
            case "c_return" | "c_exception":
                over = frame.f_code is own
            case _:
                over = False
        if over:
            then()

    return hook


def _suspended(frame: FrameType) -> bool:
    return frame.f_code.co_code[frame.f_lasti] == _YIELD
