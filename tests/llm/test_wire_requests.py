"""What is sent of a transcript: the same from the log as from the run that wrote it, and valid."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelResponse

from durable_nb import MemoryCheckpointer, Message, SQLiteCheckpointer, TurnLimit, call, tool
from durable_nb.core.state import fold
from durable_nb.llm.asking import Asker, offered
from durable_nb.llm.kept import message_of
from durable_nb.llm.named import named
from durable_nb.llm.translate import Translator
from durable_nb.model.messages import Call
from durable_nb.runtime import engine
from tests.llm.wire import PROVIDERS, SEALING, ask, model_of, sent, settle
from tests.support.provider_server import ProviderServer, asks, says

SCRIPT = [
    asks(call("look", q="a"), thinking="Let me think."),
    asks(call("look", q="b"), call("look", q="c"), text="Two more.", thinking="And again."),
    says("Done.", thinking="At last."),
]


@tool
def look(q: str) -> str:
    """Look something up."""
    return f"seen {q}"


def _settings(name: str) -> dict[str, Any]:
    return {"thinking": True} if name in SEALING else {}


def test_a_run_that_was_stored_is_sent_as_one_that_was_not(name, monkeypatch, tmp_path):
    """Each request of a run is the same bytes from the live objects of pydantic-ai, from the run
    that goes on, and from its log in a new process."""
    with ProviderServer(SCRIPT) as server:
        settle(monkeypatch, server)
        store = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
        model = model_of(name, server, **_settings(name))
        agent = PROVIDERS[name].agent(
            server.url, store, look, model_settings=_settings(name), system_prompt="Be brief."
        )
        assert agent.run("go", execution_id="r").output == "Done."
        driven = sent(server)[:]
        transcript = fold(store.load("r").rows).transcript
        asked = [at for at, each in enumerate(transcript) if each.role == "assistant"]
        for at in asked:
            ask(model, list(transcript[:at]), [look])
        again = sent(server)[len(driven) :]
        assert server.refused == []
        store.close()
    assert [json.dumps(body) for body in again] == [json.dumps(body) for body in driven]


@pytest.mark.parametrize("name", SEALING)
def test_live_replies_and_stored_ones_make_the_same_request(name, monkeypatch):
    """pydantic-ai's own objects are sent beside those that were made from the messages."""

    async def both(server: ProviderServer) -> None:
        asker = Asker(named(PROVIDERS[name].llm), _settings(name))
        await asker.open()
        history: list[Message] = [Message("user", "go")]
        live: list[Any] = [*Translator().translated(history)]
        for _ in range(2):
            reply = await _streamed(asker, live)
            history.append(_message(json.loads(json.dumps(_plain(message_of(reply))))))
            history += [
                Message("tool", "seen", tool_call_id=each.id) for each in history[-1].tool_calls
            ]
            live += [reply, Translator().translated(history)[-1]]
            await asker.attempt(history, [look])
            await _streamed(asker, live)
            ours, theirs = sent(server)[-2:]
            assert json.dumps(ours) == json.dumps(theirs)
        await asker.close()

    with ProviderServer(SCRIPT) as server:
        settle(monkeypatch, server)
        engine.call(both(server), engine.Stop())
        assert server.refused == []


async def _streamed(asker: Asker, messages: list[Any]) -> ModelResponse:
    """What the asker's model replies to pydantic-ai's own objects."""
    async with model_request_stream(
        asker._model,
        messages,
        model_settings=asker._settings,
        model_request_parameters=offered([look]),
    ) as stream:
        async for _event in stream:
            pass
        return stream.get()


def _plain(message: Message) -> dict[str, Any]:
    calls = [[each.tool, each.arguments, each.id] for each in message.tool_calls]
    return {"content": message.content, "calls": calls, "extra": dict(message.extra)}


def _message(form: dict[str, Any]) -> Message:
    calls = tuple(Call(*each) for each in form["calls"])
    return Message("assistant", form["content"], calls, extra=form["extra"])


@pytest.mark.parametrize(("name", "other"), list(permutations(PROVIDERS, 2)))
def test_a_run_goes_on_with_a_model_of_another_provider(name, other, monkeypatch):
    """It gets the thinking as text, since it has not sealed it."""
    heard = [replace(said, thinking="") for said in SCRIPT]
    store = MemoryCheckpointer()
    with ProviderServer(SCRIPT) as first, ProviderServer(heard) as second:
        settle(monkeypatch, first)
        agent = PROVIDERS[name].agent(
            first.url, store, look, model_settings=_settings(name), max_turns=2
        )
        with pytest.raises(TurnLimit):
            agent.run("go", execution_id="r")
        settle(monkeypatch, second)
        elsewhere = PROVIDERS[other].agent(second.url, store, look, model_settings=_settings(other))
        assert elsewhere.resume("r").output == "Done."
        assert [*first.refused, *second.refused] == []


def test_users_in_a_row_silent_replies_and_empty_results_are_sent(name, monkeypatch):
    history = [
        Message("system", "Be brief."),
        Message("user", "go"),
        Message("user", "and hurry"),
        Message("assistant", "", (Call("look", {"q": "a"}, "id-1"),)),
        Message("tool", "", tool_call_id="id-1"),
        Message("user", "well?"),
    ]
    with ProviderServer([says("x"), says("Yes.")]) as server:
        settle(monkeypatch, server)
        assert ask(model_of(name, server), history, [look]).message.content == "Yes."
        assert server.refused == []


def test_arguments_that_are_no_object_go_back_as_an_object(name, monkeypatch):
    history = [
        Message("user", "go"),
        Message("assistant", "", (Call("look", '{"q": ', "id-1"),)),
        Message("tool", "Error: not a JSON object", tool_call_id="id-1"),
    ]
    with ProviderServer([says("x"), says("Again.")]) as server:
        settle(monkeypatch, server)
        assert ask(model_of(name, server), history, [look]).message.content == "Again."
        assert server.refused == []


def test_the_id_that_the_run_gave_a_call_wins(monkeypatch):
    """The provider's item is then not named, since it is known under the id it was made with."""
    with ProviderServer([asks(call("look", q="a"), thinking="hm"), says("x")]) as server:
        settle(monkeypatch, server)
        model = model_of("openai", server, thinking=True)
        message = ask(model, [Message("user", "go")], [look]).message
        [asked] = message.tool_calls
        renamed = replace(message, tool_calls=(replace(asked, id="call_7_0"),))
        ask(
            model,
            [Message("user", "go"), renamed, Message("tool", "s", tool_call_id="call_7_0")],
            [look],
        )
        assert server.refused == []
        [item] = [each for each in sent(server)[-1]["input"] if each.get("type") == "function_call"]
    assert item["call_id"] == "call_7_0"
    assert "id" not in item


@pytest.mark.parametrize("said", ["caf\udce9.txt", "a\ud83d\ude00b", "a\0b"])
def test_text_that_no_client_could_encode_is_sent_all_the_same(name, monkeypatch, said):
    """As is what a model of another kind asked for in arguments that JSON does not know."""
    asked = Call("look", {"q": said, "how much": [float("nan"), float("inf")]}, "id-1")
    history = [
        Message("system", said),
        Message("user", said),
        Message("assistant", said, (asked,)),
        Message("tool", said, tool_call_id="id-1"),
    ]
    with ProviderServer([says("x"), says("Yes.")]) as server:
        settle(monkeypatch, server)
        assert ask(model_of(name, server), history, [look]).message.content == "Yes."
        assert server.refused == []
        json.dumps(sent(server), allow_nan=False, ensure_ascii=False).encode()
