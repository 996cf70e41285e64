"""A kernel of each version, started once: a test has runs and an agent of its own in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kernels.environments import OLDER, kernel
from tests.kernels.frontend import FrontEnd


@pytest.fixture(scope="session", params=[*OLDER, "installed"])
def version(request: pytest.FixtureRequest) -> str:
    """An ipykernel: an older one in an environment of its own, or the one of this environment."""
    chosen: str = request.param
    return chosen


@pytest.fixture(scope="session")
def opened(
    version: str, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], FrontEnd]]:
    """Starts kernels of that version, all in one folder."""
    folder = tmp_path_factory.mktemp("work")
    started: list[FrontEnd] = []

    def start() -> FrontEnd:
        if version == "installed":
            started.append(FrontEnd(folder))
        else:
            specs = kernel(version, Path(pytestconfig.cache.mkdir("kernels")))
            started.append(FrontEnd(folder, f"ipykernel-{version}", specs))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture(scope="session")
def front(opened: Callable[[], FrontEnd]) -> FrontEnd:
    """A kernel with the extension loaded."""
    front = opened()
    front.run("%load_ext durable_nb")
    return front
