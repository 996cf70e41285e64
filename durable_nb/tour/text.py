"""An executed notebook as plain text, and what failed in it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbformat import NotebookNode

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def as_text(notebook: NotebookNode) -> str:
    """Prose as it is; code with its number, and what it showed."""
    return "\n\n".join(block for cell in notebook.cells for block in _blocks(cell) if block)


def failure(notebook: NotebookNode) -> str | None:
    """The error that ended the notebook, as `Name: message`; None if every cell ran."""
    for cell in notebook.cells:
        if "raises-exception" in cell.metadata.get("tags", ()):
            continue
        for output in cell.get("outputs", ()):
            if output.output_type == "error":
                return _shown(output).strip()
    return None


def _blocks(cell: NotebookNode) -> Iterator[str]:
    if cell.cell_type != "code":
        yield cell.source
        return
    head = f"In [{cell.execution_count or ' '}]: "
    yield head + cell.source.replace("\n", "\n" + " " * len(head))
    yield "".join(map(_shown, cell.outputs)).rstrip()


def _shown(output: NotebookNode) -> str:
    match output.output_type:
        case "stream":
            text = output.text
        case "error":
            text = f"{output.ename}: {output.evalue}"
        case _:
            text = output.data.get("text/plain", "")
    return _ANSI.sub("", text).rstrip("\n") + "\n" if text else ""
