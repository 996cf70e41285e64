"""Real clients ask a real server: what comes back, what is recorded, what is tried again."""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from collections.abc import Sequence
from email.utils import formatdate
from itertools import pairwise
from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

from durable_nb import InvalidInput, Message, ModelFailed, call, tool
from durable_nb.llm import asking, retry
from durable_nb.llm.adopt import as_model
from durable_nb.llm.connect import connected
from durable_nb.llm.spent import price_of
from durable_nb.llm.stream import listening
from durable_nb.model.messages import Call, Reply, Usage
from durable_nb.runtime import engine
from tests.llm.wire import KEYS, PROVIDERS, ask, leave, model_of, sent, settle
from tests.support.provider_server import ProviderServer, Trouble, asks, says

START = [Message("system", "Be brief."), Message("user", "go")]


@tool
def look(q: str) -> str:
    """Look something up."""
    return f"seen {q}"


def test_a_reply_comes_with_its_text_its_cost_and_its_model(name, monkeypatch):
    said = says("It is done, all of it.", usage=Usage(1000, 20, 900))
    with ProviderServer([said]) as server:
        settle(monkeypatch, server)
        reply = ask(model_of(name, server), START, [look])
    assert reply.message.content == "It is done, all of it."
    assert reply.usage.input_tokens == 1000
    assert reply.usage.output_tokens == 20
    assert reply.model == "scripted-1"
    assert reply.retries == ()


def test_calls_come_with_their_arguments_and_the_servers_ids(name, monkeypatch):
    asked = asks(call("look", q="a"), call("look", q="b"), text="Two.")
    with ProviderServer([asked]) as server:
        settle(monkeypatch, server)
        message = ask(model_of(name, server), START, [look]).message
    assert [(each.tool, each.arguments) for each in message.tool_calls] == [
        ("look", {"q": "a"}),
        ("look", {"q": "b"}),
    ]
    assert [each.id for each in message.tool_calls] == ["call_0_0", "call_0_1"]
    assert message.content == "Two."


def test_arguments_that_are_no_object_stay_text(monkeypatch):
    with ProviderServer([asks(Call("look", '{"q": '), Call("look", "[1]"))]) as server:
        settle(monkeypatch, server)
        message = ask(model_of("openai-chat", server), START, [look]).message
    assert [each.arguments for each in message.tool_calls] == ['{"q": ', "[1]"]


def test_the_text_is_told_while_it_comes(name, monkeypatch):
    heard: list[str] = []
    with ProviderServer([says("one two three")]) as server, listening(heard.append):
        settle(monkeypatch, server)
        ask(model_of(name, server), START)
    assert heard[0] == ""
    assert heard[-1] == "one two three"
    assert len(heard) > 2
    assert all(late.startswith(soon) for soon, late in pairwise(heard))


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (Trouble("status", 429, "0"), "429 Too Many Requests"),
        (Trouble("status", 408), "408 Request Timeout"),
        (Trouble("status", 500), "500 Internal Server Error"),
        (Trouble("status", 503), "503 Service Unavailable"),
        (Trouble("status", 529), "529 Overloaded"),
        (Trouble("reset"), "connection lost"),
        (Trouble("cut"), "connection lost"),
        (Trouble("cut", after=0), "connection lost"),
        (Trouble("ended"), "cut before its end"),
        (Trouble("event"), "overloaded"),
        (Trouble("garbage"), ""),
        (Trouble("html"), ""),
    ],
)
def test_what_goes_by_is_tried_again_and_recorded(name, monkeypatch, trouble, words):
    heard: list[str] = []
    with ProviderServer([says("one two three four")], troubles={1: trouble}) as server:
        settle(monkeypatch, server)
        with listening(heard.append):
            reply = ask(model_of(name, server), START)
        assert len(server.requests) == 2
    assert reply.message.content == "one two three four"
    [line] = reply.retries
    assert words in line
    assert line.endswith("; waited 0.0 s")
    assert heard.count("") == 2  # what had come of the first is forgotten
    assert line.replace("waited", "waiting") in heard


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_does_not_go_by_is_refused_at_once(name, monkeypatch, status):
    with ProviderServer([says("x")], troubles={1: Trouble("status", status)}) as server:
        settle(monkeypatch, server)
        model = model_of(name, server)
        with pytest.raises(ModelFailed, match=str(status)) as failed:
            ask(model, START)
        assert len(server.requests) == 1
    assert failed.value.status == status
    assert model.name in str(failed.value)
    assert "try again" in str(failed.value)  # what the provider said
    assert "resume the run" in str(failed.value)


