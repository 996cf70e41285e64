"""Tools made for pydantic-ai, and those of MCP servers, as an agent's own.

They are recognised by the module of their class, so that nothing foreign is imported before it is
handed in. What they raise to steer pydantic-ai's own loop means here what it means there, in the
words of a run: a wish for approval is a pause, and a retry is an error that the model reads.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakValueDictionary

from pydantic_core import to_jsonable_python

from durable_nb.model.errors import InvalidInput, InvalidTool
from durable_nb.model.values import dumps, freeze
from durable_nb.runtime import engine
from durable_nb.runtime.mcp import Server
from durable_nb.runtime.scope import interrupt, scope
from durable_nb.runtime.tools import NAME, Arguments, Tool, as_tool, source_of

if TYPE_CHECKING:
    import pydantic_ai
    from pydantic_ai import RunContext
    from pydantic_ai.tools import ToolDefinition

_SERVERS = (  # what pydantic-ai makes a connection of
    ("fastmcp", "Client"),
    ("fastmcp", "ClientTransport"),
    ("fastmcp", "FastMCP"),
    ("mcp", "MCPServer"),
)


def tools_of(candidates: Iterable[object]) -> tuple[Tool, ...]:
    """Everything that `Agent(tools=...)` takes, as tools; a toolset stands for all of its own.

    Beside functions and `Tool`s these are pydantic-ai's `Tool`, its toolsets (`FunctionToolset`,
    `MCPToolset`, and what `.prefixed()`, `.filtered()`, `.approval_required()` make of them), and
    what FastMCP and the MCP SDK call a client, a transport or a server. A toolset is asked for its
    tools here and now: an MCP server is started or connected to.

    Such a tool has no dependencies and no model: in its `RunContext` both are None. Its
    `max_retries` does not apply, as a run is bounded by the agent's `max_turns`; of a `ToolReturn`
    the model reads the `return_value`; a toolset's instructions are not added to the agent's. What
    a resume does with a call in doubt is said by `.with_metadata(on_crash="ask")`, or by
    `Tool(..., metadata={"on_crash": "ask"})`: an MCP server's hints about its tools change nothing.

    Raises `InvalidTool` and `InvalidInput`.
    """
    return tuple(chain.from_iterable(map(_tools, candidates)))


def _tools(candidate: object) -> Iterable[Tool]:
    if _is_a(candidate, "pydantic_ai", "Tool"):
        return [_own(candidate)]
    if _is_plain_toolset(candidate):
        return map(_own, vars(candidate)["tools"].values())
    if _is_a(candidate, "pydantic_ai", "AbstractToolset"):
        return _listed(_server(candidate, candidate))
    if any(_is_a(candidate, *known) for known in _SERVERS):
        return _listed(_server(candidate, _connected(candidate)))
    return [as_tool(candidate)]


def _is_a(candidate: object, package: str, name: str) -> bool:
    """Whether its class, or one that it inherits from, has that name in that package."""
    return any(
        (each.__module__.partition(".")[0], each.__name__) == (package, name)
        for each in type(candidate).__mro__
    )


def _is_plain_toolset(candidate: object) -> bool:
    """Whether it only collects tools: not a class that adds to it, nor one that times them."""
    kind = type(candidate)
    named = (kind.__module__, kind.__name__)
    plain = named == ("pydantic_ai.toolsets.function", "FunctionToolset")
    return plain and vars(candidate)["timeout"] is None


def _own(tool: Any) -> Tool:
    """One of pydantic-ai's tools. It runs in the caller's thread, as a function that is handed in
    does, unless something of it is async, timed or made for each run."""
    schema = tool.function_schema
    if not (schema.is_async or tool.args_validator or tool.prepare or tool.timeout):
        return _tool(tool.tool_def, _Here(tool), schema.validator, schema.function)
    from pydantic_ai import FunctionToolset

    for listed in _listed(Server(FunctionToolset([tool]), _context)):
        return listed
    raise InvalidTool(f"{tool.name!r} cannot be a tool here: its prepare() leaves it out")


_known: WeakValueDictionary[int, Server] = WeakValueDictionary()


def _server(handed: object, toolset: Any) -> Server:
    """What holds the toolset's connections: one for all agents that are handed the same object."""
    known = _known.get(id(handed))
    if known is None or known.handed is not handed:
        known = _known[id(handed)] = Server(toolset, _context, handed)
    return known


def _connected(candidate: object) -> Any:
    """A toolset over what FastMCP can connect to. Raises `InvalidInput` without the extra."""
    if find_spec("pydantic_ai") is None or find_spec("fastmcp") is None:
        raise InvalidInput(
            f"the tools of a {type(candidate).__name__} need the extra: pip install durable_nb[mcp]"
        )
    from pydantic_ai.mcp import MCPToolset

    return MCPToolset(cast("Any", candidate))


def _listed(server: Server) -> list[Tool]:
    """The toolset's tools as they are now."""
    try:
        held = engine.call(server.live(), engine.Stop())
    except ConnectionError as error:
        raise InvalidInput(f"{error}. Start it, then make the agent again") from None
    return [
        _tool(
            each.tool_def,
            _There(server, name, asks=each.tool_def.kind == "unapproved"),
            each.args_validator,
            getattr(getattr(each, "call_func", None), "__self__", None),
        )
        for name, each in held.tools.items()
    ]


