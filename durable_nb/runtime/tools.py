"""Tools: plain functions with a JSON schema, whose arguments are validated before they run."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    Protocol,
    TypeAlias,
    get_args,
    get_type_hints,
    overload,
)

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from pydantic_core import to_json
from typing_extensions import TypedDict  # the one that pydantic takes before Python 3.12

from durable_nb.core.context import offer_tokens
from durable_nb.model.errors import InvalidTool
from durable_nb.model.messages import Call

OnCrash: TypeAlias = Literal["rerun", "ask", "fail"]

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Validator(Protocol):
    """What checks the arguments of a call, and makes of them what the function takes."""

    def validate_python(self, data: Any, /) -> Any:
        """Raises pydantic's `ValidationError`."""


class Arguments(NamedTuple):
    """What checks a tool's arguments, and the JSON schema that a model sees of them."""

    validator: Validator
    schema: dict[str, Any]


class Tool:
    """A function that a model may call. `schema` is the JSON schema of its arguments.

    Calling a `Tool` calls its function, so that it can be tested outside of a run. Raises
    `InvalidTool` for a name or a signature that no model could use. `arguments` stands in for the
    signature, where something else checks them.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        on_crash: OnCrash = "rerun",
        source: str | None = None,
        arguments: Arguments | None = None,
    ) -> None:
        self.function = function
        self.name: str = name or str(getattr(function, "__name__", type(function).__name__))
        if not NAME.fullmatch(self.name):
            raise InvalidTool(
                f"{self.name!r} cannot be a tool's name (letters, digits, _ and -, at most 64); "
                "give one with tool(name=...)"
            )
        if on_crash not in get_args(OnCrash):
            raise InvalidTool(f"on_crash is 'rerun', 'ask' or 'fail', not {on_crash!r}")
        self.on_crash = on_crash
        said = function.__doc__ if description is None else description
        self.description = inspect.cleandoc(said or "")
        self.source = source_of(function) if source is None else source
        self._given = arguments
        self._arguments = arguments or _arguments_of(self.name, function)

    @property
    def schema(self) -> dict[str, Any]:
        return self._arguments.schema

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Any]:
        """The arguments as the function's annotations want them. Raises `ValueError` in words."""
        try:
            valid: dict[str, Any] = self._arguments.validator.validate_python(dict(arguments))
            return valid
        except ValidationError as error:
            raise ValueError(f"invalid arguments for {self.name}: {_problems(error)}") from error

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"

    def __reduce__(self) -> tuple[object, ...]:
        again = partial(
            Tool,
            name=self.name,
            description=self.description,
            on_crash=self.on_crash,
            source=self.source,
            arguments=self._given,
        )
        return again, (self.function,)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, on_crash: OnCrash = "rerun"
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    on_crash: OnCrash = "rerun",
) -> Any:
    """Make a tool of a function: `@tool`, or `@tool(name=...)`. An agent takes plain functions too.

    `on_crash` says what a resume does with a call that had begun when its process died and left no
    result: run it again, ask a person, or not run it and tell the model (DESIGN R4).
    """
    make = partial(Tool, name=name, description=description, on_crash=on_crash)
    return make if function is None else make(function)


class Toolbox:
    """An agent's tools by name."""

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        self._by_name = {each.name: each for each in tools}
        if len(self._by_name) < len(tools):
            names = [each.name for each in tools]
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidTool(f"two tools are named {twice!r}; give one of them tool(name=...)")

    @property
    def specs(self) -> Sequence[Tool]:
        """The tools as a model is told of them."""
        return tuple(self._by_name.values())

    @cached_property
    def tokens(self) -> int:
        """About how many tokens a request spends on saying which tools there are."""
        return sum(offer_tokens(each.name, each.description, each.schema) for each in self.specs)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Tool:
        return self._by_name[name]

    def on_crash(self, name: str) -> OnCrash:
        """What that tool does with a call in doubt."""
        return self[name].on_crash if name in self else "rerun"

    def refusal(self, call: Call) -> str | None:
        """Why the model's call cannot run, in words for the model; None if it can."""
        if call.tool not in self:
            return f"Error: there is no tool {call.tool!r}; there are {', '.join(self._by_name)}"
        if not isinstance(call.arguments, Mapping):
            return f"Error: the arguments of {call.tool} are not a JSON object: {call.arguments!r}"
        try:
            self[call.tool].validate(call.arguments)
        except ValueError as error:
            return f"Error: {error}"
        return None


def as_tool(candidate: object) -> Tool:
    """A tool, or a function made into one."""
    if isinstance(candidate, Tool):
        return candidate
    if not callable(candidate):
        raise InvalidTool(
            f"a tool is a function, not {candidate!r}; an MCP server's come with "
            "pydantic_ai.mcp.MCPToolset(...)"
        )
    return Tool(candidate)


def result_text(value: object) -> str:
    """What the model reads of a tool's result: text as it is, anything else as JSON.

    Raises an error of pydantic's for what has no JSON form.
    """
    return value if isinstance(value, str) else to_json(value).decode()


def _arguments_of(name: str, function: Callable[..., Any]) -> Arguments:
    """A validator for the keyword arguments that the function takes, and their JSON schema."""
    try:
        hints = get_type_hints(function, include_extras=True)
        fields = {
            parameter.name: _field(name, parameter, hints.get(parameter.name, Any))
            for parameter in inspect.signature(function).parameters.values()
        }
        adapter = TypeAdapter(with_config(ConfigDict(extra="forbid"))(TypedDict(name, fields)))  # type: ignore[operator]  # made at run time
        return Arguments(adapter, adapter.json_schema())
    except InvalidTool:
        raise
    except Exception as error:  # whatever pydantic finds wrong with it
        raise InvalidTool(
            f"the signature of {name} cannot be a JSON schema: {error}; annotate its parameters "
            "with plain types"
        ) from error


def _field(name: str, parameter: inspect.Parameter, hint: Any) -> Any:
    """One parameter as a field. The function itself supplies a default that the model leaves out."""
    if parameter.kind not in _KINDS:
        raise InvalidTool(
            f"{name} takes {parameter}, which has no JSON schema; name its parameters"
        )
    if parameter.default is inspect.Parameter.empty:
        return hint
    if isinstance(parameter.default, str | int | float | bool | None):
        hint = Annotated[hint, Field(json_schema_extra={"default": parameter.default})]
    return NotRequired[hint]


def _problems(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg']}"
        for problem in error.errors(include_url=False, include_context=False)
    )


def source_of(function: Callable[..., Any]) -> str:
    """The function's text, so that a later process can say what has changed."""
    try:
        return textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
    except (OSError, TypeError):  # made by exec, or not a Python function
        return ""
