"""A fixture over the wire formats, and back-offs that do not keep a test waiting."""

from __future__ import annotations

import pytest

from durable_nb.llm import retry
from tests.llm.wire import PROVIDERS


@pytest.fixture(params=sorted(PROVIDERS))
def host(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST", 0.001)