def _tool(definition: ToolDefinition, call: _Here | _There, validator: Any, code: object) -> Tool:
    """The tool that a model is told of, which makes that call."""
    if definition.kind == "external":
        raise InvalidTool(
            f"{definition.name!r} cannot be a tool here: its results come from outside of a run; "
            "give a function that calls interrupt() to wait for a person"
        )
    if not NAME.fullmatch(definition.name):
        usable = {re.sub(r"[^a-zA-Z0-9_-]", "_", definition.name)[:64]: definition.name}
        raise InvalidTool(
            f"{definition.name!r} cannot be a tool's name (letters, digits, _ and -, at most 64); "
            f"give it another one: .renamed({usable}) on its toolset"
        )
    function = getattr(code, "function", code)
    return Tool(
        call,
        name=definition.name,
        description=definition.description or "",
        on_crash=(definition.metadata or {}).get("on_crash", "rerun"),
        source=source_of(function) if callable(function) else _listing(definition),
        arguments=Arguments(validator, definition.parameters_json_schema),
    )


def _listing(definition: ToolDefinition) -> str:
    """A tool as its server lists it: what a later process compares."""
    listed = {
        "description": definition.description,
        "parameters": definition.parameters_json_schema,
        "annotations": (definition.metadata or {}).get("annotations"),
    }
    return dumps(freeze(listed))


@dataclass(frozen=True, slots=True)
class _Here:
    """Calls a sync tool of pydantic-ai in this thread."""

    tool: pydantic_ai.Tool[None]

    def __call__(self, /, **arguments: Any) -> Any:
        approved = _approved(arguments, required=self.tool.requires_approval)
        schema = self.tool.function_schema
        first: list[Any] = [_context(self.tool.name, approved=approved)] if schema.takes_ctx else []
        first += [arguments.pop(name) for name in schema.positional_fields]
        if schema.var_positional_field is not None:
            first += arguments.pop(schema.var_positional_field)
        with _steered(self.tool.name, arguments, approved=approved):
            return _plain(schema.function(*first, **arguments))


@dataclass(frozen=True, slots=True)
class _There:
    """Calls a toolset's tool on the loop that runs here, over the connection it has there."""

    server: Server
    name: str
    asks: bool

    async def __call__(self, /, **arguments: Any) -> Any:
        approved = _approved(arguments, required=self.asks)
        held = await self.server.live()
        if self.name not in held.tools:
            raise InvalidTool(f"{self.server.label} has no tool {self.name!r} any more")
        tool, context = held.tools[self.name], _context(self.name, approved=approved)
        with _steered(self.name, arguments, approved=approved):
            async with self.server.watched(held, self.name):
                if tool.args_validator_func is not None:
                    judged = tool.args_validator_func(context, **arguments)
                    if inspect.isawaitable(judged):
                        await judged
                return _plain(await held.toolset.call_tool(self.name, arguments, context, tool))


def _context(name: str | None = None, *, approved: bool = False) -> RunContext[None]:
    """What a tool of pydantic-ai is told of its run."""
    from pydantic_ai import RunContext
    from pydantic_ai.usage import RunUsage

    here = scope()
    call = None if here is None else here.current
    return RunContext(
        deps=None,
        model=cast("Any", None),
        usage=RunUsage(),
        tool_name=name,
        tool_call_id=call.call_id if call else None,
        run_id=call.execution_id if call else None,
        tool_call_approved=approved,
    )


def _approved(arguments: Mapping[str, Any], *, required: bool) -> bool:
    """Whether a person has approved this call; pauses if that is required and has not happened."""
    here = scope()
    asked = here is not None and any(
        (each.pause.asks, each.pause.position, each.pause.reason) == ("approval", 0, "approval")
        for each in here.answers
    )
    return bool((required or asked) and _ask(arguments, None))


def _ask(arguments: Mapping[str, Any], metadata: Any) -> bool:
    """Pause for an approval. A rejection does not come back here: the model is told of it."""
    shown = to_jsonable_python(arguments)
    context = shown if metadata is None else {"arguments": shown, "metadata": metadata}
    return interrupt("approval", context, on_reject="skip").approved


@contextmanager
def _steered(name: str, arguments: Mapping[str, Any], *, approved: bool) -> Iterator[None]:
    """Take what a tool raises to steer pydantic-ai's loop. `ModelRetry` and `ToolFailed` are errors
    like any other."""
    from pydantic_ai.exceptions import ApprovalRequired, CallDeferred

    try:
        yield
    except ApprovalRequired as wish:
        if not approved:
            _ask(arguments, wish.metadata)
        raise InvalidTool(
            f"{name} asks again for the approval that it has; let it look at "
            "context.tool_call_approved"
        ) from None
    except CallDeferred:
        raise InvalidTool(
            f"{name} deferred its call, and a run has no results from outside; let it call "
            "interrupt() to wait for a person"
        ) from None


def _plain(value: Any) -> Any:
    """A result as text and JSON. Of a picture or a sound only its kind and its size are told."""
    from pydantic_ai import BinaryContent, ToolReturn

    match value:
        case ToolReturn():
            return _plain(value.return_value)
        case BinaryContent():
            return f"[{value.media_type}, {len(value.data)} bytes]"
        case list() | tuple():
            return [_plain(each) for each in value]
        case dict():
            return {key: _plain(each) for key, each in value.items()}
    return value
