"""Outside of a notebook a terminal shows one line, and anything else nothing."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

SCRIPT = """
from durable_nb import Agent, MemoryCheckpointer, ScriptedModel, lab
agent = Agent("bot", ScriptedModel(["Done."]), checkpointer=MemoryCheckpointer())
lab.crash_matrix(agent, "Go")
"""


def said_on_stderr(folder: Path, *, terminal: bool) -> str:
    ours, theirs = pty.openpty() if terminal else os.pipe()
    command = [sys.executable, "-c", SCRIPT]
    subprocess.run(command, cwd=folder, check=True, stderr=theirs, stdin=subprocess.DEVNULL)
    os.close(theirs)
    found = b""
    with suppress(OSError):  # how a terminal says that nobody is at its other end
        while piece := os.read(ours, 65536):
            found += piece
    os.close(ours)
    return found.decode()


def test_a_terminal_shows_one_line_that_is_written_over(tmp_path: Path) -> None:
    said = said_on_stderr(tmp_path, terminal=True)
    assert said.count("\n") == 1
    assert said.rstrip().split("\r")[-1].endswith("5/5 kills")


def test_a_file_gets_no_progress(tmp_path: Path) -> None:
    assert said_on_stderr(tmp_path, terminal=False) == ""
