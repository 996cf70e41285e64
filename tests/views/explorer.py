"""A notebook that holds a store open and explores it, while another process watches its locks.

The rule: what a cell here does must leave both locks as they are. Run as a program it takes a store
and cells as JSON, and prints for each what it did to them.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

WATCH = """
import os, sqlite3, sys
path = sys.argv[1]
def took():
    db = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        db.execute("begin immediate")
    except sqlite3.OperationalError:
        return False
    else:
        return True
    finally:
        db.close()  # it rolls back
def log():
    return os.stat(path + "-wal").st_ino if os.path.exists(path + "-wal") else 0
for asked in sys.stdin:
    before = log()
    mine = took()
    print(int(mine), int(log() == before != 0), flush=True)
"""


@dataclass
class Locks:
    """What another process finds: whether it can write, and, once it has left, whether the log is
    still there: who leaves as the last one removes it."""

    can_write: bool
    log_stays: bool


@dataclass
class Explored:
    before: Locks
    after: Locks
    error: str


class Watcher:
    """The other process."""

    def __init__(self, path: str) -> None:
        command = [sys.executable, "-S", "-c", WATCH, path]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, bufsize=1)

    def look(self) -> Locks:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("look\n")
        self._process.stdin.flush()
        can_write, log_stays = self._process.stdout.readline().split()
        return Locks(can_write == "1", log_stays == "1")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Writer:
    """A write transaction of this process, held open, or let go for a cell that writes itself."""

    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)

    def hold(self, wanted: bool) -> None:
        if self._db.in_transaction != wanted:
            self._db.execute("begin immediate" if wanted else "rollback")


def shell() -> Any:
    """An interactive shell with the extension, and somebody there to click."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    made = InteractiveShell.instance(config=config)
    made.user_ns.update(click=click, tab=tab)
    run(made, "%load_ext durable_nb\n%config DurableMagics.headless = False")
    return made


def run(shell: Any, source: str) -> str:
    """Run a cell quietly; what it raised."""
    from IPython.utils.capture import capture_output

    with capture_output():
        result = shell.run_cell(source)
    error = result.error_in_exec or result.error_before_exec
    return "" if error is None else f"{type(error).__name__}: {error}"


def click(name: str) -> None:
    """Click every button of that name that is there."""
    from ipywidgets.widgets.widget import _instances

    found = [each for each in _instances.values() if getattr(each, "description", "") == name]
    assert found, f"no button {name}"
    for each in found:
        each.click()


def tab(line: str) -> None:
    """Ask what Tab offers at the end of a line."""
    from IPython import get_ipython
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        assert list(get_ipython().Completer.completions(line, len(line)))


def explore(path: str, cells: dict[str, tuple[str, bool]]) -> dict[str, Explored]:
    """Run each cell with the locks looked at before and after; one that writes does it with no
    transaction held."""
    notebook, writer, watcher = shell(), Writer(path), Watcher(path)
    found = {}
    for name, (source, writes) in cells.items():
        writer.hold(not writes)
        before = watcher.look()
        error = run(notebook, source)
        found[name] = Explored(before, watcher.look(), error)
    writer.hold(False)
    watcher.close()
    return found


if __name__ == "__main__":
    os.environ["DURABLE_NB_STORE"] = sys.argv[1]
    explored = explore(sys.argv[1], json.load(sys.stdin))
    sys.stdout.write(json.dumps({name: asdict(each) for name, each in explored.items()}))
