"""Looking costs little: what only agents, frames or notebooks need is not imported for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import SHOP, Shell, environment

HEAVY = {"pydantic", "pandas", "duckdb", "numpy", "IPython", "ipywidgets", "psycopg", "asyncio"}
REPORT = (
    "import sys; from durable_nb.cli import main; code = main(); "
    "print(*sys.modules, sep='\\n', file=sys.stderr); sys.exit(code)"
)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("runs",), 0),
        (("sessions", "--json"), 0),
        (("show", "r1"), 0),
        (("pending",), 0),
        (("approve", "r1"), 2),
        (("cancel", "r1"), 0),
        (("prune", "--older-than", "30d"), 0),
        (("export", "copy.db"), 0),
        (("doctor",), 0),
    ],
)
def test_looking_imports_nothing_heavy(
    shell: Shell, paused: str, folder: Path, words: tuple[str, ...], code: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", REPORT, *words],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr
    assert HEAVY & set(done.stderr.splitlines()) == set()


def test_a_run_does_import_what_an_agent_needs(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", REPORT, "run", f"{SHOP}:greeter", "Say hello"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
    )
    loaded = HEAVY & set(done.stderr.splitlines())
    assert "pydantic" in loaded
    assert not loaded & {"pandas", "duckdb", "IPython"}
