"""The first notebook: copied beside a newcomer, opened in JupyterLab, or executed and shown as text.

A wheel carries the notebook in this folder; a checkout has it in `notebooks/`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from durable_nb.model.errors import DurableError

if TYPE_CHECKING:
    from nbformat import NotebookNode

NAME = "01_a_run_you_can_kill.ipynb"
_HERE = Path(__file__).parent


class Copy(NamedTuple):
    """The reader's own notebook. `is_new` is False where a file of that name was there before."""

    path: Path
    is_new: bool


def copy_beside(folder: Path) -> Copy:
    """Put the notebook into the folder. A file that is there already stays as it is."""
    target = folder / NAME
    try:
        with target.open("xb") as file, _original().open("rb") as original:
            shutil.copyfileobj(original, file)
    except FileExistsError:
        return Copy(target, is_new=False)
    except OSError as error:
        raise DurableError(
            f"the notebook cannot be copied to {folder}: {error.strerror}; "
            "change to a folder of yours and try again"
        ) from error
    return Copy(target, is_new=True)


def has_screen() -> bool:
    """Whether somebody sits at a terminal with a display, where a browser can open."""
    display = sys.platform != "linux" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    return display and sys.stdout.isatty()


def open_in_lab(notebook: Path) -> int:
    """Run JupyterLab on the notebook until it is closed. Returns its exit code."""
    _need("jupyterlab")
    return subprocess.run(
        [sys.executable, "-m", "jupyterlab", str(notebook)], check=False
    ).returncode


def execute(notebook: Path) -> NotebookNode:
    """Run all cells in a kernel of their own and return the notebook; the file is not changed.

    A cell that fails is the last one that ran: see `failure`.
    """
    _need("nbclient")
    _need("ipykernel")
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    cells: NotebookNode = nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]  # it has no types
    for cell in cells.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    with suppress(CellExecutionError):  # it is in the cell's outputs
        NotebookClient(cells, timeout=120).execute(cwd=str(notebook.parent))
    return cells


def _original() -> Path:
    for folder in (_HERE, _HERE.parents[1] / "notebooks"):
        if (folder / NAME).exists():
            return folder / NAME
    raise DurableError(f"this installation lacks {NAME}; install durable_nb again")


def _need(module: str) -> None:
    if find_spec(module) is None:
        raise DurableError(
            f"the tour needs {module}, which comes with an extra: pip install 'durable_nb[lab]'"
        )
