"""Transcripts and replies between our messages and pydantic-ai's: said once, at the cost of what is new."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ThinkingPart, ToolCallPart

from durable_nb import Message
from durable_nb.llm import translate
from durable_nb.llm.kept import message_of, response_of
from durable_nb.llm.translate import Translator
from durable_nb.model.messages import Call
from durable_nb.model.transcript import Transcript


def test_text_and_arguments_are_stored_once():
    parts = [
        TextPart("Alpha"),
        TextPart(" beta", id="m1", provider_name="openai"),
        ThinkingPart("hm", signature="s", provider_name="openai"),
        TextPart("Gamma"),
        ToolCallPart("look", '{"q":"delta"}', "c1", id="f1", provider_name="openai"),
    ]
    message = message_of(ModelResponse(parts, provider_name="openai"))
    assert message.content == "Alpha beta\n\nGamma"
    stored = json.dumps(message.extra)
    for text in ("Alpha", "beta", "Gamma", "delta", "look"):
        assert text not in stored
    back = response_of(message)
    assert [getattr(each, "content", None) for each in back.parts] == [
        *["Alpha", " beta", "hm", "Gamma", None]
    ]
    assert replace(parts[-1], args={"q": "delta"}) == back.parts[-1]


def test_a_plain_reply_lists_no_parts():
    parts = [TextPart("Hello"), ToolCallPart("look", {"q": "a"}, "c1")]
    message = message_of(ModelResponse(parts, provider_name="openai"))
    assert message.extra == {"provider": {"provider_name": "openai"}}
    assert response_of(message).parts == parts


def test_an_address_with_a_password_is_not_stored():
    reply = ModelResponse([TextPart("x")], provider_url="http://me:hunter22@host/v1")
    assert "hunter22" not in json.dumps(message_of(reply).extra)


@pytest.mark.parametrize("nothing", ["", None, {}])
def test_a_call_whose_reply_was_cut_before_its_arguments_is_not_one_without_any(nothing):
    parts = [ToolCallPart("look", nothing, "c1"), ToolCallPart("look", nothing, "c2")]
    whole = message_of(ModelResponse(parts, finish_reason="tool_call"))
    cut = message_of(ModelResponse(parts, finish_reason="length"))
    assert [each.arguments for each in whole.tool_calls] == [{}, {}]
    assert [each.arguments for each in cut.tool_calls] == [{}, ""]


def test_arguments_that_are_too_deep_for_the_log_stay_text():
    deep = '{"a":' * 150 + "1" + "}" * 150
    [asked] = message_of(ModelResponse([ToolCallPart("look", deep, "c1")])).tool_calls
    assert asked.arguments == deep


def _history(turns: int) -> list[Message]:
    said = [Message("user", "go")]
    for at in range(turns):
        said.append(Message("assistant", "", (Call("look", {"q": str(at)}, f"id-{at}"),)))
        said.append(Message("tool", f"seen {at}", tool_call_id=f"id-{at}"))
    return said


def test_of_a_run_that_grows_only_what_is_new_is_translated(monkeypatch):
    translated = 0

    def counted(message: Message) -> ModelResponse:
        nonlocal translated
        translated += 1
        return response_of(message)

    monkeypatch.setattr(translate, "response_of", counted)
    translator, transcript = Translator(), Transcript([Message("user", "go")])
    for at in range(50):
        translator.translated(transcript)
        transcript = transcript.plus(_history(at + 1)[-2:])
    assert translated == 49


def test_forks_trims_and_lists_are_each_translated_for_themselves():
    base = _history(4)
    translator = Translator()
    forks: list[Sequence[Message]] = [
        Transcript(base),
        Transcript(base[:5]).plus([Message("user", "another way")]),
        [base[0], *base[5:]],
        base[:3],
        Transcript(base).plus([Message("user", "more")]),
        [Message("user", "go"), *base[1:]],
        base,
    ]
    for messages in [*forks, *reversed(forks)]:
        assert _shape(translator.translated(messages)) == _shape(Translator().translated(messages))
    assert translator.translated([]) == []


def test_a_translation_that_is_on_its_way_is_not_changed():
    translator, base = Translator(), _history(1)
    before = translator.translated(base)
    shape = _shape(before)
    after = translator.translated([*base, Message("user", "more")])
    assert _shape(before) == shape != _shape(after)


def test_many_runs_on_many_threads_do_not_mix():
    translator = Translator()
    wrong: list[int] = []

    def run(number: int) -> None:
        said = [Message("user", f"run {number}")]
        for at in range(40):
            if _shape(translator.translated(said)) != _shape(Translator().translated(said)):
                wrong.append(number)
            said += [
                Message("assistant", "", (Call("look", {}, f"{number}-{at}"),)),
                Message("tool", f"{number}", tool_call_id=f"{number}-{at}"),
            ]

    threads = [threading.Thread(target=run, args=[number]) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def _shape(messages: Sequence[ModelRequest | ModelResponse]) -> list[Any]:
    """What is said in the messages, without the time of it."""
    return [
        [
            (type(part).__name__, *(getattr(part, name, None) for name in _SHOWN))
            for part in each.parts
        ]
        for each in messages
    ]


_SHOWN = ("content", "tool_name", "args", "tool_call_id")
