"""What a very small model is asked, so that it does as well as it can. Text in, text out.

It was trained to chat and never saw a tool, so that one question is made three: which tool the
message asks for, if any; what its arguments are; or else what to say. Each has a short prompt of
its own, and a grammar for the first two, so that only a tool's name or arguments in its schema can
come. What the grammar cannot express of a schema is left to the words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from durable_nb.llm.protocol import ToolSpec
from durable_nb.model.messages import Call, Message

_NONE = "none"
_LONG, _SHORT = 400, 200  # characters that are shown of a message, and of a description or result
_ITEMS = 8  # of a list whose length the schema leaves open
_GREETINGS = ("Hello!", "Thank you, bye.", "Tell me a story.")
_SPACING = {"whitespace_flexible": False, "key_separator": ": ", "item_separator": ", "}
_SYSTEM = "You are a helpful assistant."


def choice_prompt(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> str:
    """The question which tool is asked for: examples made of the tools themselves, each described
    by its own words, then the message."""
    done = f"{_described(tools[0])} [{tools[0].name}: done]"
    examples = [
        *((greeting, _NONE) for greeting in _GREETINGS),
        *((_described(tool), tool.name) for tool in tools),
        (done, _NONE),
    ]
    lines = [f"{said} => {name}" for said, name in examples]
    return "\n".join([*lines, f"{question(messages)} =>"])


def choice_grammar(tools: Sequence[ToolSpec]) -> str:
    """One of the tools' names, or that it is none."""
    names = [*(tool.name for tool in tools), _NONE]
    return _grammar(" | ".join(json.dumps(f" {name}") for name in names))


def arguments_prompt(messages: Sequence[Message], tool: ToolSpec) -> list[dict[str, str]]:
    """The question what to call that tool with: its signature, then the message."""
    wanted = f"{tool.name}({_signature(tool.schema)}): {_described(tool)}"
    return [
        _said("system", f"Write the arguments of the tool {tool.name} as JSON.\n{wanted}"),
        _said("user", question(messages)),
    ]


def arguments_grammar(tool: ToolSpec) -> str:
    """Arguments in the tool's schema, or narrower: a small model goes on with keys that nobody
    named and with lists that nobody ended."""
    return _grammar(f"%json {json.dumps({'x-guidance': _SPACING, **_narrow(tool.schema)})}")


def answer_prompt(messages: Sequence[Message]) -> list[dict[str, str]]:
    """The transcript as a chat of a system, a user and an assistant, the only roles it knows."""
    told = [_chat(message) for message in messages]
    if told and told[0]["role"] == "system":
        return told
    return [_said("system", _SYSTEM), *told]


def question(messages: Sequence[Message]) -> str:
    """The newest prompt on one line, with what tools have returned since."""
    asked, results = _since_prompt(messages)
    names = {call.id: call.tool for message in results for call in message.tool_calls}
    returned = (
        f" [{names.get(each.tool_call_id or '', 'tool')}: {_line(each.content, _SHORT)}]"
        for each in results
        if each.role == "tool"
    )
    return _line(asked, _LONG) + "".join(returned)


def was_called(messages: Sequence[Message], call: Call) -> bool:
    """Whether the newest prompt has led to this very call already."""
    _, results = _since_prompt(messages)
    return any(
        each.tool == call.tool and each.arguments == call.arguments
        for message in results
        for each in message.tool_calls
    )


def _since_prompt(messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
    """The newest prompt's text, and what came after it."""
    told = list(messages)
    for at in range(len(told) - 1, -1, -1):
        if told[at].role == "user":
            return told[at].content, told[at + 1 :]
    return "", told


def _narrow(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_narrow(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    bounds: dict[str, Any] = {"additionalProperties": False} if "properties" in schema else {}
    if schema.get("type") == "array":
        bounds = {"maxItems": _ITEMS}
    return {**bounds, **{name: _narrow(each) for name, each in schema.items()}}


def _chat(message: Message) -> dict[str, str]:
    if message.role == "tool":
        return _said("user", f"The result: {message.content}")
    calls = (f"I use {call.tool}." for call in message.tool_calls)
    return _said(message.role, "\n".join(filter(None, [message.content, *calls])))


def _said(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _grammar(start: str) -> str:
    return f"%llguidance {{}}\nstart: {start}"


def _described(tool: ToolSpec) -> str:
    return _line(tool.description or tool.name.replace("_", " "), _SHORT)


def _signature(schema: Mapping[str, Any]) -> str:
    fields = schema.get("properties", {}).items()
    return ", ".join(f"{name}: {_kind(field)}" for name, field in fields)


def _kind(field: Mapping[str, Any]) -> str:
    if "enum" in field:
        return " or ".join(map(json.dumps, field["enum"]))
    return str(field.get("type", "object"))


def _line(text: str, length: int) -> str:
    return " ".join(text[: 4 * length].split())[:length]
