"""A search in a child process, so that an expression which never comes to an end can be stopped.

The child needs the standard library alone and ends by itself after `SECONDS`.
"""

from __future__ import annotations

import builtins
import json
import signal
import subprocess
import sys
from pathlib import Path

from durable_nb.workspace.look import search
from durable_nb.workspace.place import Place

SECONDS = 30

_HOME = str(Path(__file__).parents[2])
_CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
from durable_nb.workspace.apart import main
main(int(sys.argv[2]))
"""


def search_apart(
    place: Place, expression: str, path: str, pattern: str, *, seconds: int = SECONDS
) -> str:
    """`search`, with its errors. Raises `TimeoutError` if it takes longer than `seconds`."""
    job = json.dumps([place.root, place.stores, expression, path, pattern])
    command = [sys.executable, "-I", "-S", "-c", _CHILD, _HOME, str(seconds)]
    done = subprocess.run(command, input=job.encode(), stdout=subprocess.PIPE, env={}, check=False)
    if done.returncode == -signal.SIGALRM:
        raise TimeoutError(
            f"the search took longer than {seconds} s and was stopped; use a simpler expression, "
            "or narrow path and pattern"
        )
    if done.returncode:
        raise RuntimeError(f"the search broke off (exit code {done.returncode}); narrow it")
    error, text = json.loads(done.stdout)
    if error:
        raise getattr(builtins, error)(text)
    return str(text)


def main(seconds: int) -> None:
    """What the child does: reads a job, writes the kind of an error (or '') and a text."""
    signal.alarm(seconds)  # nobody handles it, so it ends a search that hangs in the expression too
    root, stores, expression, path, pattern = json.load(sys.stdin)
    try:
        answer = ["", search(Place(root, tuple(stores)), expression, path, pattern)]
    except ValueError as error:  # and its subclasses, not all of which are made of one text
        answer = ["ValueError", str(error)]
    except OSError as error:
        answer = [type(error).__name__, str(error)]
    json.dump(answer, sys.stdout)
