"""One daemon thread with an event loop of its own, for what is async in a synchronous run.

It works where a loop already runs (every notebook), and never patches that loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")


class Abandoned(BaseException):
    """The caller of a run is gone: stop where you are, write nothing."""


class Stop:
    """Tells a run that its caller was cancelled, and cancels what it is waiting for."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._waiting: Future[Any] | None = None

    def ask(self) -> None:
        self._asked.set()
        if (waiting := self._waiting) is not None:
            waiting.cancel()

    def check(self) -> None:
        """Raise `Abandoned` if the caller is gone."""
        if self._asked.is_set():
            raise Abandoned

    def wait(self, future: Future[T]) -> T:
        """The future's result; on *interrupt kernel* or a stop it is cancelled."""
        self._waiting = future
        try:
            self.check()
            return future.result()
        except CancelledError:
            self.check()
            raise
        except BaseException:
            future.cancel()
            raise
        finally:
            self._waiting = None


def call(coroutine: Coroutine[Any, Any, T], stop: Stop) -> T:
    """Run the coroutine on the engine's loop, in a copy of this context, and wait for it."""
    future: Future[T] = Future()
    context = copy_context()

    def start() -> None:
        task = loop.create_task(coroutine, context=context)
        future.add_done_callback(
            lambda done: done.cancelled() and loop.call_soon_threadsafe(task.cancel)
        )
        task.add_done_callback(lambda done: _pass_on(done, future))

    loop = _loop()
    loop.call_soon_threadsafe(start)
    return stop.wait(future)


def background(work: Callable[[Stop], T]) -> tuple[Future[T], Stop]:
    """Run `work` on a thread of its own, in a copy of this context."""
    future: Future[T] = Future()
    stop = Stop()
    context = copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(work, stop))
        except Abandoned:
            future.cancel()  # nobody waits any more
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


_engine: tuple[int, asyncio.AbstractEventLoop] | None = None
_starting = threading.Lock()


def _loop() -> asyncio.AbstractEventLoop:
    """The engine's loop; a forked child starts its own."""
    global _engine
    with _starting:
        if _engine is None or _engine[0] != os.getpid():
            loop = asyncio.new_event_loop()
            threading.Thread(
                target=_serve, args=[loop], name="durable_nb engine", daemon=True
            ).start()
            _engine = os.getpid(), loop
        return _engine[1]


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop for good. A task that raises SystemExit or KeyboardInterrupt leaves it with the
    error, which is for whoever called the task."""
    while True:
        with contextlib.suppress(SystemExit, KeyboardInterrupt):
            loop.run_forever()
