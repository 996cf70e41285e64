"""The command `durable-nb`: it parses, calls one function, and returns an exit code.

0: done. 1: one of our errors, as one line on stderr. 2: the command line is wrong, or a decision
lacks its flag. 130: interrupted. 141: nobody reads stdout any more. Data goes to stdout,
everything said about it to stderr.

A subcommand is a function `add_NAME(commands)` that says what it takes and sets `run`: a function
of the parsed arguments that prints, and returns a code or raises a `DurableError`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from durable_nb import __version__
from durable_nb.cli.decisions import add_answer, add_approve, add_reject
from durable_nb.cli.driving import add_fork, add_resume, add_run
from durable_nb.cli.hints import hint
from durable_nb.cli.looking import add_pending, add_runs, add_sessions, add_show
from durable_nb.cli.plane import add_plane
from durable_nb.cli.screen import fail, flush, hush, prepare, say
from durable_nb.cli.tour import add_tour
from durable_nb.cli.upkeep import add_cancel, add_doctor, add_export, add_prune
from durable_nb.core.near import did_you_mean
from durable_nb.core.text import visible
from durable_nb.model.errors import DurableError

SUBCOMMANDS = (
    add_tour,
    add_run,
    add_runs,
    add_show,
    add_sessions,
    add_pending,
    add_approve,
    add_reject,
    add_answer,
    add_resume,
    add_fork,
    add_cancel,
    add_prune,
    add_export,
    add_doctor,
    add_plane,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says. Returns its exit code."""
    prepare()
    try:
        return _main(arguments)
    except BrokenPipeError:  # whoever read our output has seen enough
        return hush()


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="durable-nb",
        description="Run, watch, approve, kill and resume LLM agents from a Jupyter notebook.",
    )
    top.add_argument("--version", action="version", version=f"durable_nb {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in SUBCOMMANDS:
        add(commands)
    return top


def _check_command(top: argparse.ArgumentParser, typed: Sequence[str]) -> None:
    """Say which command was meant by one that there is not."""
    known = [add.__name__.removeprefix("add_") for add in SUBCOMMANDS]
    if typed and not typed[0].startswith("-") and typed[0] not in known:
        meant = did_you_mean(typed[0], known)
        top.error(visible(f"no command {typed[0]!r}{meant}; see durable-nb --help"))


def _main(arguments: Sequence[str] | None) -> int:
    top = parser()
    typed = sys.argv[1:] if arguments is None else arguments
    _check_command(top, typed)
    chosen = top.parse_args(typed)
    try:
        code: int = chosen.run(chosen)
        flush()
        return code
    except DurableError as error:
        fail(error, hint(error, chosen))
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130
