"""A provider's reply as a `Message`, and back: the same request is made of it in any process.

Text and calls stand in the message alone. `extra` has what else the provider needs back: thinking
with its signatures, ids of items, whose they are. The parts of a plain reply, its text and then its
calls, are not listed there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, cast
from urllib.parse import urlsplit

from pydantic_ai.messages import (
    INVALID_JSON_KEY,
    ModelMessagesTypeAdapter,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from pydantic_core import from_json

from durable_nb.model.errors import NotStorable
from durable_nb.model.messages import Call, Message
from durable_nb.model.values import dumps, freeze

KEY = "provider"
_USAGE = "usage"  # beside what the provider needs back: that its tokens are estimated
APART = "\n\n"  # between texts that something else came between, as pydantic-ai has it
_LEFT_OUT = ("usage", "timestamp", "kind", "state", "model_name")
_AS_EVER = ("stop", "tool_call")  # why a reply ends; only another reason is stored
_LEFT_OUT_DETAILS = ("timestamp", "finish_reason")  # both are in the log, or of no use later
_SAID = {"text": ("content",), "tool-call": ("tool_name", "args", "tool_call_id")}


def message_of(response: ModelResponse) -> Message:
    """The reply as it is stored."""
    cut = response.parts[-1] if response.parts and response.finish_reason == "length" else None
    calls = tuple(
        Call(part.tool_name, _arguments(part.args, is_cut=part is cut), part.tool_call_id)
        for part in response.parts
        if isinstance(part, ToolCallPart)
    )
    texts = (
        "".join(each.content for each in parts if isinstance(each, TextPart))
        for is_text, parts in groupby(response.parts, lambda part: isinstance(part, TextPart))
        if is_text
    )
    said = APART.join(texts) or (response.provider_details or {}).get("refusal", "")
    return Message("assistant", said, calls, extra={KEY: _form(response)})


def with_estimate(message: Message) -> Message:
    """The reply, with the note that its tokens are estimated: its provider tells none."""
    form = cast("Mapping[str, object]", message.extra[KEY])
    return replace(message, extra={KEY: {**form, _USAGE: "estimated"}})


def response_of(message: Message) -> ModelResponse:
    """The reply as pydantic-ai has it. A call's id is the message's, which may have been changed."""
    kept = message.extra.get(KEY)
    if not isinstance(kept, Mapping):
        return ModelResponse(_plain_parts(message))
    form = _without(kept, (_USAGE,))
    if "parts" not in form:
        return ModelResponse(_plain_parts(message), **form)
    parts = [_filled(part, message) for part in form["parts"]]
    [response] = ModelMessagesTypeAdapter.validate_python(
        [{**form, "kind": "response", "parts": parts}]
    )
    assert isinstance(response, ModelResponse)
    response.parts = _taken_back(response.parts)
    return response


def _taken_back(parts: Sequence[ModelResponsePart]) -> list[ModelResponsePart]:
    """The parts that a provider takes back: no blank text that it has no name for, and no thinking
    that led to nothing."""
    kept = [part for part in parts if not _is_blank(part)]
    return kept if any(not isinstance(part, ThinkingPart) for part in kept) else []


def _is_blank(part: ModelResponsePart) -> bool:
    if not isinstance(part, TextPart) or part.content.strip():
        return False
    return part.id is None and not part.provider_details


def _arguments(sent: object, *, is_cut: bool) -> Mapping[str, object] | str:
    """A call's arguments, or the text that is not those: the model is told so. Nothing at all
    stands for no arguments, unless the reply was cut there."""
    if not sent:
        return "" if is_cut else {}
    try:
        arguments = from_json(sent, allow_inf_nan=False) if isinstance(sent, str) else sent
        freeze(arguments)
    except (ValueError, NotStorable):  # no JSON, or too deep for the log
        return sent if isinstance(sent, str) else dumps(sent)
    return arguments if isinstance(arguments, dict) else str(sent)


def _plain_parts(message: Message) -> list[ModelResponsePart]:
    text = message.content
    parts: list[ModelResponsePart] = [TextPart(text)] if text.strip() else []
    return [*parts, *(ToolCallPart(each.tool, _sent(each), each.id) for each in message.tool_calls)]


def _sent(call: Call) -> dict[str, Any]:
    """A call's arguments as an object, which is all that a provider takes back."""
    if isinstance(call.arguments, str):
        return {INVALID_JSON_KEY: call.arguments}
    return dict(call.arguments)


def _form(response: ModelResponse) -> dict[str, Any]:
    """What is stored beside text and calls, as JSON values without what is not there."""
    plain = _is_plain(response.parts)
    whole = replace(response, parts=[]) if plain else response
    [form] = ModelMessagesTypeAdapter.dump_python([whole], mode="json")
    kept = _without(form, _LEFT_OUT)
    if kept.get("finish_reason") in _AS_EVER:
        del kept["finish_reason"]
    if details := _without(kept.pop("provider_details", {}), _LEFT_OUT_DETAILS):
        kept["provider_details"] = details
    if "@" in urlsplit(kept.get("provider_url", "")).netloc:
        del kept["provider_url"]  # a password would be in the log
    parts = _placed(kept.pop("parts"))
    return kept if plain else {**kept, "parts": parts}


def _placed(parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The parts, with the place in the message instead of what that says already. A call's own id
    tells later whether the message has another."""
    placed: list[dict[str, Any]] = []
    end = calls = 0
    joint, before = "", ""
    for part in parts:
        kind = part["part_kind"]
        form = _without(part, _SAID.get(kind, ()))
        if kind == "text":
            start = end if before == "text" else end + len(joint)
            end, joint = start + len(part["content"]), APART
            form["at"] = [start, end]
        elif kind == "tool-call":
            form["call"] = calls
            if "id" in form:
                form["call_id"] = part["tool_call_id"]
            calls += 1
        placed.append(form)
        before = kind
    return placed


def _filled(part: Mapping[str, Any], message: Message) -> dict[str, Any]:
    """A part with what the message says at its place."""
    form = dict(part)
    if form["part_kind"] == "text":
        start, end = form.pop("at")
        form["content"] = message.content[start:end]
    elif form["part_kind"] == "tool-call":
        call = message.tool_calls[form.pop("call")]
        if form.pop("call_id", call.id) != call.id:
            del form["id"]  # of an item that the provider has kept under the other id
        form |= {"tool_name": call.tool, "args": _sent(call), "tool_call_id": call.id}
    return form


def _is_plain(parts: Sequence[ModelResponsePart]) -> bool:
    """Whether these are at most one text and then calls, with nothing more to them."""
    text = [TextPart(each.content) for each in parts[:1] if isinstance(each, TextPart)]
    calls = [
        ToolCallPart(each.tool_name, cast("str", each.args), each.tool_call_id)
        for each in parts[len(text) :]
        if isinstance(each, ToolCallPart)
    ]
    return list(parts) == [*text, *calls]


def _without(form: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """What a form holds, except for those names and for what is not there."""
    return {name: value for name, value in form.items() if value is not None and name not in names}
