"""The command `durable-nb`, as a newcomer without a screen meets it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from durable_nb import DurableError, __version__, tour
from durable_nb.tour.text import as_text, failure

COMMAND = "import sys; from durable_nb.cli import main; sys.exit(main())"
WITHOUT = "import sys; sys.modules[{!r}] = None; from durable_nb.cli import main; sys.exit(main())"


def durable_nb(
    folder: Path, *arguments: str, code: str = COMMAND
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", code, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def notebook_of(folder: Path, *sources: str) -> None:
    """A notebook of the reader's own, under the tour's name."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    cells = [new_code_cell(source) for source in sources]
    notebook = new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(notebook, folder / tour.NAME)


def test_the_tour_runs_the_first_notebook_and_prints_what_it_shows(tmp_path: Path) -> None:
    done = durable_nb(tmp_path, "tour")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{tour.NAME} is here\n")
    assert "# A run you can kill" in done.stdout
    assert "got SIGKILL during turn:0/tool:refund" in done.stdout
    assert (tmp_path / tour.NAME).exists()


def test_a_notebook_that_is_there_is_never_overwritten(tmp_path: Path) -> None:
    notebook_of(tmp_path, "print('mine', 6 * 7)")
    before = (tmp_path / tour.NAME).read_bytes()
    done = durable_nb(tmp_path, "tour", "--no-browser")
    assert "was here already, and is left as it is" in done.stdout
    assert "In [1]: print('mine', 6 * 7)\n\nmine 42" in done.stdout
    assert (tmp_path / tour.NAME).read_bytes() == before


def test_a_cell_that_fails_is_the_last_and_the_exit_code_says_so(tmp_path: Path) -> None:
    notebook_of(tmp_path, "print('so far')", "1 / 0", "print('never')")
    done = durable_nb(tmp_path, "tour")
    assert done.returncode == 1
    assert "so far" in done.stdout
    assert "\nnever" not in done.stdout
    assert "durable-nb: the notebook ended with ZeroDivisionError" in done.stderr


@pytest.mark.parametrize("module", ["nbclient", "ipykernel"])
def test_without_the_extra_it_says_what_to_install(tmp_path: Path, module: str) -> None:
    done = durable_nb(tmp_path, "tour", code=WITHOUT.format(module))
    assert done.returncode == 1
    assert done.stderr == (
        f"durable-nb: the tour needs {module}, which comes with an extra: "
        "pip install 'durable_nb[lab]'\n"
    )


def test_a_folder_that_takes_no_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DurableError, match="change to a folder of yours"):
        tour.copy_beside(tmp_path / "missing")


@pytest.mark.parametrize("name", ["DISPLAY", "WAYLAND_DISPLAY"])
def test_a_display_without_a_terminal_is_no_screen(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, ":0")
    assert not tour.has_screen()


def test_at_a_terminal_with_a_display_it_becomes_jupyterlab_with_the_notebook(
    tmp_path: Path,
) -> None:
    (tmp_path / "jupyterlab.py").write_text("import sys; print('JupyterLab:', *sys.argv[1:])")
    screen, terminal = os.openpty()
    environment = {**os.environ, "DISPLAY": ":0", "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", COMMAND, "tour"]
    subprocess.run(command, cwd=tmp_path, env=environment, stdout=terminal, check=True)
    said = os.read(screen, 10_000).decode()
    root = "--allow-root " if os.geteuid() == 0 else ""
    assert said.splitlines()[-1] == f"JupyterLab: {root}{tmp_path / tour.NAME}"


def test_help_and_version_are_there_and_a_command_is_needed(tmp_path: Path) -> None:
    assert "tour" in durable_nb(tmp_path, "--help").stdout
    assert durable_nb(tmp_path, "--version").stdout == f"durable_nb {__version__}\n"
    assert durable_nb(tmp_path).returncode == 2


def test_text_shows_streams_results_and_errors_without_colours() -> None:
    outputs = [
        new_output("stream", text="one\n"),
        new_output("execute_result", {"text/plain": "two", "text/html": "<b>two</b>"}),
        new_output("display_data", {}),
        new_output("error", ename="Odd", evalue="\x1b[31mred\x1b[0m"),
    ]
    cell = new_code_cell("a\nb", execution_count=12, outputs=outputs)
    assert as_text(cell) == "In [12]: a\n         b\n\none\ntwo\nOdd: red\n"
    assert failure(cell) == "Odd: red"
    assert as_text(new_markdown_cell("# Title")) == "# Title\n"


def test_an_error_that_a_cell_announces_is_no_failure() -> None:
    error = new_output("error", ename="Odd", evalue="wanted")
    cell = new_code_cell("odd()", outputs=[error], metadata={"tags": ["raises-exception"]})
    assert failure(cell) is None
