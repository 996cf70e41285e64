"""Fixtures of the crash suite: a folder, its store and its children.

Each test runs over a file and over a server, the stores that outlive a process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from durable_nb import Checkpointer, SQLiteCheckpointer
from tests.support.children import TIMEOUT, Child
from tests.support.ledger import Ledger
from tests.support.postgres import server
from tests.support.providers import assert_all_valid
from tests.support.stores import STORES

OUTLIVING = ("sqlite-full", "postgres")


@pytest.fixture(scope="session", autouse=True)
def _one_server() -> None:
    """The server is there before the first child, which finds its address in the environment."""
    server()


@pytest.fixture(params=OUTLIVING)
def kind(request: pytest.FixtureRequest) -> str:
    """Which store: a name in `STORES`."""
    return request.param


@pytest.fixture
def store(kind: str, tmp_path: Path) -> Iterator[Checkpointer]:
    """The store that the test's children write, as this process sees it."""
    opened = STORES[kind](tmp_path)
    yield opened
    assert_all_valid(opened)
    opened.close()


@pytest.fixture
def elsewhere(kind: str, store: Checkpointer, tmp_path: Path) -> Iterator[Checkpointer]:
    """The store as another process sees it."""
    opened = STORES[kind](tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SQLiteCheckpointer]:
    """A store that is a file, for what concerns files alone."""
    opened = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
    yield opened
    opened.close()


@pytest.fixture
def start(kind: str, tmp_path: Path) -> Iterator[Callable[..., Child]]:
    """Starts a child with a task; whatever it is doing at the end, it is killed."""
    children: list[Child] = []

    def start_one(agent: str, do: str = "run", **task: Any) -> Child:
        children.append(Child(tmp_path, kind, agent, do, **task))
        return children[-1]

    yield start_one
    for child in children:
        child.kill()


@pytest.fixture
def wait_for(effects: Ledger) -> Callable[[str], None]:
    """Waits until the ledger has a line."""

    def until(line: str) -> None:
        give_up = time.monotonic() + TIMEOUT
        while line not in effects.lines:
            assert time.monotonic() < give_up, effects.lines
            time.sleep(0.005)

    return until


@pytest.fixture
def seen_dead(store: Checkpointer) -> Callable[[], list[str]]:
    """The statuses of all runs, once no run has a driver that is taken to live: a server may need
    a moment to hear that a process is gone."""

    def statuses() -> list[str]:
        give_up = time.monotonic() + TIMEOUT
        while "running" in (found := [run.status for run in store.runs()]):
            assert time.monotonic() < give_up, found
            time.sleep(0.005)
        return found

    return statuses
