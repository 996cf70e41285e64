"""How a process, or its store, comes to an end at a point of a run: for real, each of them."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from typing import NoReturn

from durable_nb.lab.handover import Report, Say
from durable_nb.model.errors import InvalidInput
from durable_nb.stores import sqlite_file
from durable_nb.stores.protocol import Checkpointer
from durable_nb.stores.sqlite import SQLiteCheckpointer

EXIT_CODE = 9
_PATIENCE = 1.0  # seconds that the run waits for the lock, which a store would wait for a minute
_HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("begin immediate")
print("locked", flush=True)
sys.stdin.read()
"""


def kill(say: Say) -> NoReturn:
    """SIGKILL to this process and what it started: nothing is flushed, closed or left running."""
    say(Report("killed"))
    os.killpg(0, signal.SIGKILL)
    raise AssertionError("a process outlived its SIGKILL")


def leave(say: Say) -> NoReturn:
    """`os._exit`: no `finally` and no `atexit` is run."""
    say(Report("killed"))
    os._exit(EXIT_CODE)


def stop(say: Say) -> None:
    """SIGSTOP to this process and what it started. It goes on when somebody wakes it."""
    say(Report("stopped", value=os.getpid()))
    os.killpg(0, signal.SIGSTOP)


def fill() -> None:
    """From now on no file of this process can grow, as on a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))


def lock(store: Checkpointer) -> None:
    """From now on another process holds the write lock of the store's file, until this one ends."""
    sqlite_file.BUSY_SECONDS = _PATIENCE
    command = [sys.executable, "-c", _HOLD, file_of(store)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()  # it has the lock


def file_of(store: Checkpointer) -> str:
    """The file of a store. Raises `InvalidInput` for one that is none."""
    if not isinstance(store, SQLiteCheckpointer):
        raise InvalidInput(f"{store!r} is no file that could be full or locked; use a SQLite store")
    return str(store.path)
