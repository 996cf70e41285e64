"""Anthropic's Messages: blocks, thinking that is signed, arguments as objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from durable_nb import Message
from durable_nb.model.messages import Call
from tests.support.provider_server.judge import Malformed, checked, needs, tool_faults
from tests.support.provider_server.script import Said, Script, arguments_text, pieces, signature


def speaks(path: str) -> bool:
    return path.partition("?")[0].endswith("/messages")


def is_streamed(path: str, body: Any) -> bool:
    return bool(body.get("stream"))


def replies(body: Any) -> int:
    return sum(message["role"] == "assistant" for message in body["messages"])


def faults(body: Any, script: Script) -> list[str]:
    found = [f"{name}: field required" for name in ("model", "max_tokens") if not body.get(name)]
    for tool in body.get("tools", ()):
        found += tool_faults(tool.get("name"), tool.get("input_schema"))
    try:
        _check_thinking(body["messages"], script)
        return found + checked(list(_transcript(body)))
    except Malformed as error_:
        return [*found, str(error_)]


def _transcript(body: Any) -> Iterator[Message]:
    if "system" in body:
        yield Message("system", _text(_blocks(body["system"])))
    for message in body["messages"]:
        blocks = _blocks(message["content"])
        needs(bool(blocks), f"a message of {message['role']} without content")
        if message["role"] == "assistant":
            yield _read_reply(blocks)
        else:
            needs(message["role"] == "user", f"a message of {message['role']!r}")
            yield from _read_user(blocks)


def _blocks(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _read_user(blocks: list[Any]) -> Iterator[Message]:
    """Results come first, then what the user says."""
    results = [block for block in blocks if block["type"] == "tool_result"]
    needs(blocks[: len(results)] == results, "a result stands after the user's words")
    for block in results:
        said = _text(_blocks(block.get("content", [])))
        yield Message("tool", said, tool_call_id=block["tool_use_id"])
    if len(blocks) > len(results):
        yield Message("user", _text(blocks[len(results) :]))


def _read_reply(blocks: list[Any]) -> Message:
    known = ("text", "tool_use", "thinking")
    needs(all(block["type"] in known for block in blocks), f"a block of no kind: {blocks}")
    calls = tuple(_read_call(block) for block in blocks if block["type"] == "tool_use")
    return Message("assistant", _text(block for block in blocks if block["type"] == "text"), calls)


def _read_call(block: Any) -> Call:
    needs(isinstance(block["input"], dict), f"input that is no object: {block}")
    needs(bool(re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"])), f"a call's id: {block['id']!r}")
    return Call(block["name"], block["input"], block["id"])


def _text(blocks: Any) -> str:
    texts = [block["text"] for block in blocks]
    needs(all(text.strip() for text in texts), "text content blocks must be non-empty")
    return "".join(texts)


def _check_thinking(messages: list[Any], script: Script) -> None:
    """A block of thinking is as it was made; while tools are used it has to be there."""
    spoken = [at for at, message in enumerate(messages) if _is_users_word(message)]
    made = iter(script)
    for at, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        blocks = _blocks(message["content"])
        said = next(made, Said())
        sent = [block for block in blocks if block["type"] == "thinking"]
        wanted = [_thinking(said)] if said.thinking else []
        needs(sent in ([], wanted), f"thinking blocks cannot be modified: {sent}, not {wanted}")
        if at > max(spoken, default=0):
            needs(blocks[: len(wanted)] == wanted, f"message {at} has to start with its thinking")


def _is_users_word(message: Any) -> bool:
    blocks = _blocks(message["content"])
    return message["role"] == "user" and any(block["type"] == "text" for block in blocks)


def _thinking(said: Said) -> Any:
    sealed = signature(said.thinking)
    return {"type": "thinking", "thinking": said.thinking, "signature": sealed}


def whole(said: Said, number: int) -> Any:
    blocks: list[Any] = [_thinking(said)] if said.thinking else []
    if said.text:
        blocks.append({"type": "text", "text": said.text})
    blocks += [
        {"type": "tool_use", "id": id_, "name": call.tool, "input": dict(call.arguments)}
        for id_, call in said.named(number)
    ]
    return _message(number, said) | {"content": blocks, "stop_reason": _reason(said)}


def events(said: Said, number: int, body: Any) -> Iterator[str]:
    yield _frame("message_start", message=_message(number, said))
    yield _frame("ping")
    for at, (block, deltas) in enumerate(_parts(said, number)):
        yield _frame("content_block_start", index=at, content_block=block)
        for delta in deltas:
            yield _frame("content_block_delta", index=at, delta=delta)
        yield _frame("content_block_stop", index=at)
    done = {"stop_reason": _reason(said), "stop_sequence": None}
    yield _frame("message_delta", delta=done, usage={"output_tokens": said.usage.output_tokens})
    yield _frame("message_stop")


def _parts(said: Said, number: int) -> Iterator[tuple[Any, list[Any]]]:
    """Each block as it begins, and what is then added to it."""
    if said.thinking:
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(said.thinking)]
        sealed = {"type": "signature_delta", "signature": signature(said.thinking)}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, sealed]
    if said.text:
        words = [{"type": "text_delta", "text": piece} for piece in pieces(said.text)]
        yield {"type": "text", "text": ""}, words
    for id_, call in said.named(number):
        written = pieces(arguments_text(call))
        parts = [{"type": "input_json_delta", "partial_json": piece} for piece in written]
        yield {"type": "tool_use", "id": id_, "name": call.tool, "input": {}}, parts


def _message(number: int, said: Said) -> Any:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "scripted-1",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": said.usage.input_tokens - said.usage.cached_tokens,
            "cache_read_input_tokens": said.usage.cached_tokens,
            "cache_creation_input_tokens": 0,
            "output_tokens": said.usage.output_tokens,
        },
    }


def _reason(said: Said) -> str:
    return "tool_use" if said.calls else "end_turn"


_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def error(status: int, message: str) -> Any:
    kind = _KINDS.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def error_event(message: str) -> str:
    return _frame("error", error={"type": "overloaded_error", "message": message})


def too_long() -> Any:
    return error(400, "prompt is too long: 200 tokens > 100 maximum")


def _frame(kind: str, **more: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n"
