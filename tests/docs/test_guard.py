"""The notebooks' conftest fails a notebook that nbmake alone would pass."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from tests.docs.outputs import NOTEBOOKS


def outcome(folder: Path, notebooks: Mapping[str, tuple[str, ...]]) -> str:
    """What pytest says of notebooks with these cells, all of which look executed."""
    for name, sources in notebooks.items():
        cells = [new_code_cell(source, execution_count=1) for source in sources]
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = new_notebook(cells=cells, metadata={"kernelspec": kernel})
        nbformat.write(notebook, folder / f"{name}.ipynb")
    command = [sys.executable, "-m", "pytest", "--nbmake", "-q", "-p", "no:cacheprovider", "."]
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True).stdout


def test_a_notebook_that_stops_early_fails_and_says_where(tmp_path: Path) -> None:
    shutil.copy(NOTEBOOKS / "conftest.py", tmp_path)
    said = outcome(
        tmp_path,
        {
            "usage": ("%timeit -q --nope", "never = 'after an option'"),
            "missing": ("%%nope\nbody", "never = 'after a magic'"),
            "whole": ("1 + 1", "", "# only a comment"),
        },
    )
    assert "this cell ended with a UsageError: %timeit -q --nope" in said
    assert "this cell never ran: never = 'after an option'" in said
    assert "this cell ended with a UsageError: %%nope" in said
    assert "this cell never ran: never = 'after a magic'" in said
    assert "2 failed, 1 passed" in said


def test_nbmake_alone_would_pass_it(tmp_path: Path) -> None:
    assert "1 passed" in outcome(tmp_path, {"missing": ("%nope", "assert False")})
