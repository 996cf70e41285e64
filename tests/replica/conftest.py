"""One process with faulty planes for all tests, and a plane of its own for each."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias
from uuid import uuid4

import pytest

from durable_nb import Checkpointer, SQLiteCheckpointer
from durable_nb.replica.address import Address
from durable_nb.replica.courier import Courier
from tests.support.ledger import Ledger
from tests.support.stores import STORES


class Site(NamedTuple):
    """A plane of the faulty process."""

    url: str
    name: str
    folder: Path

    @property
    def log(self) -> list[str]:
        """What it was asked: the method, what became of it, and the rows."""
        return [line.strip() for line in Ledger(self.folder / f"{self.name}.log").lines]

    def rows(self) -> dict[str, int]:
        """How many entries of each run it has, by its own file."""
        store = SQLiteCheckpointer(self.folder / f"{self.name}.sqlite3")
        found = {run.execution_id: run.steps for run in store.runs()}
        store.close()
        return found


@pytest.fixture(scope="session")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("planes")
    command = [sys.executable, "-P", "-m", "tests.replica.faulty", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        yield child.stdout.readline().strip(), folder
        child.kill()


@pytest.fixture
def plane(process: tuple[str, Path]) -> Callable[..., Site]:
    """`plane("500-cut-ok")`: a new plane whose first two answers fail."""

    def made(plan: str = "ok", prefix: str = "plane") -> Site:
        name = f"{prefix}-{uuid4().hex[:8]}"
        return Site(f"{process[0]}/{plan}/{name}", name, process[1])

    return made


@pytest.fixture
def connect() -> Iterator[Callable[..., Courier]]:
    """A courier that does not wait before it tries again; closed after the test."""
    couriers: list[Courier] = []

    def made(site: Site, store: Checkpointer, key: str | None = None) -> Courier:
        address = Address(site.url, key, timeout=20)
        courier = Courier(store.outbox, address, pause=lambda *_: 0.0)
        couriers.append(courier)
        return courier

    yield made
    for each in couriers:
        each.close()


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[SQLiteCheckpointer]:
    """A store of another machine, which has seen none of the test's runs."""
    store = SQLiteCheckpointer(tmp_path / "laptop.sqlite3")
    yield store
    store.close()


Planes: TypeAlias = Callable[..., Site]
Connect: TypeAlias = Callable[..., Courier]

ENOUGH = 60.0  # seconds: what takes so long hangs
KINDS = [kind for kind in STORES if kind not in ("memory", "sqlite-normal")]
ON_BOTH = pytest.mark.parametrize("opened", KINDS, indirect=True)
