"""One attempt to get a reply: a streamed request whose text is told as it comes, or a `Failure`.

A reply that is not whole is none: nothing of it is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any, cast

from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from durable_nb.llm.compatible import set_right
from durable_nb.llm.connect import connected, key_of
from durable_nb.llm.failures import by_way_of, failure_of
from durable_nb.llm.kept import message_of, with_estimate
from durable_nb.llm.leaving import left_closed
from durable_nb.llm.named import Named
from durable_nb.llm.protocol import ToolSpec
from durable_nb.llm.proxies import proxied
from durable_nb.llm.retry import Failure
from durable_nb.llm.spent import estimated, is_told, usage_of
from durable_nb.llm.stream import is_heard, tell
from durable_nb.llm.translate import Translator
from durable_nb.model.messages import Message, Reply

TIMEOUTS: Mapping[str, float] = {"timeout": 300.0, "first_event_timeout": 600.0}
"""Seconds that a connection may be silent, and until the first word; a model may think for long."""

_FOR_TESTS = ("test", "function")  # pydantic-ai's own, which say no reason why a reply ends

_CUT = Failure("the stream was cut before its end", passing=True)
_SILENT: Mapping[str | None, Failure] = {  # what it means that a reply ends so, and holds nothing
    "length": Failure(
        "the reply came to its limit of tokens before it said anything",
        passing=False,
        hint="raise max_tokens in model_settings",
    ),
    "content_filter": Failure(
        "a filter let nothing of the reply through", passing=False, hint="ask in other words"
    ),
    "error": Failure("the model's reply could not be read", passing=True),
}


class Asker:
    """A model with its client, for one event loop."""

    def __init__(self, source: Named | Model, settings: Mapping[str, Any]) -> None:
        self._model = connected(source) if isinstance(source, Named) else source
        self._is_ours, self._is_open = isinstance(source, Named), False
        key = key_of(self._model)
        self.secrets = () if key is None else (key,)
        """What is not to be said, beside the keys of the environment."""
        self._proxy = proxied(self._model)
        self._settings = _sent(self._model, settings, is_ours=self._is_ours)
        self._translator = Translator()
        self._tools: Sequence[ToolSpec] = ()
        self._offered = offered(())

    async def open(self) -> None:
        """Hold the client's connections, if it is ours, until `close`."""
        if self._is_ours and not self._is_open:
            self._is_open = True
            await self._model.__aenter__()

    async def close(self) -> None:
        if self._is_open:
            await self._model.__aexit__(None, None, None)

    async def attempt(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> Reply | Failure:
        """Ask once. What a provider or its client raises comes back as a `Failure`, so that no
        exception carries a key in its chain."""
        tell("")
        try:
            response = await _response(
                self._model,
                self._translator.translated(messages),
                self._settings,
                self._parameters(tools),
            )
        except Exception as error:  # noqa: BLE001  # a client may raise anything, with keys in it
            return by_way_of(self._proxy, failure_of(error))
        if not _is_whole(self._model, response):
            return _CUT
        message, model = message_of(response), response.model_name or self._model.model_name
        if (why := _why_silent(message, response)) is not None:
            return why
        if is_told(response):
            return Reply(message, usage_of(response), model)
        return Reply(with_estimate(message), estimated(messages, tools, message), model)

    def _parameters(self, tools: Sequence[ToolSpec]) -> ModelRequestParameters:
        """The tools as they are offered, made once for those of an agent."""
        if len(tools) != len(self._tools) or not all(map(is_, tools, self._tools)):
            self._tools, self._offered = tuple(tools), offered(tools)
        return self._offered


def offered(tools: Sequence[ToolSpec]) -> ModelRequestParameters:
    """The tools as pydantic-ai offers them to a model."""
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=each.name,
                description=each.description,
                parameters_json_schema=each.schema,
            )
            for each in tools
        ],
        instruction_parts=[],
    )


def _sent(model: Model, settings: Mapping[str, Any], *, is_ours: bool) -> ModelSettings:
    """The settings of every request: what was asked for, else timeouts, and no retries but ours."""
    wanted = {name: value for name, value in settings.items() if name != "max_retries"}
    if model.system in _FOR_TESTS:
        return cast("ModelSettings", wanted)
    ours = TIMEOUTS if is_ours else {**TIMEOUTS, "max_retries": 0}
    unknown = model.unsupported_settings
    return cast(
        "ModelSettings", {name: ours[name] for name in ours if name not in unknown} | wanted
    )


async def _response(
    model: Model,
    messages: list[ModelMessage],
    settings: ModelSettings,
    parameters: ModelRequestParameters,
) -> ModelResponse:
    if isinstance(model, FunctionModel) and model.stream_function is None:
        return await model_request(
            model, messages, model_settings=settings, model_request_parameters=parameters
        )
    request = model_request_stream(
        model, messages, model_settings=settings, model_request_parameters=parameters
    )
    async with left_closed(), request as stream:
        set_right(stream)
        text, heard = "", is_heard()
        async for event in stream:
            if heard and (more := _text_of(event)):
                text += more
                tell(text)
        return stream.get()


def _text_of(event: Any) -> str:
    """What an event adds to the reply's text."""
    match event:
        case PartStartEvent(part=TextPart(content=more)):
            return more
        case PartDeltaEvent(delta=TextPartDelta(content_delta=more)):
            return more
        case _:
            return ""


def _why_silent(message: Message, response: ModelResponse) -> Failure | None:
    """Why a response is no reply, if it is empty for a reason. One that is empty without a reason
    ends a run."""
    if message.tool_calls or message.content.strip():
        return None
    return _SILENT.get(response.finish_reason)


def _is_whole(model: Model, response: ModelResponse) -> bool:
    """Whether the provider said that this is all. pydantic-ai makes up an end for those that never
    do; what a provider said itself is in the details."""
    if response.state != "complete":
        return False
    if not type(model).__module__.startswith("pydantic_ai.models.") or model.system in _FOR_TESTS:
        return True
    return "finish_reason" in (response.provider_details or {}) or (
        response.finish_reason == "content_filter"
    )
