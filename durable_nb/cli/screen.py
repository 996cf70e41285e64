"""Where the command's words leave the process: data on stdout, words about it on stderr.

Nothing that a terminal would act on gets through: models and contexts can say anything. There are
no colours.
"""

from __future__ import annotations

import io
import json
import os
import sys

from durable_nb.cli.agents import Escaped
from durable_nb.core.text import visible
from durable_nb.model.errors import DurableError
from durable_nb.model.values import Json

_SIGPIPE = 141  # what a shell says of a program that a closed pipe ended


def prepare() -> None:
    """Show what an encoding does not have as an escape, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def show(text: str) -> None:
    """Data for people."""
    print(visible(text))


def show_json(value: Json) -> None:
    """Data for programs: one JSON document, in ASCII."""
    print(json.dumps(value, indent=2, allow_nan=False).replace("\x7f", "\\u007f"))


def say(text: str) -> None:
    """A word about what is shown, or about what is going on."""
    flush()
    print(visible(text), file=sys.stderr, flush=True)


def fail(error: DurableError, hint: str = "") -> None:
    """One line that says what was refused, or what the user's own code raised."""
    say(f"{_name(error)}: {' '.join(f'{error}{hint}'.split())}")


def flush() -> None:
    """Find out now whether anybody reads."""
    print(end="", flush=True)


def hush() -> int:
    """Nobody reads any more: nothing else is written. Returns the exit code for that."""
    silence = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(silence, stream.fileno())
    return _SIGPIPE


def _name(error: DurableError) -> str:
    """The root of the tree has no name that would help."""
    if isinstance(error, Escaped):
        return error.kind
    return "durable-nb" if type(error) is DurableError else type(error).__name__
