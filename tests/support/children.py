"""Child processes: started with a task, killed, stopped, and asked how they ended.

They are forked from a server that has imported what they need, and share nothing with the tests.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TIMEOUT = 60

_forks = get_context("forkserver")
_preloaded = ["pytest", "pydantic", "psycopg_pool", "tests.crash.child"]
_forks.set_forkserver_preload(_preloaded)


def preload(*modules: str) -> None:
    """Let children find these imported, too. It has to be said before the first of them starts."""
    _preloaded.extend(modules)
    _forks.set_forkserver_preload(_preloaded)


class Process:
    """A process that calls a function of a module that it can import."""

    def __init__(self, function: Callable[..., None], *arguments: Any) -> None:
        self._process = _forks.Process(target=function, args=arguments, daemon=True)
        self._process.start()

    def ended(self) -> str:
        """Wait until it is gone: `ended` with its code, or the `signal` that it died of."""
        self._process.join(TIMEOUT)
        code = self._process.exitcode
        assert code is not None, "it does not end"
        return f"signal {-code}" if code < 0 else f"ended {code}"

    def signal(self, number: int) -> None:
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._process.kill()
        self.ended()


class Child(Process):
    """A process that does one task of `tests.crash.child` on the store `kind` of a folder."""

    def __init__(self, folder: Path, kind: str, agent: str, do: str = "run", **task: Any) -> None:
        from tests.crash.child import work

        given = {"folder": folder, "kind": kind, "agent": agent, "do": do, "id": "r1", **task}
        self._told, tell = _forks.Pipe(duplex=False)
        super().__init__(work, given, tell)
        tell.close()

    def until_ready(self) -> None:
        """Wait until it has said so."""
        assert self._hear() == "ready"

    def outcome(self) -> str:
        """The status of its run, the name of its error, or the signal that ended it."""
        try:
            said = self._hear()
        except EOFError:  # it died without a word
            return self.ended()
        self.ended()
        return said

    def _hear(self) -> str:
        assert self._told.poll(TIMEOUT), "it says nothing"
        return str(self._told.recv())
