"""An agent on the local model, and what child processes do with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

from durable_nb import Agent, SQLiteCheckpointer
from durable_nb.llm.local_server import serving
from durable_nb.llm.stream import listening
from tests.support.children import TIMEOUT
from tests.support.ledger import Ledger

PROMPT = "Refund order 1042. The amount is 20 dollars."
STORY = "Write a long story about the sea."


def make(folder: Path) -> Agent:
    effects = Ledger(folder / "effects")

    def refund(order: str, amount: int) -> str:
        """Refund an order. The amount is in dollars."""
        effects.add(f"{order}: {amount}")
        return f"refunded {amount} dollars for order {order}"

    return Agent(
        "shop", "local", [refund], checkpointer=SQLiteCheckpointer(folder / "runs.sqlite3")
    )


def teller(folder: Path) -> Agent:
    """An agent without tools, whose replies are long."""
    store = SQLiteCheckpointer(folder / "runs.sqlite3")
    return Agent("teller", "local", checkpointer=store, model_settings={"max_tokens": 2000})


def die_in_mid_reply(folder: Path) -> None:
    """Be killed as soon as the first word of an answer is there."""
    with listening(lambda text: text and os.kill(os.getpid(), signal.SIGKILL)):
        make(folder).run(PROMPT, execution_id="r1")


def say_that_a_reply_comes(folder: Path, tell: Connection) -> None:
    """Say so at the first word, and go on with it."""
    said = threading.Event()

    def hear(text: str) -> None:
        if text and not said.is_set():
            said.set()
            tell.send("begun")

    with listening(hear):
        teller(folder).run(STORY, execution_id="r1")


def say_where_it_serves(tell: Connection) -> None:
    tell.send(serving().url)
    time.sleep(60)


def resume(folder: Path) -> None:
    assert make(folder).resume("r1").status == "completed"


def silent(code: str) -> int:
    """The exit code of a process that writes nothing, neither Python nor what is below it."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=TIMEOUT)
    assert (done.stdout, done.stderr) == (b"", b"")
    return done.returncode
