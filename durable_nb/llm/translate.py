"""Transcripts as pydantic-ai's messages. Of a run that grows, only what is new is translated.

What was sent last is found again by the identity of its messages: the transcripts of one run share
them. A history that went another way is translated anew.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from operator import is_
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    SystemPromptPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from durable_nb.llm.kept import response_of
from durable_nb.model.messages import Message

EMPTY = "(empty)"  # a result of nothing in words: Anthropic refuses an empty text
_HALVES = re.compile(r"[\ud800-\udfff]")
_KEPT = 16  # runs whose translation is kept


class Result(ToolReturnPart[str]):
    """A tool's result that is text and no more. pydantic-ai looks into each for files otherwise,
    which is half of what a request's messages cost it."""

    def model_response_str(self, *, wrap_if_error: bool = True) -> str:
        return str(self.content)

    def model_response_str_and_user_content(
        self, *, wrap_if_error: bool = True
    ) -> tuple[str, list[UserContent]]:
        return str(self.content), []


class Translator:
    """Translates for one model, on any thread."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, _Run] = OrderedDict()  # by the identity of the first message
        self._lock = threading.Lock()

    def translated(self, messages: Sequence[Message]) -> list[ModelMessage]:
        """The transcript as pydantic-ai wants it: requests and responses in turn."""
        wanted = list(messages)
        if not wanted:
            return []
        with self._lock:
            run = self._kept.pop(id(wanted[0]), None)
            if run is None or not run.is_prefix_of(wanted):
                run = _Run()
            run.extend(wanted)
            self._kept[id(wanted[0])] = run
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            return run.translation.copy()


class _Run:
    """What was sent of one run, and its translation."""

    def __init__(self) -> None:
        self._messages: list[Message] = []  # held, so that an identity stays theirs
        self._tools: dict[str, str] = {}  # by the id of the call
        self.translation: list[ModelMessage] = []

    def is_prefix_of(self, wanted: list[Message]) -> bool:
        return len(self._messages) <= len(wanted) and all(map(is_, self._messages, wanted))

    def extend(self, wanted: list[Message]) -> None:
        for message in map(_encodable, wanted[len(self._messages) :]):
            if message.role == "assistant":
                self._tools.update((call.id, call.tool) for call in message.tool_calls)
                self.translation.append(response_of(message))
            else:
                self._ask(self._part(message))
        self._messages = wanted

    def _ask(self, part: ModelRequestPart) -> None:
        """Add a part to the request at the end. The one there may be on its way on another thread,
        so it is replaced."""
        if self.translation and isinstance(last := self.translation[-1], ModelRequest):
            self.translation[-1] = ModelRequest([*last.parts, part])
        else:
            self.translation.append(ModelRequest([part]))

    def _part(self, message: Message) -> ModelRequestPart:
        if message.role == "system":
            return SystemPromptPart(message.content)
        if message.role == "user":
            return UserPromptPart(message.content)
        call_id = message.tool_call_id or ""
        result = message.content if message.content.strip() else EMPTY
        return Result(self._tools.get(call_id, "tool"), result, call_id)


def _encodable(message: Message) -> Message:
    """The message as JSON in UTF-8 can say it. Half a surrogate pair (the name of a file that is
    not UTF-8) or a NaN would keep a client from sending this request and every later one."""
    calls = tuple(
        replace(call, arguments=_sayable(call.arguments), id=_sayable(call.id))
        for call in message.tool_calls
    )
    return replace(
        message,
        content=_sayable(message.content),
        tool_calls=calls,
        tool_call_id=_sayable(message.tool_call_id),
        extra=_sayable(message.extra),
    )


def _sayable(value: Any) -> Any:
    """The value with as many characters: places in a text stay."""
    match value:
        case str():
            return _HALVES.sub("\ufffd", value)
        case float() if not isfinite(value):
            return str(value)
        case list():
            return [_sayable(each) for each in value]
        case Mapping():
            return {_sayable(name): _sayable(each) for name, each in value.items()}
    return value
