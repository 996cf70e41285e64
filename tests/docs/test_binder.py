"""What Binder would build of this repository installs, and a reader's notebooks run there.

Binder reads `binder/` as repo2docker does: runtime.txt names the Python, requirements.txt is
installed from the root of the repository once it is copied, and postBuild runs after that.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from durable_nb import tour
from durable_nb.tour.text import as_text
from tests.docs.outputs import NOTEBOOKS, stable

CHECKOUT = NOTEBOOKS.parent
BINDER = CHECKOUT / "binder"
ASKED_FOR = "DURABLE_NB_BINDER"
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
NEED_MORE = ["07_from_a_laptop_to_postgresql", "10_audit_your_agent"]  # than the package itself
LOCAL = "-e ."  # what repo2docker takes for the repository itself, and so installs after copying it


def requirements() -> list[str]:
    """The lines of requirements.txt that ask for something."""
    lines = (BINDER / "requirements.txt").read_text().splitlines()
    return [line for line in (re.sub(r"(^|\s)#.*", "", line).strip() for line in lines) if line]


def test_binder_finds_three_files_that_it_knows_and_none_that_would_win_over_them() -> None:
    assert sorted(path.name for path in BINDER.iterdir()) == [
        "postBuild",
        "requirements.txt",
        "runtime.txt",
    ]
    assert not (CHECKOUT / ".binder").exists()  # of two such folders Binder refuses both


def test_the_python_that_it_asks_for_is_one_that_this_package_takes() -> None:
    # 3.11, the oldest of those that we and Binder have: CI has only that one, so that what is
    # tried below is what Binder installs.
    python = (BINDER / "runtime.txt").read_text()
    named = re.fullmatch(r"python-(3\.\d+)\n", python)  # the whole file: it knows no comments
    assert named, python
    assert named[1] in SpecifierSet(PROJECT["requires-python"])


def test_it_installs_this_repository_with_extras_that_there_are() -> None:
    (ours,) = (line for line in requirements() if line.startswith(LOCAL))
    extras = Requirement("durable_nb" + ours.removeprefix(LOCAL)).extras
    assert {"lab"} <= extras <= PROJECT["optional-dependencies"].keys()


def test_what_else_it_installs_is_what_the_tests_install() -> None:
    others = [line for line in requirements() if not line.startswith(LOCAL)]
    assert set(others) <= set(PROJECT["optional-dependencies"]["test"])


def test_what_runs_after_that_can_be_run() -> None:
    assert os.access(BINDER / "postBuild", os.X_OK)
    assert (BINDER / "postBuild").read_text().startswith("#!")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that is gone afterwards: an environment is half a gigabyte, and pytest keeps three."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.skipif(
    not (os.environ.get("CI") or os.environ.get(ASKED_FOR)),
    reason=f"installs everything anew, which takes a minute: CI does it, or {ASKED_FOR}=1",
)
@pytest.mark.timeout(900)  # a slow machine with an empty cache downloads and unpacks for minutes
def test_where_binder_installed_it_the_notebooks_run_and_the_first_shows_what_it_was_committed_with(
    place: Path,
) -> None:
    repository = copy_of_what_git_has(place / "repository")
    # The Python that runs the tests stands for that of runtime.txt: CI has only this one.
    run(sys.executable, "-m", "venv", str(place / "venv"), cwd=place)
    bin = place / "venv" / "bin"
    install = ("-m", "pip", "install", "-qq", "--disable-pip-version-check", "-r")
    run(bin / "python", *install, "binder/requirements.txt", cwd=repository)
    run(repository / "binder/postBuild", cwd=repository, path=bin)
    said = run(bin / "durable-nb", "tour", "--no-browser", cwd=place)
    committed = nbformat.read(NOTEBOOKS / tour.NAME, as_version=4)
    shown = "".join(f"\n{as_text(cell)}" for cell in committed.cells)
    assert stable(said) == f"{tour.NAME} is here\n{shown}"
    for name in NEED_MORE:
        run(bin / "jupyter-execute", f"notebooks/{name}.ipynb", cwd=repository)


def copy_of_what_git_has(folder: Path) -> Path:
    """The files that a clone would have: an editable install writes beside what it installs."""
    listed = run("git", "ls-files", "-z", cwd=CHECKOUT).split("\0")
    for name in filter(None, listed):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CHECKOUT / name, target)
    return folder


def run(*command: str | Path, cwd: Path, path: Path | None = None) -> str:
    """What a command prints, run as in a new terminal; what it says when it fails names no host."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    if path is not None:
        environment["PATH"] = f"{path}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, re.sub(r"\w+://\S+", "…", done.stdout + done.stderr)
    return done.stdout
