"""OpenAI's Responses: typed items in, typed events out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count, groupby
from typing import Any

from durable_nb import Message
from tests.support.provider_server import chat
from tests.support.provider_server.judge import (
    Malformed,
    checked,
    needs,
    read_arguments,
    tool_faults,
)
from tests.support.provider_server.script import Said, Script, arguments_text, pieces, signature

too_long = chat.too_long
error = chat.error

OUTPUT = ("reasoning", "function_call")
PREFIXES = {"reasoning": "rs_", "function_call": "fc_", "message": "msg_"}


def speaks(path: str) -> bool:
    return path.endswith("/responses")


def is_streamed(path: str, body: Any) -> bool:
    return bool(body.get("stream"))


def replies(body: Any) -> int:
    return len(_turns(body))


def _items(body: Any) -> list[Any]:
    given = body["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _is_output(item: Any) -> bool:
    return item.get("type") in OUTPUT or item.get("role") == "assistant"


def _turns(body: Any) -> list[list[Any]]:
    """The output items of each reply."""
    return [list(items) for output, items in groupby(_items(body), _is_output) if output]


def faults(body: Any, script: Script) -> list[str]:
    found = [] if body.get("model") else ["no model is named"]
    for tool in body.get("tools", ()):
        found += tool_faults(tool.get("name"), tool.get("parameters"))
    try:
        transcript = list(_transcript(body))
        for number, turn in enumerate(_turns(body)):
            _check_turn(turn, script[number] if number < len(script) else Said(), number)
    except Malformed as error_:
        return [*found, str(error_)]
    return found + checked(transcript)


def _transcript(body: Any) -> Iterator[Message]:
    if "instructions" in body:
        yield Message("system", body["instructions"])
    for output, items in groupby(_items(body), _is_output):
        if output:
            yield _read_reply(list(items))
        else:
            yield from map(_read_input, items)


def _read_reply(items: list[Any]) -> Message:
    calls = [
        read_arguments(item["name"], item["arguments"], item["call_id"])
        for item in items
        if item.get("type") == "function_call"
    ]
    texts = [_text(item["content"]) for item in items if item.get("role") == "assistant"]
    return Message("assistant", "".join(texts), tuple(calls))


def _read_input(item: Any) -> Message:
    if item.get("type") == "function_call_output":
        return Message("tool", _text(item["output"]), tool_call_id=item["call_id"])
    needs(item.get("role") in ("user", "system", "developer"), f"an item of no kind: {item}")
    return Message("user" if item["role"] == "user" else "system", _text(item["content"]))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in content]
    needs(all(texts), f"an empty part: {content}")
    return "".join(texts)


def _check_turn(items: list[Any], said: Said, number: int) -> None:
    """Ids are of their kinds, and the reasoning comes back sealed and directly before what it led
    to."""
    kinds = [item.get("type", "message") for item in items]
    for item, kind in zip(items, kinds, strict=True):
        needs(item.get("id", PREFIXES[kind]).startswith(PREFIXES[kind]), f"an id of {item}")
    needs(kinds[-1] != "reasoning", f"reasoning without the item that followed it: {items}")
    if said.thinking:
        sent = {key: items[0].get(key) for key in ("type", "encrypted_content")}
        made = {key: _items_of(said, number)[0][key] for key in sent}
        needs(sent == made, f"reply {number} comes back without its reasoning: {items}")


def whole(said: Said, number: int) -> Any:
    return _response(number, _items_of(said, number), said)


def events(said: Said, number: int, body: Any) -> Iterator[str]:
    counter = count()
    begun = {"response": _response(number, [], None)}
    yield _frame(counter, "response.created", begun)
    yield _frame(counter, "response.in_progress", begun)
    items = _items_of(said, number)
    for at, item in enumerate(items):
        place = {"output_index": at, "item_id": item["id"]}
        yield _frame(counter, "response.output_item.added", place | {"item": _empty(item)})
        for kind, more in _growth(item):
            yield _frame(counter, f"response.{kind}", place | more)
        yield _frame(counter, "response.output_item.done", place | {"item": item})
    done = {"response": _response(number, items, said)}
    yield _frame(counter, "response.completed", done)


def _growth(item: Any) -> Iterator[tuple[str, Any]]:
    """How an item comes, from its beginning to its end."""
    match item["type"]:
        case "reasoning":
            text, part = item["summary"][0]["text"], {"summary_index": 0}
            kind = "reasoning_summary_text"
            opened = {"part": {"type": "summary_text", "text": ""}}
            yield "reasoning_summary_part.added", part | opened
        case "message":
            text = item["content"][0]["text"]
            part = {"content_index": 0, "logprobs": []}
            kind, opened = "output_text", {"part": item["content"][0] | {"text": ""}}
            yield "content_part.added", part | opened
        case _:
            text, part, kind = item["arguments"], {}, "function_call_arguments"
    for piece in pieces(text):
        yield f"{kind}.delta", part | {"delta": piece}
    whole_text = "arguments" if item["type"] == "function_call" else "text"
    yield f"{kind}.done", part | {whole_text: text}


def _items_of(said: Said, number: int) -> list[Any]:
    items: list[Any] = []
    if said.thinking:
        summary = [{"type": "summary_text", "text": said.thinking}]
        sealed = f"sealed-{signature(said.thinking)}"
        items.append(_item("reasoning", f"{number}", summary=summary, encrypted_content=sealed))
    if said.text:
        part = {"type": "output_text", "text": said.text, "annotations": []}
        items.append(_item("message", f"{number}", role="assistant", content=[part]))
    for at, (id_, call) in enumerate(said.named(number)):
        named = {"call_id": id_, "name": call.tool, "arguments": arguments_text(call)}
        items.append(_item("function_call", f"{number}_{at}", **named))
    return items


def _item(kind: str, place: str, **more: Any) -> Any:
    return {"id": f"{PREFIXES[kind]}{place}", "type": kind, "status": "completed", **more}


def _empty(item: Any) -> Any:
    nothing = {"summary": [], "content": [], "arguments": "", "encrypted_content": None}
    return {key: nothing.get(key, value) for key, value in item.items()} | {"status": "in_progress"}


def _response(number: int, items: list[Any], said: Said | None) -> Any:
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed" if said else "in_progress",
        "error": None,
        "incomplete_details": None,
        "model": "scripted-1",
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": _usage(said) if said else None,
    }


def _usage(said: Said) -> Any:
    usage = said.usage
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total_tokens,
    }


def error_event(message: str) -> str:
    said = {"code": "server_error", "message": message, "param": None}
    return _frame(count(99), "error", said)


def _frame(counter: Iterator[int], kind: str, more: Any) -> str:
    data = {"type": kind, "sequence_number": next(counter), **more}
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n"
