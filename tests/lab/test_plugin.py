"""A user's own suite keeps the crash matrix: in a pytest of its own, with the fixture."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from durable_nb.lab import plugin
from tests.docs.outputs import NOTEBOOKS

SUITE = """
from durable_nb import Agent, ScriptedModel, call, idempotent

def charge() -> str:
    with open("ledger", "a") as ledger:
        ledger.write("charged\\n")
    return "ok"

def test_wrapped(crash_matrix):
    agent = Agent("bot", ScriptedModel([call("charge"), "Done."]), [idempotent(charge)])
    crash_matrix(agent, "go").assert_exact()

def test_forgotten(crash_matrix):
    agent = Agent("bot", ScriptedModel([call("charge"), "Done."]), [charge])
    crash_matrix(agent, "go").assert_exact()
"""


def test_a_test_of_ones_own_agent_is_one_line_and_fails_with_the_line_to_wrap(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_bot.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", plugin.__name__]
    command += ["-p", "no:cacheprovider", "--import-mode=importlib"]
    said = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True).stdout
    assert "1 failed, 1 passed" in said
    assert "charge, test_bot.py:5: move this into a function that is @idempotent" in said
    assert "test_bot.py:15: AssertionError" in said  # and no line of ours
    assert "def assert_exact" not in said
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] != "_") == [
        "test_bot.py"
    ]


def test_pytest_finds_the_fixture_by_itself_where_the_package_is_installed() -> None:
    with (NOTEBOOKS.parent / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    assert project["entry-points"]["pytest11"] == {plugin.__name__: plugin.__name__}
