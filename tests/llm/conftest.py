"""A fixture over the providers, and back-offs that do not keep a test waiting."""

from __future__ import annotations

import pytest

from durable_nb.llm import retry
from tests.llm.wire import IMPATIENT, PROVIDERS


@pytest.fixture(params=PROVIDERS)
def name(request: pytest.FixtureRequest) -> str:
    """Which provider: a name in `PROVIDERS`."""
    return str(request.param)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST", IMPATIENT)
