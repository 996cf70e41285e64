"""What is tested is what is installed: this process and its children import one package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import durable_nb
import tests
from durable_nb import Agent, ScriptedModel, SQLiteCheckpointer, call, lab
from tests.docs.outputs import NOTEBOOKS

CHECKOUT = NOTEBOOKS.parent
WHICH = "import durable_nb, tests; print(durable_nb.__file__, tests.__file__)"


def test_children_import_the_package_that_this_process_did_and_the_tests_of_the_checkout(
    tmp_path: Path,
) -> None:
    for folder in (CHECKOUT, tmp_path):
        command = [sys.executable, "-c", WHICH]
        child = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
        assert child.stdout.split() == [durable_nb.__file__, tests.__file__]


def test_a_child_of_the_lab_imports_it_too(tmp_path: Path) -> None:
    def where() -> None:
        import durable_nb

        (tmp_path / "where").write_text(durable_nb.__file__)

    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
    agent = Agent("a", ScriptedModel([call("where"), "Done."]), [where], checkpointer=store)
    lab.crash(agent, "Go", at="turn:0/tool:where", when="after")
    assert (tmp_path / "where").read_text() == durable_nb.__file__


def test_an_import_opens_and_loads_nothing_heavy() -> None:
    heavy = "{'IPython', 'ipywidgets', 'pandas', 'duckdb', 'pydantic', 'sqlite3', 'cloudpickle'}"
    code = f"import sys; import durable_nb; print({heavy} & set(sys.modules))"
    child = subprocess.run(
        [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout == "set()\n"
