"""*Interrupt kernel* and cancellation, while a provider has said half a reply and says no more."""

from __future__ import annotations

import asyncio
import gc
import signal
from pathlib import Path

import pytest

from durable_nb import Message, SQLiteCheckpointer, call
from durable_nb.llm.stream import listening
from tests.llm.wire import PROVIDERS, lead, model_of, settle, until
from tests.support.children import Process
from tests.support.ledger import Ledger
from tests.support.provider_server import ProviderServer, Trouble, asks, says
from tests.support.providers import assert_all_valid

SCRIPT = [
    asks(call("note", name="a"), text="One moment, please.", thinking="A note."),
    says("All is noted now.", thinking="Done."),
]


@pytest.fixture(params=[1, 2], ids=["first reply", "after a tool"])
def stalling(request: pytest.FixtureRequest):
    """A server that says half of a reply, to the first request or to the second, and no more."""
    with ProviderServer(SCRIPT, troubles={request.param: Trouble("stall", after=4)}) as server:
        yield server
        assert server.refused == []


def made(name: str, url: str, folder: Path):
    """The agent of a process, and its store."""

    def note(name: str) -> str:
        Ledger(folder / "effects").add(name)
        return f"noted {name}"

    store = SQLiteCheckpointer(folder / "runs.sqlite3")
    return PROVIDERS[name].agent(url, store, note), store


def run_until_interrupted(name: str, url: str, folder: Path) -> None:
    """What a child does: it says on the ledger what its run came to."""
    lead(name, url)
    agent, store = made(name, url, folder)
    outcome = Ledger(folder / "outcome")
    try:
        outcome.add(agent.run("Note a", execution_id="r1").status)
    except KeyboardInterrupt:
        outcome.add(f"interrupted, {store.runs()[0].status}")


def finish(name: str, url: str, folder: Path, monkeypatch) -> None:
    """Another process goes on with the run, as if nothing had been."""
    lead(name, url, monkeypatch.setenv)
    agent, store = made(name, url, folder)
    until(lambda: store.runs()[0].status == "crashed")
    result = agent.resume("r1")
    assert (result.status, result.output) == ("completed", "All is noted now.")
    assert Ledger(folder / "effects").lines == ["a"]
    assert (result.usage.input_tokens, result.usage.output_tokens) == (20, 10)
    assert_all_valid(store)
    store.close()


def test_interrupt_leaves_a_stalled_stream_and_the_run_goes_on_elsewhere(
    name, stalling, tmp_path, monkeypatch
) -> None:
    child = Process(run_until_interrupted, name, stalling.url, tmp_path)
    assert stalling.stalled.wait(60)
    child.signal(signal.SIGINT)
    assert child.ended() == "ended 0"
    assert Ledger(tmp_path / "outcome").lines == ["interrupted, crashed"]
    finish(name, stalling.url, tmp_path, monkeypatch)


def test_sigterm_in_a_stalled_stream_is_a_crash(stalling, tmp_path, monkeypatch) -> None:
    name = "openai-chat"
    child = Process(run_until_interrupted, name, stalling.url, tmp_path)
    assert stalling.stalled.wait(60)
    child.signal(signal.SIGTERM)
    assert child.ended() == f"signal {signal.SIGTERM.value}"
    finish(name, stalling.url, tmp_path, monkeypatch)


def test_cancelled_between_two_chunks_the_connection_is_left_at_once(name, monkeypatch) -> None:
    """No garbage collector has to come by: until a client leaves, a provider goes on."""

    async def cancelled(model) -> None:
        with listening(lambda text: text and task.cancel()):
            task = asyncio.create_task(model.complete([Message("user", "Note a")], ()))
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(until, lambda: not server.connections)

    script, all_but_the_end = [says("one two three")], 99
    with ProviderServer(script, troubles={1: Trouble("stall", after=all_but_the_end)}) as server:
        settle(monkeypatch, server)
        gc.disable()
        try:
            asyncio.run(cancelled(model_of(name, server)))
        finally:
            gc.enable()


def test_cancelling_leaves_a_stalled_stream_and_its_connection(
    name, stalling, tmp_path, monkeypatch
) -> None:
    lead(name, stalling.url, monkeypatch.setenv)
    agent, store = made(name, stalling.url, tmp_path)

    async def cancelled() -> None:
        task = asyncio.create_task(agent.arun("Note a", execution_id="r1"))
        assert await asyncio.to_thread(stalling.stalled.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert stalling.left.wait(60)
    finish(name, stalling.url, tmp_path, monkeypatch)
    store.close()
