"""The first notebook: copied beside a newcomer, opened in JupyterLab, or executed and shown as text.

A wheel carries the notebook in this folder; a checkout has it in `notebooks/`.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

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


def open_in_lab(notebook: Path) -> NoReturn:
    """Become JupyterLab, with the notebook open; for root, too, who is alone in a container."""
    _need("jupyterlab")
    root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *root, str(notebook)])


def executed(notebook: Path) -> Iterator[NotebookNode]:
    """Each cell once it has run, in a kernel of its own; one that fails is the last.

    The file is not changed.
    """
    _need("nbclient")
    _need("ipykernel")
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    content = nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]  # it has no types
    client = NotebookClient(content, timeout=120, extra_arguments=["--log-level=ERROR"])
    with client.setup_kernel(cwd=str(notebook.parent)):
        for index, cell in enumerate(content.cells):
            cell.pop("outputs", None)
            try:
                client.execute_cell(cell, index)
            except CellExecutionError:
                yield cell
                return
            yield cell


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
