"""OpenAI's Chat Completions, which is also what Ollama and compatible servers speak."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import Any

from durable_nb import Message
from durable_nb.model.messages import Call
from tests.support.provider_server.judge import (
    Malformed,
    checked,
    needs,
    read_arguments,
    tool_faults,
)
from tests.support.provider_server.script import Manner, Said, Script, arguments_text, pieces

ELSEWHERE = "any-model"  # one that is no OpenAI's: its server says in more chunks what it has used


def speaks(path: str) -> bool:
    return path.endswith("/chat/completions")


def is_streamed(path: str, body: Any) -> bool:
    return bool(body.get("stream"))


def replies(body: Any) -> int:
    return sum(message["role"] == "assistant" for message in body["messages"])


def faults(body: Any, script: Script) -> list[str]:
    found = [] if body.get("model") else ["no model is named"]
    for tool in body.get("tools", ()):
        found += tool_faults(tool["function"].get("name"), tool["function"].get("parameters"))
    try:
        return found + checked([_read(message) for message in body["messages"]])
    except Malformed as error:
        return [*found, str(error)]


def _read(message: Any) -> Message:
    content = _text(message.get("content"))
    match message["role"]:
        case "system" | "developer":
            return Message("system", content)
        case "user":
            return Message("user", content)
        case "tool":
            return Message("tool", content, tool_call_id=message["tool_call_id"])
        case "assistant":
            calls = tuple(_read_call(call) for call in message.get("tool_calls") or ())
            return Message("assistant", content, calls)
        case role:
            raise Malformed(f"a message of {role!r}")


def _text(content: Any) -> str:
    """A content's text: given as text, or in parts of which none may be empty."""
    if content is None or isinstance(content, str):
        return content or ""
    texts = [part.get("text") for part in content]
    needs(all(texts), f"an empty part: {content}")
    return "".join(texts)


def _read_call(call: Any) -> Call:
    return read_arguments(call["function"]["name"], call["function"]["arguments"], call["id"])


def whole(said: Said, number: int) -> Any:
    calls = [_call(id_, call) for id_, call in said.named(number)]
    message = {"role": "assistant", "content": said.text or None}
    if said.thinking:
        message["reasoning_content"] = said.thinking
    if calls:
        message |= {"tool_calls": calls}  # type: ignore[dict-item]
    choice = {"index": 0, "message": message, "finish_reason": _reason(said), "logprobs": None}
    return _body(number, "chat.completion", [choice]) | {"usage": _usage(said)}


def events(said: Said, number: int, body: Any) -> Iterator[str]:
    yield _delta(number, {"role": "assistant", "content": ""})
    for piece in pieces(said.thinking):
        yield _delta(number, {"reasoning_content": piece})
    for piece in pieces(said.text):
        yield _delta(number, {"content": piece})
    for piece in _call_pieces(said, number):
        yield _delta(number, {"tool_calls": [piece]})
    is_told = "no usage" not in said.manners
    sum_so_far = _usage(said) if is_told and body["model"] == ELSEWHERE else None
    yield _delta(number, {}, _reason(said), sum_so_far)
    if is_told and (body.get("stream_options") or {}).get("include_usage"):
        yield _frame(_body(number, "chat.completion.chunk", []) | {"usage": _usage(said)})
    yield "data: [DONE]\n\n"


def _call_pieces(said: Said, number: int) -> Iterator[Any]:
    """The calls in pieces, in the server's manner."""
    each = [list(_pieces(at, *named, said.manners)) for at, named in enumerate(said.named(number))]
    if "by turns" not in said.manners:
        return chain.from_iterable(each)
    return (piece for turn in zip_longest(*each) for piece in turn if piece)


def _pieces(at: int, id_: str, call: Call, manners: tuple[Manner, ...]) -> Iterator[Any]:
    index = 0 if "one index" in manners else at
    begun = _call(id_, call) | {"index": index}
    begun["function"]["arguments"] = ""
    if "late ids" in manners:
        del begun["id"]
    yield begun
    for place, piece in enumerate(pieces(arguments_text(call))):
        more = {"index": index, "function": {"arguments": piece}}
        if "names again" in manners:
            more["function"]["name"] = call.tool
        if {"ids again", "late ids", "by turns"} & {*manners}:
            more["id"] = id_
        if "an id a piece" in manners:
            more["id"] = f"{id_}_{place}"
        yield more


def error(status: int, message: str) -> Any:
    kinds = {400: "invalid_request_error", 401: "invalid_request_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "server_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def error_event(message: str) -> str:
    return _frame(error(500, message))


def too_long() -> Any:
    body = error(400, "This model's maximum context length is 100 tokens; you sent 200.")
    body["error"]["code"] = "context_length_exceeded"
    return body


def _call(id_: str, call: Call) -> Any:
    function = {"name": call.tool, "arguments": arguments_text(call)}
    return {"id": id_, "type": "function", "function": function}


def _reason(said: Said) -> str:
    return "tool_calls" if said.calls else "stop"


def _usage(said: Said) -> Any:
    usage = said.usage
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def _delta(number: int, delta: Any, reason: str | None = None, usage: Any = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
    return _frame(_body(number, "chat.completion.chunk", [choice]) | {"usage": usage})


def _body(number: int, kind: str, choices: Any) -> Any:
    return {
        "id": f"chatcmpl-{number}",
        "object": kind,
        "created": 1_700_000_000,
        "model": "scripted-1",
        "choices": choices,
    }


def _frame(body: Any) -> str:
    return f"data: {json.dumps(body)}\n\n"
