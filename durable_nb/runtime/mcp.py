"""Toolsets that hold connections, such as an MCP server's: opened on first use, reopened, closed.

A connection belongs to the event loop that opened it, and is entered and left by one task there. So
each of the engine's loops has its own, made from a copy that nobody has used. It is closed when no
agent has the toolset any more, and when the process ends.
"""

from __future__ import annotations

import asyncio
import atexit
import copy
import os
import sys
import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import asynccontextmanager
from contextvars import Context
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from durable_nb.llm.secrets import scrubbed

if TYPE_CHECKING:
    from pydantic_ai import RunContext
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

    Toolset: TypeAlias = AbstractToolset[None]
    Ask: TypeAlias = Callable[[], RunContext[None]]

BUSY = 1.0  # seconds that a server has for saying that it is there
LONGEST = 300  # characters of why a server cannot be reached
PATIENCE = 5.0  # seconds that a process which ends waits for its servers to leave


class Server:
    """A toolset as the user made it, most often an MCP server's. It is copied, never entered, and
    travels to other processes."""

    def __init__(self, toolset: Toolset, context: Ask, handed: object = None) -> None:
        self.toolset = toolset
        self.context = context
        self.handed = handed
        self._held: dict[asyncio.AbstractEventLoop, _Held] = {}
        weakref.finalize(self, _let_go, self._held).atexit = False

    def __reduce__(self) -> tuple[object, ...]:
        return Server, (self.toolset, self.context)

    @property
    def label(self) -> str:
        """How errors call it: never by its address or its command, which may hold a key."""
        kind = type(self.toolset).__name__
        what = "the MCP server" if kind == "MCPToolset" else f"the {kind}"
        return f"{what} {self.toolset.id}" if self.toolset.id else what

    async def live(self) -> _Held:
        """The connection of the loop that runs here; another one if it does not answer any more.

        Raises `ConnectionError` if the server cannot be reached.
        """
        held = await self._opened()
        if not held.used or await held.answers():
            held.used = True
            return held
        if self._held.get(held.loop) is held:
            del self._held[held.loop]
            held.stop.set()
        return await self._opened()

    async def _opened(self) -> _Held:
        loop = asyncio.get_running_loop()
        if loop not in self._held:
            self._held[loop] = _Held(self.toolset, self.context, loop)
        held = self._held[loop]
        try:
            await asyncio.shield(held.ready)
        except Exception as error:  # noqa: BLE001  # whatever its transport raises
            if self._held.get(loop) is held:
                del self._held[loop]
            said = f"{type(error).__name__}: {_line(self.clean(str(error)))}"
            raise ConnectionError(f"{self.label} cannot be reached: {said}") from None
        return held

    @asynccontextmanager
    async def watched(self, held: _Held, name: str) -> AsyncIterator[None]:
        """While a tool is called: an error says that the connection was lost, and no key."""
        try:
            yield
        except Exception as error:
            if not await held.answers():
                raise ConnectionError(
                    f"{self.label} closed the connection while {name} ran; whether it had its "
                    "effect is not known"
                ) from None
            if (text := self.clean(str(error))) != str(error):
                raise RuntimeError(text) from None
            raise

    def clean(self, text: str) -> str:
        """The text without the keys of the environment, and those that the toolset was given."""
        return scrubbed(text, _keys(self.toolset))


