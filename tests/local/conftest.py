"""Every test here asks the local model, and is skipped where it is not installed; CI installs it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from durable_nb import InvalidInput
from durable_nb.llm.local_server import check_installed

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.local)


@pytest.fixture(autouse=True, scope="session")
def installed() -> None:
    try:
        check_installed()
    except InvalidInput as error:
        if os.environ.get("CI"):
            pytest.fail(f"CI has to install the extra `local`: {error}")
        pytest.skip(str(error))