@pytest.mark.parametrize("at", ["openai", "openai-chat", "google"])
def test_a_redirect_is_not_followed_with_the_key(at, monkeypatch):
    with ProviderServer([says("x")], troubles={1: Trouble("status", 307)}) as server:
        settle(monkeypatch, server)
        with pytest.raises(ModelFailed, match=r"307 .*give the address") as failed:
            ask(model_of(at, server), START)
        assert len(server.requests) == 1
    assert failed.value.status == 307


def test_after_the_last_retry_the_model_has_failed(name, monkeypatch):
    with ProviderServer([says("x")], troubles=lambda _: Trouble("status", 503)) as server:
        settle(monkeypatch, server)
        with pytest.raises(ModelFailed, match="no reply in 3 attempts: 503") as failed:
            ask(model_of(name, server, max_retries=2), START)
        assert len(server.requests) == 3
    assert failed.value.status == 503


def test_a_server_that_is_not_there_is_asked_again(monkeypatch):
    with ProviderServer([]) as server:
        settle(monkeypatch, server)
        model = model_of("openai-chat", server, max_retries=1)
    with pytest.raises(ModelFailed, match="2 attempts: connection refused"):
        ask(model, START)


@pytest.mark.parametrize("after", ["1", "0.7", "a date"])
def test_what_the_server_asks_to_wait_is_waited(monkeypatch, after):
    monkeypatch.setattr(retry, "LONGEST_ASKED", 0.8)
    if after == "a date":
        after = formatdate(time.time() + 600, usegmt=True)
    with ProviderServer([says("x")], troubles={1: Trouble("status", 429, after)}) as server:
        settle(monkeypatch, server)
        [line] = ask(model_of("openai-chat", server), START).retries
    assert float(line.split("waited ")[1].removesuffix(" s")) > 0.2


@pytest.mark.parametrize("after", ["-1", "nan", "inf", "soon", ""])
def test_a_wait_that_cannot_be_meant_is_not_waited(monkeypatch, after):
    with ProviderServer([says("x")], troubles={1: Trouble("status", 429, after)}) as server:
        settle(monkeypatch, server)
        [line] = ask(model_of("openai-chat", server), START).retries
    assert line.endswith("waited 0.0 s")


@pytest.mark.parametrize("setting", ["timeout", "first_event_timeout", "request_timeout"])
def test_silence_times_out_and_is_tried_again(name, monkeypatch, setting):
    with ProviderServer([says("one two")], troubles={1: Trouble("stall", after=0)}) as server:
        settle(monkeypatch, server)
        reply = ask(model_of(name, server, **{setting: 0.3}), START)
    [line] = reply.retries
    assert "timed out" in line
    assert reply.message.content == "one two"


def test_a_wait_before_a_retry_ends_when_the_run_is_cancelled(monkeypatch):
    with ProviderServer([says("x")], troubles=lambda _: Trouble("status", 429, "60")) as server:
        settle(monkeypatch, server)
        model = model_of("openai-chat", server)

        async def cancelled() -> None:
            task = asyncio.create_task(model.complete(START, []))
            while not server.requests:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            await leave(task)
            assert task.cancelled()

        engine.call(cancelled(), engine.Stop())


def test_no_key_is_in_what_a_failure_says(name, monkeypatch):
    with ProviderServer([says("x")], troubles={1: Trouble("echo")}) as server:
        settle(monkeypatch, server)
        with pytest.raises(ModelFailed) as failed:
            ask(model_of(name, server), START)
    told = "".join(traceback.format_exception(failed.value)) + repr(failed.value)
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None
    assert f"[{PROVIDERS[name].key}]" in told
    for key in KEYS.values():
        assert key not in told


def test_no_part_of_a_key_is_left_where_what_a_failure_says_is_cut(monkeypatch):
    class Wordy(Exception):
        pass

    def refuses(messages: Any, info: object) -> Any:
        raise Wordy(messages[-1].parts[-1].content)

    monkeypatch.setenv("OPENAI_API_KEY", KEYS["OPENAI_API_KEY"])
    model = as_model(FunctionModel(refuses))
    for at in range(250, 380, 3):
        with pytest.raises(ModelFailed) as failed:
            ask(model, [Message("user", "x" * at + KEYS["OPENAI_API_KEY"])])
        assert "sk-" not in str(failed.value)


