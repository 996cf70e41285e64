"""Fixtures that several folders use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import durable_nb
from durable_nb import Checkpointer, StoreUnusable
from tests.support.ledger import Ledger
from tests.support.providers import assert_all_valid
from tests.support.stores import STORES

# Children import the package that this process does, the installed one, and the tests from here.
_PLACES = Path(durable_nb.__file__).parents[1], Path(__file__).parents[1]
os.environ["PYTHONPATH"] = os.pathsep.join(map(str, _PLACES))
os.environ["PYTHONSAFEPATH"] = "1"


@pytest.fixture
def effects(tmp_path: Path) -> Ledger:
    """The file that each side effect of a test appends a line to."""
    return Ledger(tmp_path / "effects")


@pytest.fixture(params=STORES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Checkpointer]]:
    """Opens the test's store: again and again the same runs, each time as another process would.

    Afterwards every transcript in it has to be one that OpenAI and Anthropic accept.
    """
    stores: list[Checkpointer] = []

    def open_again() -> Checkpointer:
        stores.append(STORES[request.param](tmp_path))
        return stores[-1]

    yield open_again
    with suppress(StoreUnusable):  # the test closed or broke it
        assert_all_valid(open_again())
    for each in stores:
        each.close()


@pytest.fixture
def store(opened: Callable[[], Checkpointer]) -> Checkpointer:
    """An empty store, of each kind there is."""
    return opened()


@pytest.fixture
def elsewhere(store: Checkpointer, opened: Callable[[], Checkpointer]) -> Checkpointer:
    """The test's store as another process sees it."""
    return opened()
