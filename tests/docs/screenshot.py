"""`python -m tests.docs.screenshot`: take the README's picture again, of a real JupyterLab.

It shows the cell of the first notebook at which a run waits for a person, with card and buttons.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import nbformat

from durable_nb import tour
from tests.browser.conftest import CHROMIUM_FLAGS, Book, Lab, chromium
from tests.docs.outputs import NOTEBOOKS

PICTURE = NOTEBOOKS / "images" / "card.png"
WIDE: dict[str, int] = {"width": 1180, "height": 1000}  # a line of the card needs no second one
CELL = "run-1042"
ACTIVATE = "n => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = n }"


def take(page: Any, lab: Lab, folder: Path, picture: Path) -> None:
    """Run the first notebook up to the cell, in a folder of the server, and picture the cell."""
    notebook = Path(shutil.copy(NOTEBOOKS / tour.NAME, folder))
    cells = nbformat.read(notebook, as_version=4).cells
    asks = next(at for at, cell in enumerate(cells) if cell.id == CELL)
    page.set_viewport_size(WIDE)
    book = Book(page, lab, notebook)
    for at in range(asks + 1):
        book.run(at)
    book.button(asks, "Approve").wait_for()
    page.evaluate(ACTIVATE, asks + 1)  # the active cell has a toolbar over its corner
    page.locator(".jp-Notebook .jp-Cell").nth(asks).screenshot(path=picture, animations="disabled")


def main() -> None:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder, home = Path(temporary, "work"), Path(temporary, "home")
        folder.mkdir()
        home.mkdir()
        lab = Lab(folder, home)
        try:
            lab.wait()
            browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_FLAGS)
            take(browser.new_page(device_scale_factor=1.5), lab, folder, PICTURE)
        finally:
            lab.close()


if __name__ == "__main__":
    main()