class _Held:
    """One toolset that is open on one loop."""

    def __init__(self, toolset: Toolset, context: Ask, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.process = os.getpid()
        self.used = False
        self.stop = asyncio.Event()
        self.gone: Future[None] = Future()
        self.ready: asyncio.Future[None] = loop.create_future()
        self.tools: Mapping[str, ToolsetTool[None]] = {}
        self._clients: list[Any] = []
        _open.add(self)
        self._task = loop.create_task(self._hold(toolset, context), context=Context())

    async def _hold(self, toolset: Toolset, context: Ask) -> None:
        """Enter the toolset, and leave it in the same task."""
        failed: Exception = ConnectionResetError("it closed before it was open")
        try:
            own = await toolset.for_run(context())
            async with own.visit_and_replace(self._copied) as self.toolset:
                self.tools = await self.toolset.get_tools(context())
                self.ready.set_result(None)
                await self.stop.wait()
        except Exception as error:  # noqa: BLE001  # for whoever waits; a bad end of one that was lost
            failed = error
        finally:
            _open.discard(self)
            if not self.ready.done():
                self.ready.set_exception(failed)
            self.gone.set_result(None)

    async def answers(self) -> bool:
        """Whether the server says anything: that it knows no ping will do."""
        if self._task.done():
            return False
        return all([await _answers(client) for client in self._clients])

    def _copied(self, leaf: Toolset) -> Toolset:
        """A toolset with a connection of its own, if it is one of an MCP server."""
        if "client" not in vars(leaf):
            return leaf
        own = copy.copy(leaf)
        vars(own).pop("_enter_lock", None)
        vars(own).update(_running_count=0, _exit_stack=None, _cached_tools=None)
        client = vars(leaf)["client"].new()
        client.transport = _unused(client.transport)
        self._clients.append(client)
        vars(own)["client"] = client
        return own


_open: set[_Held] = set()


async def _answers(client: Any) -> bool:
    """Whether the connection is there. A server that keeps a ping waiting is busy, not gone."""
    from fastmcp.exceptions import McpError
    from mcp_types import CONNECTION_CLOSED

    try:
        async with asyncio.timeout(BUSY):
            await client.ping()
    except TimeoutError:
        return True
    except McpError as error:
        return bool(error.error.code != CONNECTION_CLOSED)
    except Exception:  # noqa: BLE001  # whatever its transport raises
        return False
    return True


def _unused(transport: Any) -> Any:
    """A transport that reaches the same server and shares no connection."""
    from fastmcp.client.transports import StdioTransport

    own = copy.copy(transport)
    if isinstance(own, StdioTransport):
        StdioTransport.__init__(
            own,
            own.command,
            own.args,
            env=own.env,
            cwd=own.cwd,
            keep_alive=False,
            log_file=own.log_file or _errors(),
        )
    if "transport" in vars(own):  # of a configuration file
        own.transport = _unused(own.transport)
    return own


def _line(text: str) -> str:
    """The text in one line, cut; some clients say at length what a server's answer is not."""
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def _errors() -> Any:
    """Where a server's error stream goes; a notebook's own has no descriptor to hand on."""
    try:
        sys.stderr.fileno()
    except (OSError, ValueError, AttributeError):
        return sys.__stderr__
    return sys.stderr


def _keys(toolset: Toolset) -> set[str]:
    """Every text of the toolset's connections that may be a key: environment, headers, address."""
    found: set[str] = set()

    def look(leaf: Toolset) -> None:
        transport = getattr(vars(leaf).get("client"), "transport", None)
        while transport is not None:
            found.update(_texts(vars(transport)))
            transport = vars(transport).get("transport")

    toolset.apply(look)
    return found


def _texts(options: Mapping[str, Any]) -> set[str]:
    """The values of a transport's environment and headers, and of its address's user and query."""
    address = urlsplit(str(options.get("url") or ""))
    named = {**(options.get("env") or {}), **(options.get("headers") or {})}
    texts = [*map(str, named.values()), address.password or "", address.username or ""]
    texts += [value for _, value in parse_qsl(address.query)] + [address.query]
    for value in named.values():  # "Bearer KEY"
        texts += str(value).split()
    token = getattr(options.get("auth"), "token", "")  # pydantic's SecretStr
    texts.append(getattr(token, "get_secret_value", lambda: "")())
    return set(texts)


def _let_go(held: Mapping[asyncio.AbstractEventLoop, _Held]) -> None:
    """Close what this process opened."""
    for each in held.values():
        if each.process == os.getpid():
            each.loop.call_soon_threadsafe(each.stop.set)


def _close() -> None:
    """Close everything, and wait until the servers have left."""
    mine = [each for each in tuple(_open) if each.process == os.getpid()]
    for each in mine:
        each.loop.call_soon_threadsafe(each.stop.set)
    wait([each.gone for each in mine], timeout=PATIENCE)


atexit.register(_close)
