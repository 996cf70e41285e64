"""Servers that speak as OpenAI's Chat Completions do, each in its own way: their streams set right.

pydantic-ai reads such a stream as OpenAI means it. What is changed here is what others mean by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


def set_right(stream: Any) -> None:
    """Change how a stream is read that was just opened, if it is one of those."""
    if any(each.__name__ == "OpenAIStreamedResponse" for each in type(stream).__mro__):
        _count_once(stream)
        _tell_apart(stream)


def _count_once(stream: Any) -> None:
    """Let the newest usage count: OpenAI tells it once, at the end, and some servers tell the sum
    so far in every chunk, which would be added up."""
    told = dict(stream._model_settings or {})
    stream._model_settings = {**told, "openai_continuous_usage_stats": True}


def _tell_apart(stream: Any) -> None:
    """Let each call have an index of its own, by which the pieces of a call find each other."""
    calls, mapped = _Calls(), stream._map_tool_call_delta

    def told_apart(choice: Any) -> Any:
        for piece in choice.delta.tool_calls or ():
            if piece.index is not None:
                calls.place(piece)
        return mapped(choice)

    stream._map_tool_call_delta = told_apart


@dataclass(slots=True)
class _Call:
    index: int
    id: str | None
    name: str = ""


class _Calls:
    """The calls of one reply, while they come in pieces."""

    def __init__(self) -> None:
        self._begun: list[_Call] = []
        self._newest: dict[int, _Call] = {}  # by the server's index
        self._known: dict[tuple[int, str | None], _Call] = {}  # by that and the server's id

    def place(self, piece: Any) -> None:
        """Give a piece its call's index. One with a name and another id begins a call: Gemini's
        and older Ollama's calls all have the index 0. A name that is said again is no more of it.
        """
        key, name = (piece.index, piece.id or None), piece.function and piece.function.name
        call = self._known.get(key) or self._newest.get(piece.index)
        if call is None or (name and piece.id and call.id not in (None, piece.id)):
            call = _Call(len(self._begun), piece.id or None)
            self._begun.append(call)
        elif name and name == call.name:
            piece.function.name = name = None
        call.id, call.name = call.id or piece.id or None, call.name + (name or "")
        self._newest[piece.index] = self._known[piece.index, call.id] = call
        piece.index = call.index
