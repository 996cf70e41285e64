"""A real MCP server, over stdio or streamable HTTP, whose effects are lines of a file.

`python server.py EFFECTS` speaks over its standard streams; `python server.py EFFECTS PORT` serves
on a port of loopback, which its first line of output names.
"""

from __future__ import annotations

import base64
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Image
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

EFFECTS = Path(sys.argv[1])
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
)

server = MCPServer("shop", log_level="CRITICAL")


def _effect(line: object) -> None:
    with EFFECTS.open("a") as file:
        file.write(f"{line}\n")


@server.tool()
def refund(order: str, amount: int) -> str:
    """Pay money back."""
    _effect(f"refund {order} {amount}")
    if amount > 1000:
        raise ToolError(f"{amount} is too much")
    return f"refunded {amount}"


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def price(order: str) -> dict[str, Any]:
    """What an order costs."""
    return {"order": order, "cents": [1999, 5]}


@server.tool(structured_output=False)
def picture() -> list[Any]:
    """A picture, and a word about it."""
    return ["one pixel", Image(data=PIXEL, format="png")]


@server.tool()
def process() -> int:
    """The server's process."""
    return os.getpid()


@server.tool()
def secret() -> str:
    """Fail with what the server's environment holds."""
    raise ToolError(f"no access with {os.environ.get('SHOP_KEY')}")


@server.tool()
def die() -> str:
    """End the server in mid-call."""
    _effect("die")
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@server.tool()
async def slow(seconds: float) -> str:
    """Say that it has begun, then keep the whole server busy."""
    _effect("slow")
    time.sleep(seconds)  # it blocks on purpose
    return "done"


def main() -> None:
    _effect(f"server {os.getpid()}")
    if len(sys.argv) == 2:
        server.run("stdio")
        return
    listener = socket.create_server(("127.0.0.1", int(sys.argv[2])))
    print(listener.getsockname()[1], flush=True)  # from here on a client that connects is answered
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="critical")).run(
        sockets=[listener]
    )


if __name__ == "__main__":
    main()
