"""A law earns its place by failing: each planted bug turns a test red, none planted leaves all green.

`poe planted` plants all of them; a plain `pytest` plants every sixth.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import durable_nb
from tests.planted.bugs import BUGS, Bug
from tests.support.children import ROOT

PACKAGE = Path(durable_nb.__file__).parent
FAILED = 1  # what pytest exits with where a test failed, and nothing else went wrong
PLANTED = BUGS if os.environ.get("DURABLE_NB_PLANTED") == "all" else BUGS[::6]
OPTIONS = "-x -q -p no:cacheprovider -p no:nbmake -o addopts= --strict-markers --import-mode=append"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package, to do harm to."""
    return shutil.copytree(
        PACKAGE, tmp_path / "durable_nb", ignore=shutil.ignore_patterns("__pycache__")
    )


def run(package: Path, tests: str) -> subprocess.CompletedProcess[str]:
    """Run tests over a copy of the package."""
    places = os.pathsep.join([str(package.parent), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-P", "-m", "pytest", *shlex.split(OPTIONS), *shlex.split(tests)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": places, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_every_bug_has_its_place_in_the_package() -> None:
    """Also those that a plain `pytest` does not plant: code that moves takes its bug along."""
    lost = [bug.what for bug in BUGS if (PACKAGE / bug.file).read_text().count(bug.good) != 1]
    assert lost == []


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.what)
def test_a_planted_bug_turns_a_test_red(package: Path, bug: Bug) -> None:
    file = package / bug.file
    text = file.read_text()
    assert bug.good in text
    file.write_text(text.replace(bug.good, bug.bad))
    ended = run(package, f"{bug.tests} --timeout 20")  # a bug that hangs is red, too
    assert ended.returncode == FAILED, ended.stdout + ended.stderr


@pytest.mark.parametrize("tests", ["tests/unit", "tests/contract -k memory"])
def test_the_same_tests_are_green_where_nothing_is_planted(package: Path, tests: str) -> None:
    ended = run(package, tests)
    assert ended.returncode == 0, ended.stdout + ended.stderr
