"""Where cards are drawn: in which notebook, can somebody click, can what was drawn be changed?"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython.core.displaypub import DisplayPublisher

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


class Screen:
    """`wanted` is what the user said about buttons; None leaves it to us."""

    def __init__(self, shell: InteractiveShell, wanted: Callable[[], bool | None]) -> None:
        self._shell = shell
        self._wanted = wanted

    def clickable(self) -> bool:
        """Whether buttons make sense: as the user said, else as `DURABLE_NB_HEADLESS` says, else
        where a kernel's user can be asked (nbclient, nbconvert and papermill have nobody)."""
        wanted = self._wanted()
        if wanted is not None:
            return wanted
        if os.environ.get("DURABLE_NB_HEADLESS", "0") not in ("", "0"):
            return False
        kernel: Any = getattr(self._shell, "kernel", None)
        return bool(getattr(kernel, "_allow_stdin", False))

    def redraws(self) -> bool:
        """A terminal has printed what it was shown."""
        return type(self._shell.display_pub) is not DisplayPublisher


def notebook_name() -> str | None:
    """The notebook's file name, where a Jupyter server says it."""
    path = os.environ.get("JPY_SESSION_NAME")
    return os.path.basename(path) if path else None
