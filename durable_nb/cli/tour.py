"""`durable-nb tour`: the first notebook, for a newcomer."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from durable_nb.model.errors import DurableError

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from durable_nb.cli.options import Commands


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
        return tour.open_in_lab(path)
    return _print(tour.executed(path))


def _print(cells: Iterable[NotebookNode]) -> int:
    """Print what a notebook shows, as it runs. Raises `DurableError` if a cell fails."""
    from durable_nb.tour.text import as_text, failure

    for cell in cells:
        print(f"\n{as_text(cell)}", end="", flush=True)
        if (error := failure(cell)) is not None:
            raise DurableError(f"the notebook ended with {error}")
    return 0
