"""Runs one command for a process that may die, and lets nothing of it outlive the call.

A script that needs the standard library alone. Its standard input brings one line, the job, and
stays open as a lifeline: when it closes, the process that asked is gone. On Linux whatever the
command started belongs to this process once its own parent has ended, also in a session of its own;
elsewhere only the command's process group is ended.
"""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any, NoReturn

_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36  # of prctl(2)
_LINUX = sys.platform == "linux"
_DEAF_TO = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # the lifeline says when to end
_MOMENT = 0.25  # seconds in which a helper of the shell, such as >(tee log), may end by itself
_PATIENCE = 10.0  # seconds for the kernel to end what got a SIGKILL
_GRACE = 2.0  # seconds between SIGTERM and SIGKILL
_GRACE_ALONE = 0.5  # the same when nobody waits for the result any more


class Kept:
    """The first and the last bytes of a stream, and how many there were."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._head, self._tail = bytearray(), bytearray()
        self.count = 0

    def add(self, data: bytes) -> None:
        self.count += len(data)
        missing = self._room - len(self._head)
        self._head += data[:missing]
        self._tail += data[missing:]
        if len(self._tail) > 2 * self._room:  # twice, so that it is not moved at each byte
            del self._tail[: -self._room]

    def parts(self) -> list[Any]:
        """Head, how many bytes are left out, tail."""
        tail = self._tail[-self._room :]
        cut = self.count - len(self._head) - len(tail)
        return [self._head.decode("latin-1"), cut, tail.decode("latin-1")]


class Watch:
    """One command while it executes."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._job = job
        self._selector = selectors.DefaultSelector()
        self._streams = [Kept(job["keep"]), Kept(job["keep"])]
        self._alone = False
        self._code: int | None = None
        self._wake_on_child()
        self._selector.register(0, selectors.EVENT_READ, None)
        self._shell = self._started()

    def until_over(self) -> dict[str, Any]:
        """Wait for the command, then end what is left of it. What is to be told of it."""
        timed_out = self._wait()
        left = self._left()
        self._end_all()
        return {
            "code": None if timed_out else self._code,
            "left": left,
            "streams": [stream.parts() for stream in self._streams],
        }

    def _wait(self) -> bool:
        """Until the command is over, its time is, or the process that asked is gone."""
        deadline = time.monotonic() + self._job["seconds"]
        while self._code is None and not self._alone:
            left = deadline - time.monotonic()
            if left <= 0:
                return True
            self._turn(min(left, 0.5))
        return False

    def _left(self) -> int:
        """How many processes outlived the shell by more than a moment, which some need to end."""
        deadline = time.monotonic() + _MOMENT
        while living := list(_living(self._shell)):
            if self._code is None or self._alone or time.monotonic() > deadline:
                break
            self._turn(0.02)
        return len(living)

    def _end_all(self) -> None:
        grace = _GRACE_ALONE if self._alone else _GRACE
        for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, _PATIENCE)):
            deadline, told = time.monotonic() + seconds, set[int]()
            while (living := set(_living(self._shell))) and time.monotonic() < deadline:
                for process in living - told:
                    _send(process, number)
                told |= living
                self._turn(0.02)
        while self._turn(0):
            pass

    def _turn(self, seconds: float) -> bool:
        """Take in what comes within some time. Whether a stream brought something."""
        brought = False
        for key, _ in self._selector.select(seconds):
            data = os.read(key.fd, 65_536)
            if isinstance(key.data, Kept):
                key.data.add(data)
                brought = bool(data) or brought
            self._alone = self._alone or (key.fd == 0 and not data)
            if not data:
                self._selector.unregister(key.fd)
        self._alone = self._alone or os.getppid() != self._job["asked_by"]
        self._reap()
        return brought

    def _reap(self) -> None:
        """Take leave of those that ended, adopted ones too."""
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._shell:
                    self._code = os.waitstatus_to_exitcode(ended[1])
        except ChildProcessError:
            return

    def _wake_on_child(self) -> None:
        here, there = os.pipe()
        os.set_blocking(there, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(there, warn_on_full_buffer=False)
        self._selector.register(here, selectors.EVENT_READ, None)

    def _started(self) -> int:
        pipes = [os.pipe(), os.pipe()]
        process = os.fork()
        if not process:
            _become(self._job["shell"], self._job["command"], [write for _, write in pipes])
        for (read, write), stream in zip(pipes, self._streams, strict=True):
            os.close(write)
            self._selector.register(read, selectors.EVENT_READ, stream)
        return process


def _become(shell: str, command: str, streams: list[int]) -> NoReturn:
    """In the forked child: be the shell, in a session of its own."""
    try:
        os.setsid()
        _prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        for number in (signal.SIGPIPE, *_DEAF_TO):
            signal.signal(number, signal.SIG_DFL)
        for source, target in zip(
            [os.open(os.devnull, os.O_RDONLY), *streams], range(3), strict=True
        ):
            os.dup2(source, target)
        os.execv(shell, ["bash", "--noprofile", "--norc", "-c", command])
    except OSError as error:
        os.write(2, f"{shell}: {error}\n".encode())
    finally:
        os._exit(127)


def _living(shell: int) -> Iterator[int]:
    """The processes that the command started, itself included, as targets for a signal."""
    if not _LINUX:
        if _send(-shell, 0):
            yield -shell
        return
    children: dict[int, list[int]] = {}
    for process, parent in _processes():
        children.setdefault(parent, []).append(process)
    found = children.get(os.getpid(), [])
    while found:
        yield (process := found.pop())
        found += children.get(process, [])


def _processes() -> Iterator[tuple[int, int]]:
    """All that are not dead yet, with their parents."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent, *_ = file.read().rpartition(b")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            continue
        if state not in (b"Z", b"X"):
            yield int(name), int(parent)


def _send(process: int, number: int) -> bool:
    target, send = (process, os.kill) if process > 0 else (-process, os.killpg)
    try:
        send(target, number)
    except (ProcessLookupError, PermissionError):  # gone, or another user's
        return False
    return True


def _prctl(option: int, value: int) -> None:
    if _LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _job() -> dict[str, Any]:
    line = b""
    while not line.endswith(b"\n"):
        if not (piece := os.read(0, 65_536)):
            sys.exit()  # whoever asked is gone already
        line += piece
    job: dict[str, Any] = json.loads(line)
    return job


def main() -> None:
    for number in _DEAF_TO:
        signal.signal(number, signal.SIG_IGN)
    job = _job()
    _prctl(_SET_CHILD_SUBREAPER, 1)
    report = json.dumps(Watch(job).until_over())
    try:
        sys.stdout.write(report)
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(0)  # nobody waits for it


if __name__ == "__main__":
    main()
