"""Arms an agent so that its process dies at one point of its run.

Model, tools and store are wrapped from the outside; the loop does not know. What the three moments
mean is said in `durable_nb.lab.crash`.
"""

from __future__ import annotations

import functools
import inspect
import opcode
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, cast

from durable_nb.core.nodes import node_id
from durable_nb.lab.points import RUN_END, Point, When
from durable_nb.llm.protocol import Model
from durable_nb.model.entries import Entry, Row, Run
from durable_nb.runtime.agent import Agent
from durable_nb.stores.protocol import Checkpointer, Lease

_YIELD = opcode.opmap["YIELD_VALUE"]


def arm(agent: Agent, store: Checkpointer, point: Point, die: Callable[[], None]) -> None:
    """Build the end into an agent that is this process's own copy: `die()` does not return."""
    fuse = Fuse(point, die)
    for tool in agent.tools:
        tool.function = fuse.around(tool.function)
    agent.llm = _Model(agent.llm, fuse)
    agent._checkpointer = cast("Checkpointer", _Store(store, fuse))


class Fuse:
    """Follows a run by the rows that it writes, and dies where the point is."""

    def __init__(self, point: Point, die: Callable[[], None]) -> None:
        self._point, self._die = point, die
        self._node = ""

    def wrote(self, entry: Entry) -> None:
        """The entry is on disk."""
        self._node = node_id(entry)
        self._reach("before")

    def let_go(self) -> None:
        """The process no longer drives the run."""
        if self._node == RUN_END:
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
        before = sys.getprofile()
        if self._is("during"):
            sys.setprofile(_first_call(function, self._die))
        try:
            yield
        except Exception:  # an error is a step's result too
            self._performed(None)
            raise
        finally:
            sys.setprofile(before)

    def _performed(self, value: Any) -> Any:
        self._reach("during")  # the body made no call that could be seen
        self._reach("after")
        return value

    def _reach(self, when: When) -> None:
        if self._is(when):
            self._die()

    def _is(self, when: When) -> bool:
        return (self._node, when) == (self._point.node, self._point.when)


class _Model:
    """The agent's model, under the name that the log knows it by."""

    def __init__(self, llm: Model, fuse: Fuse) -> None:
        self._llm = llm
        self.name: str = getattr(llm, "name", None) or type(llm).__name__
        self.complete = fuse.around(llm.complete)

    def __repr__(self) -> str:
        return repr(self._llm)


class _Store:
    """The agent's store: what writes a row or lets go of the run tells the fuse afterwards."""

    def __init__(self, store: Checkpointer, fuse: Fuse) -> None:
        self._store, self._fuse = store, fuse

    def create(self, run: Run, *opening: Entry, at: int, writer: int) -> Lease:
        lease = self._store.create(run, *opening, at=at, writer=writer)
        self._fuse.wrote(opening[-1])
        return lease

    def append(self, lease: Lease, entry: Entry, *, at: int) -> Row:
        row = self._store.append(lease, entry, at=at)
        self._fuse.wrote(entry)
        return row

    def release(self, lease: Lease) -> None:
        self._store.release(lease)
        self._fuse.let_go()

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
