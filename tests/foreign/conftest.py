"""A real MCP server over each transport, and a store that outlives the process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic_ai.mcp import MCPToolset

from durable_nb import Checkpointer, SQLiteCheckpointer
from tests.foreign.shop import SERVER, over_stdio
from tests.support.ledger import Ledger
from tests.support.providers import assert_all_valid


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Checkpointer]:
    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
    yield store
    assert_all_valid(store)
    store.close()


@pytest.fixture
def shop(effects: Ledger) -> MCPToolset:
    """The server as a process of its own, spoken to over its standard streams."""
    return over_stdio(effects)


@pytest.fixture
def web_shop(effects: Ledger) -> Iterator[Callable[[], str]]:
    """Starts the server on a loopback port, the same one each time; gives its address."""
    started: list[subprocess.Popen[str]] = []
    port = "0"

    def start() -> str:
        nonlocal port
        command = [sys.executable, str(SERVER), str(effects.path), port]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        port = started[-1].stdout.readline().strip()  # type: ignore[union-attr]  # it is a pipe
        return f"http://127.0.0.1:{port}/mcp"

    yield start
    for each in started:
        each.kill()
        each.wait()
        each.stdout.close()  # type: ignore[union-attr]  # it is a pipe
