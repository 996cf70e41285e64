"""pydantic-ai's own models as `llm`: asked as they are, and never pickled with a key."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

from durable_nb import Agent, InvalidInput, MemoryCheckpointer, Message, ModelFailed, call
from durable_nb.llm.adopt import as_model
from durable_nb.llm.stream import listening
from durable_nb.runtime import engine
from tests.llm.wire import KEYS, ask, settle
from tests.support.provider_server import ProviderServer, Trouble, asks, says

OWN = "sk-of-the-users-own-2f71"


def look(q: str) -> str:
    """Look something up."""
    return f"seen {q}"


def answered(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    if len(messages) == 1:
        return ModelResponse([ToolCallPart("look", {"q": "a"}, "c1")])
    return ModelResponse([TextPart(f"Done with {[each.name for each in info.function_tools]}.")])


def test_a_function_model_drives_a_run_without_a_stream():
    agent = Agent("bot", FunctionModel(answered), [look], checkpointer=MemoryCheckpointer())
    assert agent.run("go").output == "Done with ['look']."
    assert agent.definition().text.count("function:function:answered:") == 1


def test_a_function_that_streams_is_heard():
    async def streamed(messages: list[ModelMessage], info: AgentInfo) -> Any:
        yield "one "
        yield "two"

    heard: list[str] = []
    with listening(heard.append):
        reply = ask(as_model(FunctionModel(stream_function=streamed)), [Message("user", "go")])
    assert reply.message.content == "one two"
    assert heard == ["", "one ", "one two"]


def test_a_test_model_calls_every_tool():
    agent = Agent("bot", TestModel(), [look], checkpointer=MemoryCheckpointer())
    assert agent.run("go").output == '{"look":"seen a"}'


def test_models_without_a_client_are_pickled_as_they_are():
    for model in (TestModel(custom_output_text="hi"), FunctionModel(answered)):
        again = pickle.loads(cloudpickle.dumps(as_model(model)))
        assert again.name == f"{model.system}:{model.model_name}"
        assert (
            ask(again, [Message("user", "go"), Message("user", "on")]).message.role == "assistant"
        )


MADE: dict[str, Callable[[str | None, str], Any]] = {
    "chat": lambda key, url: OpenAIChatModel("gpt-5", provider=OpenAIProvider(f"{url}/v1", key)),
    "responses": lambda key, url: OpenAIResponsesModel(
        "gpt-5", provider=OpenAIProvider(f"{url}/v1", key)
    ),
    "anthropic": lambda key, url: AnthropicModel(
        "claude-sonnet-5-5", provider=AnthropicProvider(api_key=key, base_url=url)
    ),
    "google": lambda key, url: GoogleModel(
        "gemini-3-pro-preview", provider=GoogleProvider(api_key=key or "", base_url=url)
    ),
}
"""Models with a client, of a key (None: the environment's) and a server's address."""


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_a_model_with_a_client_asks_and_is_retried_by_us_alone(made, monkeypatch):
    with ProviderServer([says("Yes.")], troubles={1: Trouble("status", 503)}) as server:
        settle(monkeypatch, server)
        model = made(OWN, server.url)
        adopted: Any = as_model(model)
        reply = ask(adopted, [Message("user", "go")])
        assert len(server.requests) == 2
        _close(model)
    assert reply.message.content == "Yes."
    assert len(reply.retries) == 1
    assert adopted.name == f"{model.system}:{model.model_name}"
    assert OWN not in repr(adopted)


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_a_users_own_key_is_not_said_when_it_is_echoed(made, monkeypatch):
    with ProviderServer([says("Yes.")], troubles={1: Trouble("echo")}) as server:
        settle(monkeypatch, server)
        model = made(OWN, server.url)
        with pytest.raises(ModelFailed) as failed:
            ask(as_model(model), [Message("user", "go")])
        _close(model)
    assert OWN not in str(failed.value)


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_a_model_with_the_environments_key_is_pickled_as_its_name(made, monkeypatch):
    with ProviderServer([asks(call("look", q="a")), says("Yes.")]) as server:
        settle(monkeypatch, server)
        model = made(None, server.url)
        packed = cloudpickle.dumps(as_model(model))
        for key in KEYS.values():
            assert key.encode() not in packed
        again = pickle.loads(packed)
        assert ask(again, [Message("user", "go")], []).message.tool_calls[0].tool == "look"
        assert again.name == f"{model.system}:{model.model_name}"


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_a_model_with_a_key_of_its_own_is_not_pickled(made, monkeypatch):
    with ProviderServer([]) as server:
        settle(monkeypatch, server)
        model = made(OWN, server.url)
        with pytest.raises(InvalidInput, match="name the model instead"):
            cloudpickle.dumps(as_model(model))


def _close(model: Any) -> None:
    """Close the connections of a model, which are its maker's."""

    async def closed() -> None:
        async with model:
            pass

    engine.call(closed(), engine.Stop())
