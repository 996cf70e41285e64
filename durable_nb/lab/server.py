"""The process that the lab's children are forked from. It has imported and built what they need.

It runs no step itself, so that nothing a child does can stop it: it ends with the process that
started it, and its children end with it.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, NoReturn

from durable_nb.lab.handover import Report, Work, unpack_for_children
from durable_nb.model.errors import DurableError

_ASK = 0.1  # seconds until a child that tells nothing is asked whether it is there

_forks = get_context("fork")


class Order(NamedTuple):
    """A child to start: what it does, and after how many seconds it is too late."""

    number: int
    work: Work
    timeout: float | None


class Imports(NamedTuple):
    """Modules that a child has imported, and that those after it need not, if they begin with them."""

    modules: tuple[str, ...]


class Hello(NamedTuple):
    """What the server is told first: what its children will unpack, and from where they import."""

    packed: bytes
    inside: str | None
    path: tuple[str, ...]


def main() -> None:
    """Serve whoever holds the other end of the connection that `sys.argv` names."""
    orders: Connection[Any, Any] = Connection(int(sys.argv[2]))
    lifeline = os.dup(sys.stdin.fileno())
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())  # a tool that reads gets an empty input
    children: dict[int, Child] = {}
    try:
        _prepare(orders.recv())
        orders.send(Report("done"))
        _serve(orders, children, lifeline)
    except EOFError:  # whoever asked is gone
        for child in children.values():
            child.kill()
    except BaseException as error:
        orders.send(_broken(error))
        raise


def _prepare(hello: Hello) -> None:
    """Import what the agent needs, and build its schemas once: children begin with both."""
    sys.path[:] = hello.path
    unpack_for_children(hello.packed, hello.inside)


def _serve(orders: Connection[Any, Any], children: dict[int, Child], lifeline: int) -> NoReturn:
    while True:
        for ready in wait([orders, *_watched(children)], _patience(children)):
            if ready is orders:
                match pickle.loads(orders.recv_bytes()):
                    case Imports(modules):
                        _import(modules)
                    case order:
                        children[order.number] = Child(order, (orders.fileno(),), lifeline)
        for number, child in list(children.items()):
            if (report := child.report()) is not None:
                orders.send((number, report))
                if report.ended != "stopped":
                    del children[number]


def _import(modules: tuple[str, ...]) -> None:
    for name in modules:
        with suppress(ImportError):  # not all that is in `sys.modules` can be imported by its name
            import_module(name)


def _watched(children: dict[int, Child]) -> list[Any]:
    return [each for child in children.values() for each in child.watched]


def _patience(children: dict[int, Child]) -> float | None:
    """Seconds until a child may be late, or gone unheard: one that a tool has forked holds what would
    tell us."""
    ends = [child.deadline for child in children.values() if child.deadline is not None]
    return max(0.0, min([_ASK, *(end - time.monotonic() for end in ends)])) if children else None


class Child:
    """A forked process in a session of its own, with what it started."""

    def __init__(self, order: Order, not_its_own: tuple[int, ...], lifeline: int) -> None:
        self._told, tell = _forks.Pipe(duplex=False)
        arguments = order.work, tell, not_its_own, lifeline
        self._process = _forks.Process(target=_child, args=arguments)
        self._process.start()
        tell.close()
        self.deadline = None if order.timeout is None else time.monotonic() + order.timeout
        self._said: Report | None = None

    @property
    def watched(self) -> list[Any]:
        """What becomes ready when there is something to report."""
        return [self._process.sentinel] if self._said else [self._process.sentinel, self._told]

    def report(self) -> Report | None:
        """How it ended, if it did; or that it has stopped, each time."""
        is_gone = self._process.exitcode is not None  # asked first: its last words are there then
        self._hear()
        match self._said:
            case Report("stopped") as stopped:
                os.waitid(os.P_PID, self._pid, os.WSTOPPED | os.WNOWAIT)
                self._said, self.deadline = None, None
                return stopped
            case Report("done" | "error") as over:
                return self._over(over)
        if is_gone:
            return self._over(self._said or Report("gone"))
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return self._over(Report("late"))
        return None

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)

    @property
    def _pid(self) -> int:
        pid = self._process.pid
        assert pid is not None, "it has been started"
        return pid

    def _hear(self) -> None:
        with suppress(EOFError):  # it died without a word
            if self._said is None and self._told.poll():
                self._said = self._told.recv()

    def _over(self, report: Report) -> Report:
        """Leave nothing of it behind. It is reaped last, so that its number is still its own."""
        self.kill()
        self._process.join()
        return replace(report, code=self._process.exitcode or 0)


def _child(
    work: Work, tell: Connection[Any, Any], not_its_own: tuple[int, ...], lifeline: int
) -> None:
    os.setsid()
    for descriptor in not_its_own:
        os.close(descriptor)
    threading.Thread(target=_follow, args=(lifeline,), name="lifeline", daemon=True).start()
    say: Callable[[Report], None] = tell.send
    try:
        say(Report("done", value=work(say)))
    except BaseException as error:  # noqa: BLE001  # reported: who asked raises it
        if not isinstance(error, DurableError):
            traceback.print_exc()
        say(_broken(error))


def _follow(lifeline: int) -> None:
    """End with the process that asked."""
    while os.read(lifeline, 1):
        pass
    os.killpg(0, signal.SIGKILL)


def _broken(error: BaseException) -> Report:
    return Report("error", error=type(error).__name__, text=str(error))
