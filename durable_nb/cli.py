"""The command `durable-nb`: it parses, calls one function, and returns an exit code.

A subcommand is a function `add_NAME(commands)` that says what it takes and sets `run`: a function
of the parsed arguments that prints, and returns 0 or raises a `DurableError`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from durable_nb import __version__
from durable_nb.model.errors import DurableError

if TYPE_CHECKING:
    from nbformat import NotebookNode

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says. Returns 0, or 1 after saying on stderr what went wrong."""
    chosen = parser().parse_args(arguments)
    try:
        code: int = chosen.run(chosen)
        return code
    except DurableError as error:
        print(f"durable-nb: {error}", file=sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="durable-nb",
        description="Run, watch, approve, kill and resume LLM agents from a Jupyter notebook.",
    )
    top.add_argument("--version", action="version", version=f"durable_nb {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (add_tour,):
        add(commands)
    return top


def add_tour(commands: Commands) -> None:
    text = "copy the first notebook here and open it, or run it where there is no screen"
    tour = commands.add_parser("tour", help=text, description=text.capitalize() + ".")
    tour.add_argument(
        "--no-browser",
        action="store_true",
        help="do not open JupyterLab: execute the notebook and print what it shows",
    )
    tour.set_defaults(run=_tour)


def _tour(chosen: argparse.Namespace) -> int:
    from durable_nb import tour

    path, is_new = tour.copy_beside(Path.cwd())
    print(f"{path.name} {'is here' if is_new else 'was here already, and is left as it is'}")
    if tour.has_screen() and not chosen.no_browser:
        tour.open_in_lab(path)
    return _print(tour.executed(path))


def _print(cells: Iterable[NotebookNode]) -> int:
    """Print what a notebook shows, as it runs. Raises `DurableError` if a cell fails."""
    from durable_nb.tour.text import as_text, failure

    for cell in cells:
        print(f"\n{as_text(cell)}", end="", flush=True)
        if (error := failure(cell)) is not None:
            raise DurableError(f"the notebook ended with {error}")
    return 0
