"""A provider's reply as a `Message`, and back: the same request is made of it in any process.

Text and calls stand in the message alone. `extra` has what else the provider needs back: thinking
with its signatures, ids of items, whose they are. The parts of a plain reply, its text and then its
calls, are not listed there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
)
from pydantic_core import from_json

from durable_nb.model.messages import Call, Message

KEY = "provider"
_LEFT_OUT = ("usage", "timestamp", "kind", "state", "model_name", "finish_reason")
_LEFT_OUT_DETAILS = ("timestamp", "finish_reason")  # both are in the log, or of no use later


def message_of(response: ModelResponse) -> Message:
    """The reply as it is stored."""
    text = ""
    bare: list[ModelResponsePart] = []
    calls: list[Call] = []
    was_text = False
    for part in response.parts:
        if isinstance(part, TextPart):
            text += "\n\n" if text and not was_text else ""
            bare.append(replace(part, content=f"{len(text)}:{len(text) + len(part.content)}"))
            text += part.content
        elif isinstance(part, ToolCallPart):
            bare.append(replace(part, args=None, tool_call_id=str(len(calls))))
            calls.append(Call(part.tool_name, _arguments(part.args), part.tool_call_id))
        else:
            bare.append(part)
        was_text = isinstance(part, TextPart)
    form = _form(replace(response, parts=bare), plain=_is_plain(response.parts))
    return Message("assistant", text, tuple(calls), extra={KEY: form})


def response_of(message: Message) -> ModelResponse:
    """The reply as pydantic-ai has it. A call's id is the message's, which may have been changed."""
    form = message.extra.get(KEY)
    if not isinstance(form, Mapping):
        return ModelResponse(_plain_parts(message))
    if "parts" not in form:
        return ModelResponse(_plain_parts(message), **form)
    whole = {**form, "kind": "response"}
    response = ModelMessagesTypeAdapter.validate_python([whole])[0]
    assert isinstance(response, ModelResponse)
    response.parts = [_filled(part, message) for part in response.parts]
    return response


def _plain_parts(message: Message) -> list[ModelResponsePart]:
    parts: list[ModelResponsePart] = [TextPart(message.content)] if message.content else []
    parts += [_call_part(ToolCallPart(call.tool), call) for call in message.tool_calls]
    return parts


def _filled(part: ModelResponsePart, message: Message) -> ModelResponsePart:
    """A part with the text or the call that the message holds for it."""
    if isinstance(part, TextPart):
        start, end = map(int, part.content.split(":"))
        return replace(part, content=message.content[start:end])
    if isinstance(part, ToolCallPart):
        return _call_part(part, message.tool_calls[int(part.tool_call_id)])
    return part


def _call_part(part: ToolCallPart, call: Call) -> ToolCallPart:
    arguments = call.arguments if isinstance(call.arguments, str) else dict(call.arguments)
    return replace(part, args=arguments, tool_call_id=call.id)


def _arguments(sent: object) -> Mapping[str, object] | str:
    """A call's arguments, or the text that is not those: the model is told so."""
    if not isinstance(sent, str):
        return dict(sent) if isinstance(sent, Mapping) else {}
    try:
        arguments = from_json(sent) if sent else {}
    except ValueError:
        return sent
    return arguments if isinstance(arguments, dict) else sent


def _is_plain(parts: Any) -> bool:
    """Whether these are at most one text and then calls, with nothing more to them."""
    seen_call = seen_text = False
    for part in parts:
        match part:
            case TextPart() if not seen_text and not seen_call and part == TextPart(part.content):
                seen_text = True
            case ToolCallPart() if part == ToolCallPart(
                part.tool_name, part.args, part.tool_call_id
            ):
                seen_call = True
            case _:
                return False
    return True


def _form(response: ModelResponse, *, plain: bool) -> dict[str, Any]:
    """What is stored beside text and calls, as JSON values without what is not there."""
    if plain:
        response = replace(response, parts=[])
    [form] = ModelMessagesTypeAdapter.dump_python([response], mode="json")
    kept = _without(form, _LEFT_OUT)
    if details := _without(kept.pop("provider_details", {}), _LEFT_OUT_DETAILS):
        kept["provider_details"] = details
    parts = [_without(part, ()) for part in kept.pop("parts")]
    return kept if plain else {**kept, "parts": parts}


def _without(form: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """What a form holds, except for those names and for what is not there."""
    return {name: value for name, value in form.items() if value is not None and name not in names}
