"""The fixture `crash_matrix` for pytest, which loads this itself once durable_nb is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from durable_nb.lab.table import Matrix
    from durable_nb.runtime.agent import Agent


@pytest.fixture
def crash_matrix(request: pytest.FixtureRequest) -> Callable[..., Matrix]:
    """`lab.crash_matrix`, so that a test is one line: `crash_matrix(agent, "go").assert_exact()`."""

    def of(agent: Agent, prompt: str, **how: Any) -> Matrix:
        from durable_nb.lab.handover import by_value  # here, so that other tests do not pay for it
        from durable_nb.lab.matrix import crash_matrix

        with by_value(request.module):  # pytest may have imported it in a way of its own
            return crash_matrix(agent, prompt, **how)

    return of
