"""The server of `server.py` as a toolset, and what is known of its processes afterwards."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset

from tests.support.ledger import Ledger

SERVER = Path(__file__).with_name("server.py")
KEY = "a-key-that-nobody-may-read"


def over_stdio(effects: Ledger) -> MCPToolset:
    arguments = [str(SERVER), str(effects.path)]
    return MCPToolset(StdioTransport(sys.executable, arguments, env={"SHOP_KEY": KEY}))


def servers(effects: Ledger) -> list[int]:
    """The processes that the server was started as."""
    return [int(line.split()[1]) for line in effects.lines if line.startswith("server ")]


def done(effects: Ledger) -> list[str]:
    """What the server's tools have done."""
    return [line for line in effects.lines if not line.startswith("server ")]


def gone(process: int) -> bool:
    """Whether the process has ended; waits for it a while."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False
