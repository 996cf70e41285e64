"""The provider on loopback takes what a real one takes, and refuses what a real one refuses."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from copy import deepcopy
from http.client import HTTPConnection
from typing import Any

import pytest
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.models import infer_model

from durable_nb import MemoryCheckpointer, call
from durable_nb.llm.kept import message_of
from tests.llm.wire import PROVIDERS, lead
from tests.support.children import ROOT, TIMEOUT
from tests.support.provider_server import ProviderServer, asks, says
from tests.support.provider_server.server import Seen

SCRIPT = [
    asks(call("add", a=1, b=2), call("add", a=3, b=4), text="Two sums.", thinking="Let me add."),
    asks(call("add", a=3, b=7), thinking="One more."),
    says("It is ten."),
]
NAMES = ("openai-chat", "openai", "anthropic", "google")


def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


@pytest.fixture(scope="module")
def last_requests() -> dict[str, Seen]:
    """The last request of a run, in each format."""
    found = {}
    with pytest.MonkeyPatch.context() as patch, ProviderServer(SCRIPT) as server:
        for name in NAMES:
            lead(name, server.url, patch.setenv)
            agent = PROVIDERS[name].agent(
                server.url, MemoryCheckpointer(), add, system_prompt="Count."
            )
            agent.run("What is 1 + 2 + 3 + 4?")
            found[name] = server.requests[-1]
    return found


def post(port: int, path: str, body: Any) -> int:
    """The status that a request is answered with."""
    with closing(HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("POST", path, json.dumps(body))
        answer = connection.getresponse()
        answer.read()
        return answer.status


@pytest.mark.parametrize("name", NAMES)
def test_a_valid_request_is_answered(name: str, last_requests) -> None:
    seen = last_requests[name]
    with ProviderServer(SCRIPT) as server:
        assert post(server.port, seen.path, seen.body) == 200
        assert (server.refused, server.answered) == ([], [2])


@pytest.mark.parametrize("name", NAMES)
def test_a_reply_at_once_says_what_its_stream_says(name: str, monkeypatch) -> None:
    said = [ModelRequest([UserPromptPart("What is 1 + 2 + 3 + 4?")])]

    async def both() -> tuple[ModelResponse, ModelResponse]:
        async with infer_model(PROVIDERS[name].llm) as model:
            at_once = await model_request(model, said)
            async with model_request_stream(model, said) as stream:
                async for _ in stream:
                    pass
                return at_once, stream.get()

    with ProviderServer(SCRIPT) as server:
        lead(name, server.url, monkeypatch.setenv)
        at_once, streamed = (message_of(each) for each in asyncio.run(both()))
        assert server.answered == [0, 0]
    assert at_once == streamed
    assert len(at_once.tool_calls) == 2


def test_a_server_can_be_a_process_of_its_own(last_requests) -> None:
    words = [sys.executable, "-m", "tests.support.provider_server", f"{__name__}:SCRIPT"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        port = int(process.stdout.readline().rpartition(":")[2])
        seen = last_requests["openai"]
        assert post(port, seen.path, seen.body) == 200
        said, _ = process.communicate(timeout=TIMEOUT)
    assert said == "1 requests, 1 answered, []\n"


Change = Callable[[Any], object]


def _moved(items: list[Any], start: int, to: int) -> None:
    items.insert(to, items.pop(start))


def _put(value: Any, *path: Any) -> Change:
    """Put a value at a place of a body."""

    def change(body: Any) -> None:
        for step in path[:-1]:
            body = body[step]
        body[path[-1]] = value

    return change


def _drop(*path: Any) -> Change:
    """Take what is at a place out of a body."""

    def change(body: Any) -> None:
        for step in path[:-1]:
            body = body[step]
        del body[path[-1]]

    return change


# A chat is: system, user, reply with two calls, two results, reply with a call, a result.
CHAT: dict[str, Change] = {
    "no model": _drop("model"),
    "a result is missing": _drop("messages", 3),
    "a result comes twice": lambda body: body["messages"].insert(4, body["messages"][3]),
    "a result of no call": _put("other", "messages", 6, "tool_call_id"),
    "a result comes late": lambda body: _moved(body["messages"], 4, 6),
    "the reply with the calls is missing": _drop("messages", 2),
    "arguments as an object": _put({}, "messages", 2, "tool_calls", 0, "function", "arguments"),
    "arguments are no JSON": _put("{", "messages", 2, "tool_calls", 0, "function", "arguments"),
    "arguments are NaN": _put('{"a":NaN}', "messages", 2, "tool_calls", 0, "function", "arguments"),
    "arguments are a list": _put("[]", "messages", 2, "tool_calls", 0, "function", "arguments"),
    "an id stands for two calls": _put("call_0_0", "messages", 2, "tool_calls", 1, "id"),
    "the system speaks late": lambda body: _moved(body["messages"], 0, 6),
    "the assistant speaks first": lambda body: body["messages"].pop(1),
    "the last word is the assistant's": lambda body: body["messages"].append(
        {"role": "assistant", "content": "so"}
    ),
    "an empty part": _put([{"type": "text", "text": ""}], "messages", 1, "content"),
    "an unknown role": _put("robot", "messages", 1, "role"),
    "a schema that is none": _put("objekt", "tools", 0, "function", "parameters", "type"),
    "a tool's name with a space": _put("a b", "tools", 0, "function", "name"),
}
# Responses: user, reasoning, message, two calls, two outputs, reasoning, call, output.
RESPONSES: dict[str, Change] = {
    "an output is missing": _drop("input", -1),
    "a call is missing": _drop("input", -2),
    "the reasoning is missing": _drop("input", -3),
    "the reasoning was changed": _put("other", "input", -3, "encrypted_content"),
    "the reasoning comes after its call": lambda body: _moved(body["input"], -3, -1),
    "arguments are no JSON": _put("{", "input", -2, "arguments"),
    "an output of no call": _put("other", "input", -1, "call_id"),
    "an id of another kind": _put("msg_1", "input", -2, "id"),
    "an item of no kind": _put("robot", "input", 0, "role"),
    "a schema that is none": _put("objekt", "tools", 0, "parameters", "type"),
}
# Messages: user, assistant (thinking, text, two calls), two results, assistant, a result.
ANTHROPIC: dict[str, Change] = {
    "no max_tokens": _drop("max_tokens"),
    "the results are missing": _drop("messages", 2),
    "one of two results is missing": _drop("messages", 2, "content", 0),
    "the user speaks before the results": lambda body: body["messages"][2]["content"].insert(
        0, {"type": "text", "text": "wait"}
    ),
    "the thinking is missing": _drop("messages", 3, "content", 0),
    "the signature is missing": _put("", "messages", 3, "content", 0, "signature"),
    "the thinking was changed": _put("Hm.", "messages", 3, "content", 0, "thinking"),
    "an earlier thinking is missing": _drop("messages", 1, "content", 0),
    "the thinking comes second": lambda body: _moved(body["messages"][1]["content"], 0, 1),
    "input as text": _put("{}", "messages", 3, "content", 1, "input"),
    "an id with a space": _put("a b", "messages", 3, "content", 1, "id"),
    "an empty text": _put(" ", "messages", 1, "content", 1, "text"),
    "a message without content": _put([], "messages", 4, "content"),
    "the assistant speaks first": _drop("messages", 0),
    "the system as a message": _put("system", "messages", 0, "role"),
    "a schema that is none": _put("objekt", "tools", 0, "input_schema", "type"),
}
# Contents: user, model (thought, text, two calls), two responses, model, a response.
GOOGLE: dict[str, Change] = {
    "a response is missing": _drop("contents", 2, "parts", 0),
    "the responses are missing": _drop("contents", 2),
    "the signature is missing": lambda body: [
        part.pop("thoughtSignature", None) for part in body["contents"][1]["parts"]
    ],
    "the signature was changed": _put("b3RoZXI=", "contents", 3, "parts", -1, "thoughtSignature"),
    "args as text": _put("{}", "contents", 3, "parts", -1, "functionCall", "args"),
    "a response as text": _put("3", "contents", 2, "parts", 0, "functionResponse", "response"),
    "a content without parts": _put([], "contents", 0, "parts"),
    "an empty part": _put("", "contents", 0, "parts", 0, "text"),
    "the model speaks first": _drop("contents", 0),
    "an unknown role": _put("assistant", "contents", 1, "role"),
}
CHANGES = dict(zip(NAMES, (CHAT, RESPONSES, ANTHROPIC, GOOGLE), strict=True))


@pytest.mark.parametrize(
    ("name", "wrong"), [(name, wrong) for name in NAMES for wrong in CHANGES[name]]
)
def test_what_a_provider_would_not_take_is_refused(name: str, wrong: str, last_requests) -> None:
    seen = last_requests[name]
    body = deepcopy(seen.body)
    CHANGES[name][wrong](body)
    assert body != seen.body
    with ProviderServer(SCRIPT) as server:
        assert post(server.port, seen.path, body) == 400
        assert server.refused
        assert server.answered == []
