"""Where cards are drawn: in which notebook, can somebody click, can what was drawn be changed?"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython.core.displaypub import DisplayPublisher

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from durable_nb.notebook.config import Decided


class Screen:
    """`decided` says what was decided about headless cells and live cards."""

    def __init__(self, shell: InteractiveShell, decided: Callable[[], Decided]) -> None:
        self._shell = shell
        self._decided = decided

    def clickable(self) -> bool:
        """Whether buttons make sense: as was decided, else where a kernel's user can be asked
        (nbclient, nbconvert and papermill have nobody)."""
        headless = self._decided().headless
        if headless is not None:
            return not headless
        kernel: Any = getattr(self._shell, "kernel", None)
        return bool(getattr(kernel, "_allow_stdin", False))

    def follows(self) -> bool:
        """Whether cards show what goes on: where somebody can watch; a file gets the last one."""
        return self._decided().live and self.clickable() and self.redraws()

    def redraws(self) -> bool:
        """A terminal has printed what it was shown."""
        return type(self._shell.display_pub) is not DisplayPublisher

    def clicks_while_awaiting(self) -> bool:
        """Whether a click arrives while a cell awaits something: ipykernel 6 holds it back."""
        ipykernel = sys.modules.get("ipykernel")
        return ipykernel is None or ipykernel.version_info[0] >= 7


def notebook_name() -> str | None:
    """The notebook's file name, where a Jupyter server says it."""
    path = os.environ.get("JPY_SESSION_NAME")
    return os.path.basename(path) if path else None
