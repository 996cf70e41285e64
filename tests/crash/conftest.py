"""Fixtures of the crash suite: a folder, its store and its children."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from durable_nb import SQLiteCheckpointer
from tests.support.children import TIMEOUT, Child
from tests.support.ledger import Ledger
from tests.support.providers import assert_all_valid


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteCheckpointer]:
    """The store that the test's children write, as this process sees it."""
    opened = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
    yield opened
    assert_all_valid(opened)
    opened.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Child]]:
    """Starts a child with a task; whatever it is doing at the end, it is killed."""
    children: list[Child] = []

    def start_one(agent: str, do: str = "run", **task: Any) -> Child:
        children.append(Child(tmp_path, agent, do, **task))
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
