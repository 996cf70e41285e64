"""Children that are forked from a server process: real, cheap to lose, and never without us."""

from __future__ import annotations

import codecs
import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress
from itertools import count
from multiprocessing import Pipe
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from durable_nb.lab.handover import Report, Work
from durable_nb.lab.server import Hello, Imports, Order
from durable_nb.model.errors import InvalidInput

_HOME = str(Path(__file__).parents[2])  # the server imports the durable_nb that this process did
_SERVER = """
import sys
sys.path.insert(0, sys.argv[1])
from durable_nb.lab.server import main
main()
"""
_PATIENCE = 0.3  # seconds for the server to end by itself; one that still imports does not


class Forks:
    """The children of one question, forked from a server that has unpacked `packed` once.

    The server and all children are in sessions of their own, where no *interrupt kernel* reaches
    them, and end with the `with` block and with this process. With `heard` what they print is
    written to `sys.stdout` while this process waits.
    """

    def __init__(self, packed: bytes, *, inside: str | None = None, heard: bool = False) -> None:
        self._numbers = count(1)
        self._orders, theirs = Pipe()
        self._server = subprocess.Popen(
            [sys.executable, "-P", "-u", "-c", _SERVER, _HOME, str(theirs.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if heard else subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        path = tuple(os.path.abspath(each) for each in sys.path)
        self._orders.send(Hello(packed, inside, path))
        self._text = codecs.getincrementaldecoder("utf-8")("replace")

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *raised: object) -> None:
        """End the server and every child, whatever they are doing."""
        self._orders.close()
        lifeline, output = self._server.stdin, self._server.stdout
        assert lifeline is not None, "it was opened for this"
        with suppress(BrokenPipeError):
            lifeline.close()
        try:
            self._server.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(self._server.pid, signal.SIGKILL)
            self._server.wait()
        if output is not None:
            output.close()

    def start(self, work: Work, *, timeout: float | None = None) -> int:
        """Fork a child for the work. Returns the number by which it is reported."""
        number = next(self._numbers)
        self._orders.send_bytes(pickle.dumps(Order(number, work, timeout)))
        return number

    def begin_with(self, modules: tuple[str, ...]) -> None:
        """Let the children from now on find these imported, as one before them has."""
        self._orders.send_bytes(pickle.dumps(Imports(modules)))

    def report(self) -> tuple[int, Report]:
        """Wait for the next child to end or to stop. Raises `InvalidInput` if the agent cannot be
        built in another process."""
        while True:
            told = self._told()
            if isinstance(told, tuple):
                return told
            if told.ended == "error":
                raise InvalidInput(
                    f"the agent cannot be built in another process ({told.error}: {told.text}); "
                    "what its tools import by name has to be importable there"
                )

    def do(self, work: Work, *, timeout: float | None = None) -> Report:
        """Fork a child, and wait for its end."""
        self.start(work, timeout=timeout)
        return self.report()[1]

    def _told(self) -> Any:
        """What the server says next; meanwhile, pass on what is printed."""
        while True:
            printed = [] if self._server.stdout is None else [self._server.stdout.fileno()]
            ready = wait([self._orders, *printed])
            if printed and printed[0] in ready and self._pass_on(printed[0]):
                continue
            try:
                return self._orders.recv()
            except (EOFError, ConnectionResetError):
                return Report("error", error="gone", text="the process that forks is gone")

    def _pass_on(self, output: int) -> bool:
        """Show what has been printed, if anything was."""
        printed = os.read(output, 65536)
        sys.stdout.write(self._text.decode(printed))
        return bool(printed)
