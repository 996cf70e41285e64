"""A daemon thread with an event loop of its own, for what is async in a synchronous run.

It works where a loop already runs (every notebook), and never patches that loop. An async tool that
drives another run may keep its own loop waiting for that, so what is async in there has the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, wait
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE = 0.5  # seconds that an interrupted caller waits for its async tool to leave


class Abandoned(BaseException):
    """The caller of a run is gone: stop where you are, write nothing."""


class Stop:
    """Tells a run that its caller was cancelled, and cancels what it is waiting for."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._waiting: Future[Any] | None = None
        self._lingers: Future[None] | None = None

    def ask(self) -> None:
        self._asked.set()
        if (waiting := self._waiting) is not None:
            waiting.cancel()

    def check(self) -> None:
        """Raise `Abandoned` if the caller is gone."""
        if self._asked.is_set():
            raise Abandoned

    def wait(self, future: Future[T], left: Future[None], start: Callable[[], object]) -> T:
        """The future's result; on *interrupt kernel* or a stop it is cancelled. `left` is cancelled
        when nothing of it executes any more."""
        self._waiting, self._lingers = future, left
        try:
            self.check()
            start()
            return future.result()
        except CancelledError:
            self.check()
            raise
        except BaseException:
            if future.cancel():
                wait([left], timeout=PATIENCE)
            raise
        finally:
            self._waiting = None

    def then(self, action: Callable[[], object]) -> None:
        """Do it now, or as soon as what was cancelled has left."""
        if self._lingers is None or self._lingers.done():
            action()
        else:
            self._lingers.add_done_callback(lambda _: action())


def call(coroutine: Coroutine[Any, Any, T], stop: Stop, *, dropped: bool = False) -> T:
    """Run the coroutine on the engine's loop, in a copy of this context, and wait for it.

    One that is `dropped` counts as gone once it is cancelled, however long it goes on.
    """
    future: Future[T] = Future()
    left: Future[None] = Future()
    context, level = copy_context(), _level.get()
    context.run(_level.set, level + 1)
    loop = _loop(level)
    tasks: list[asyncio.Task[T]] = []

    def start() -> None:
        tasks.append(task := loop.create_task(coroutine, context=context))
        task.add_done_callback(lambda _: left.cancel())  # first: who has the result sees it gone
        task.add_done_callback(lambda done: _pass_on(done, future))

    def cancel() -> None:
        for task in tasks:
            task.cancel()
        if not tasks:  # it never began
            coroutine.close()
            left.cancel()

    if dropped:
        left.cancel()
    future.add_done_callback(lambda done: done.cancelled() and loop.call_soon_threadsafe(cancel))
    return stop.wait(future, left, lambda: loop.call_soon_threadsafe(start))


def background(work: Callable[[Stop], T]) -> tuple[Future[T], Stop]:
    """Run `work` on a thread of its own, in a copy of this context."""
    future: Future[T] = Future()
    stop = Stop()
    context = copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(work, stop))
        except Abandoned:
            future.cancel()
            future.set_running_or_notify_cancel()  # whoever waits for it hears of that
        except BaseException as error:  # noqa: BLE001  # handed to whoever waits
            future.set_exception(_holdable(error))

    threading.Thread(target=run, name="durable_nb run", daemon=True).start()
    return future, stop


async def awaited(work: Callable[[Stop], T]) -> T:
    """`work` on a thread of its own; cancelling the wait stops it at its next step."""
    future, stop = background(work)
    try:
        return await asyncio.shield(asyncio.wrap_future(future))
    except asyncio.CancelledError:
        stop.ask()
        raise


def _pass_on(task: asyncio.Task[T], future: Future[T]) -> None:
    if future.cancelled() or (task.cancelled() and future.cancel()):
        return
    if (error := task.exception()) is not None:
        future.set_exception(error)
    else:
        future.set_result(task.result())


def _holdable(error: BaseException) -> BaseException:
    """The error as asyncio's futures can hold it: not a StopIteration, of a `next()` that ran dry."""
    if not isinstance(error, StopIteration):
        return error
    held = RuntimeError(f"{error!r} left the run")
    held.__cause__ = error
    return held


_level: ContextVar[int] = ContextVar("durable_nb level", default=0)
_loops: dict[tuple[int, int], asyncio.AbstractEventLoop] = {}
_starting = threading.Lock()


def _loop(level: int) -> asyncio.AbstractEventLoop:
    """The loop for a run that so many async steps are waiting for; a forked child starts its own."""
    key = os.getpid(), level
    with _starting:
        if key not in _loops:
            loop = _loops[key] = asyncio.new_event_loop()
            threading.Thread(
                target=_serve, args=[loop], name="durable_nb engine", daemon=True
            ).start()
        return _loops[key]


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop for good. A task that raises SystemExit or KeyboardInterrupt leaves it with the
    error, which is for whoever called the task."""
    while True:
        with contextlib.suppress(SystemExit, KeyboardInterrupt):
            loop.run_forever()
