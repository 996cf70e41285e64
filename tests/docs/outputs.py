"""`python -m tests.docs.outputs [NOTEBOOK …]`: execute notebooks and write what they show.

What is written is normalised: the same on every machine and at every hour, so that a difference in
a committed notebook is a difference in what it shows.
"""

from __future__ import annotations

import getpass
import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from durable_nb.tour import executed

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
WIDGET = "application/vnd.jupyter.widget-view+json"
_UNSTABLE = [
    (re.compile(r"\d{4}-\d\d-\d\d([ T])\d\d:\d\d(:\d\d(\.\d+)?)?"), r"2026-01-01\g<1>12:00"),
    (re.compile(re.escape(tempfile.gettempdir()) + r"/durable_nb-\w+"), "/tmp/durable_nb"),
    (re.compile(rf"\b(by|user) {re.escape(getpass.getuser())}\b"), r"\1 alice"),
    (re.compile(r"\b0x[0-9a-f]{6,}\b"), "0x0"),
    (re.compile(r"(?<![\w.])(\d+ min \d\d s|\d+(\.\d+)? (µs|ms|s))\b"), "1 ms"),
    (re.compile(r"[█·]{60}"), "…"),  # how a run's picture shows as text when it was at what
]


def normal(cells: Iterable[NotebookNode]) -> NotebookNode:
    """A notebook of the cells with stable outputs, and no trace of the machine that ran them.

    Each cell shows what it did when it had just run: a card that waits for a person still waits.
    """
    kept = [_cell(cell) for cell in cells]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return nbformat.from_dict(
        {"cells": kept, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    )


def stable(text: str) -> str:
    """Text without the hour, durations, the user, and the temporary folder's name."""
    for pattern, instead in _UNSTABLE:
        text = pattern.sub(instead, text)
    return text


def write(paths: Iterable[Path]) -> None:
    for path in paths:
        nbformat.write(normal(executed(path)), path)
        print(f"{path.name}: executed and written")


def _cell(cell: NotebookNode) -> dict[str, Any]:
    metadata = {key: value for key, value in cell.metadata.items() if key != "execution"}
    kept = {
        "cell_type": cell.cell_type,
        "id": cell.id,
        "metadata": metadata,
        "source": cell.source,
    }
    if cell.cell_type != "code":
        return kept
    shown = [output for output in cell.outputs if WIDGET not in output.get("data", ())]
    outputs = [_output(output) for output in _merged(shown)]
    return {**kept, "execution_count": cell.execution_count, "outputs": outputs}


def _merged(outputs: Iterable[NotebookNode]) -> list[dict[str, Any]]:
    """The outputs with a stream's text in one piece: a kernel sends it in as many as time allows."""
    merged: list[dict[str, Any]] = []
    for output in outputs:
        if merged and "name" in output and output["name"] == merged[-1].get("name"):
            merged[-1]["text"] += output["text"]
        else:
            merged.append(dict(output))
    return merged


def _output(output: dict[str, Any]) -> dict[str, Any]:
    fixed = dict(output)
    if "text" in fixed:
        fixed["text"] = stable(fixed["text"])
    if "data" in fixed:
        fixed["data"] = {kind: stable(text) for kind, text in sorted(fixed["data"].items())}
    return fixed


if __name__ == "__main__":
    write([Path(each) for each in sys.argv[1:]] or sorted(NOTEBOOKS.glob("*.ipynb")))
