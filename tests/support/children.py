"""Child processes: started with a task, killed, stopped, and asked how they ended."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TIMEOUT = 60


class Child:
    """A Python process that does one task of `tests.crash.child`."""

    def __init__(self, folder: Path, agent: str, do: str = "run", **task: Any) -> None:
        given = {"folder": str(folder), "agent": agent, "do": do, "id": "r1", **task}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.child", json.dumps(given)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )

    def until_ready(self) -> None:
        """Wait until it has said so."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def outcome(self) -> str:
        """The status of its run, the name of its error, or the signal that ended it."""
        out, _ = self.process.communicate(timeout=TIMEOUT)
        if self.process.returncode < 0:
            return f"signal {-self.process.returncode}"
        return out.splitlines()[-1]

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.process.kill()
        self.process.communicate(timeout=TIMEOUT)