def test_a_missing_key_names_its_variable(monkeypatch):
    for name, variable in (
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("openai-chat:gpt-5", "OPENAI_API_KEY"),
        ("anthropic:claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("google:gemini-2.5-flash", "GOOGLE_API_KEY"),
        ("ollama:qwen3", "OLLAMA_BASE_URL"),
    ):
        for each in ("OPENAI_BASE_URL", "GEMINI_API_KEY", variable):
            monkeypatch.delenv(each, raising=False)
        with pytest.raises(InvalidInput, match=variable):
            ask(as_model(name), START)


def test_openais_key_is_sent_to_no_other_host(monkeypatch):
    with ProviderServer([says("x")]) as server:
        settle(monkeypatch, server)
        monkeypatch.delenv("OPENAI_COMPATIBLE_API_KEY")
        ask(model_of("openai-compatible", server), START)
        monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", "of-the-compatible-77aa")
        ask(model_of("openai-compatible", server), START)
        without, with_key = (
            {name.lower(): value for name, value in seen.headers.items()}["authorization"]
            for seen in server.requests
        )
    assert KEYS["OPENAI_API_KEY"] not in without
    assert with_key == "Bearer of-the-compatible-77aa"


def test_settings_reach_the_server(monkeypatch):
    with ProviderServer([says("x")]) as server:
        settle(monkeypatch, server)
        ask(model_of("openai-compatible", server, temperature=0.25, seed=7), START)
        [body] = sent(server)
    assert (body["temperature"], body["seed"]) == (0.25, 7)


def test_a_known_price_makes_a_cost_and_an_unknown_none(monkeypatch):
    usage = RequestUsage(input_tokens=1_000_000)
    known = ModelResponse([], usage=usage, model_name="gpt-4o-mini", provider_name="openai")
    assert price_of(known) == pytest.approx(0.15)
    for provider, name in (("openai", "no-such-model"), ("openai-compatible", "gpt-4o-mini")):
        other = ModelResponse([], usage=usage, model_name=name, provider_name=provider)
        assert price_of(other) is None


def test_runs_on_several_threads_and_loops_share_a_model(name, monkeypatch):
    with ProviderServer([says("hello")]) as server:
        settle(monkeypatch, server)
        model = model_of(name, server)
        replies: list[str] = []

        def asked(loop: asyncio.AbstractEventLoop) -> None:
            done = asyncio.run_coroutine_threadsafe(model.complete(START, []), loop)
            replies.append(done.result().message.content)

        _on_loops(asked, 3)
    assert replies == ["hello"] * 9


@pytest.mark.parametrize(
    ("reason", "words"),
    [("length", "raise max_tokens"), ("content_filter", "filter"), ("error", "in 2 attempts")],
)
def test_a_reply_that_was_stopped_before_it_said_anything_is_no_answer(reason, words):
    model = as_model(FunctionModel(_ends_with(reason, "")), {"max_retries": 1})
    with pytest.raises(ModelFailed, match=words):
        ask(model, START)


def test_why_a_reply_ends_early_is_stored_with_what_it_says():
    reply = ask(as_model(FunctionModel(_ends_with("length", "half a"))), START)
    assert reply.message.content == "half a"
    assert reply.message.extra["provider"]["finish_reason"] == "length"


def test_a_refusal_in_words_is_the_answer():
    refuses = _ends_with("content_filter", "", provider_details={"refusal": "I can't."})
    assert ask(as_model(FunctionModel(refuses)), START).message.content == "I can't."


def _ends_with(reason: Any, text: str, **more: Any) -> Any:
    def replies(messages: object, info: object) -> ModelResponse:
        return ModelResponse([TextPart(text)] if text else [], finish_reason=reason, **more)

    return replies


def test_runs_that_begin_at_once_share_one_client(monkeypatch):
    made: list[Any] = []

    def counted(source: Any) -> Any:
        made.append(source)
        return connected(source)

    monkeypatch.setattr(asking, "connected", counted)
    with ProviderServer([says("hello")]) as server:
        settle(monkeypatch, server)
        model = model_of("openai", server)

        async def all_at_once() -> list[Reply]:
            return await asyncio.gather(*(model.complete(START, []) for _ in range(8)))

        replies = engine.call(all_at_once(), engine.Stop())
    assert [reply.message.content for reply in replies] == ["hello"] * 8
    assert len(made) == 1


def _on_loops(work: Any, times: int) -> None:
    """Do it so often on each of three loops of the engine at once."""
    loops: Sequence[asyncio.AbstractEventLoop] = [engine._loop(level) for level in range(3)]
    threads = [threading.Thread(target=work, args=[loop]) for _ in range(times) for loop in loops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_an_address_that_is_none_is_refused_without_its_password(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEYS["OPENAI_API_KEY"])
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:hunter22@[::1/v1")
    with pytest.raises(InvalidInput, match="llm='openai:gpt-5'") as refused:
        ask(as_model("openai:gpt-5"), START)
    assert "hunter22" not in str(refused.value)
    assert refused.value.__context__ is None
