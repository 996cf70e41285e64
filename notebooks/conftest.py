"""A notebook passes only if all of it ran.

nbmake takes a notebook for good that stopped early: at a `UsageError`, or at a magic that does not
exist. Here such a notebook fails, and says at which cell.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec

from nbformat import NotebookNode
from nbmake.nb_result import NotebookError, NotebookResult
from nbmake.nb_run import NotebookRun

_execute = NotebookRun.execute

if find_spec("xllamacpp") is None and not os.environ.get("CI"):
    collect_ignore = ["12_a_real_model_offline.ipynb"]  # it needs the extra `local`


def _executed_whole(run: NotebookRun) -> NotebookResult:
    result = _execute(run)
    faults = [(fault, at) for at, cell in enumerate(result.nb.cells) for fault in _faults(cell)]
    if faults and result.error is None:
        (summary, at), trace = faults[0], "\n".join(fault for fault, _ in faults)
        error = NotebookError(summary=summary, trace=trace, failing_cell_index=at)
        return NotebookResult(nb=result.nb, error=error)
    return result


NotebookRun.execute = _executed_whole


def _faults(cell: NotebookNode) -> Iterator[str]:
    tags = cell.metadata.get("tags", ())
    if cell.cell_type != "code" or not cell.source.strip() or "skip-execution" in tags:
        return
    first_line = cell.source.strip().splitlines()[0]
    if not cell.metadata.get("execution"):  # nbmake times what it runs
        yield f"this cell never ran: {first_line}"
    if "raises-exception" not in tags and "UsageError" in _stderr(cell):
        yield f"this cell ended with a UsageError: {first_line}"


def _stderr(cell: NotebookNode) -> str:
    outputs = (output for output in cell.outputs if output.output_type == "stream")
    return "".join(output.text for output in outputs if output.name == "stderr")
