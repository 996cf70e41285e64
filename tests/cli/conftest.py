"""The command in this process, for what a process adds nothing to; and in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from durable_nb import Checkpointer
from durable_nb.cli import main
from durable_nb.stores.open import DEFAULT, open_store, use_store

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-P", "-m", "durable_nb.cli")
SHOP = "tests.cli.shop"


class Said(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


Shell = Callable[..., Said]


def environment(**changes: str) -> dict[str, str]:
    """A child's environment, in which it finds the shop."""
    kept = {name: value for name, value in os.environ.items() if name != "DURABLE_NB_STORE"}
    return {**kept, "PYTHONPATH": str(ROOT), **changes}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory that the command runs in."""
    monkeypatch.delenv("DURABLE_NB_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def shell(folder: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    """Runs the command in this process."""

    def run(*words: object) -> Said:
        try:
            code = main([str(word) for word in words])
        except SystemExit as exit_:  # argparse
            code = int(str(exit_.code))
        finally:
            use_store(None)
        return Said(code, *capsys.readouterr())

    yield run
    open_store(folder / DEFAULT).close()


@pytest.fixture
def child(folder: Path) -> Callable[..., Said]:
    """Runs the command in a process of its own."""

    def run(*words: object, **variables: str) -> Said:
        done = subprocess.run(
            [*COMMAND, *map(str, words)],
            cwd=folder,
            env=environment(**variables),
            capture_output=True,
            text=True,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def beginning(folder: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Begins the command in a process of its own, which is gone when the test is over."""
    begun: list[subprocess.Popen[str]] = []

    def begin(*words: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*COMMAND, *map(str, words)],
            cwd=folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(process)
        return process

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


@pytest.fixture
def store(folder: Path) -> Iterator[Checkpointer]:
    """The store that the command uses, as another process sees it."""
    from durable_nb import SQLiteCheckpointer

    with closing(SQLiteCheckpointer(folder / DEFAULT)) as opened:
        yield opened


@pytest.fixture
def paused(shell: Shell) -> str:
    """The id of a run that waits at pause 3."""
    assert shell("run", f"{SHOP}:bot", "Refund order 1042", "--id", "r1").code == 0
    return "r1"
