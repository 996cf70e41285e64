"""An executed cell as plain text, and what failed in it. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbformat import NotebookNode

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def as_text(cell: NotebookNode) -> str:
    """Prose as it is; code with its number, and what it showed."""
    if cell.cell_type != "code":
        return f"{cell.source}\n"
    head = f"In [{cell.execution_count or ' '}]: "
    code = head + cell.source.replace("\n", "\n" + " " * len(head))
    shown = "".join(map(_shown, cell.outputs))
    return f"{code}\n\n{shown}" if shown else f"{code}\n"


def failure(cell: NotebookNode) -> str | None:
    """The error that the cell did not announce, as `Name: message`; None if it ran."""
    if cell.cell_type != "code" or "raises-exception" in cell.metadata.get("tags", ()):
        return None
    errors = (output for output in cell.outputs if output.output_type == "error")
    return next((_shown(error).strip() for error in errors), None)


def _shown(output: NotebookNode) -> str:
    match output.output_type:
        case "stream":
            text = output.text
        case "error":
            text = f"{output.ename}: {output.evalue}"
        case _:
            text = output.data.get("text/plain", "")
    return _ANSI.sub("", text).rstrip("\n") + "\n" if text else ""
