"""`python -m tests.bench.models [TURNS]`: what our adapter adds to a model that is asked over HTTP.

The server is a process of its own and answers at once, or after 50 ms as a real one might. Its own
time is from the last byte of a request to the last byte of the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from durable_nb import Agent, MemoryCheckpointer, Message, SQLiteCheckpointer, tool
from durable_nb.llm.adopt import as_model
from durable_nb.model.messages import Call
from durable_nb.model.transcript import Transcript
from durable_nb.runtime import engine
from tests.bench.costs import machine

REPLY = 0.05  # seconds
ROUNDS = 25
RESULT = "r" * 200
NAME = "openai-chat:gpt-4o-mini"


@tool
def look(q: str) -> str:
    """Look something up."""
    return RESULT


def chunk(data: object) -> bytes:
    """A frame of a stream."""
    text = f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(text), text)


def answer(number: int, *, is_last: bool) -> bytes:
    """A reply that asks for the tool, or the one that ends the run."""
    asked = {"name": "look", "arguments": json.dumps({"q": "x" * 20})}
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": asked}
    delta = {"content": "done"} if is_last else {"tool_calls": [call]}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-mini"}
    said = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}
    over = {"index": 0, "delta": {}, "finish_reason": "stop" if is_last else "tool_calls"}
    frames = [{**base, "choices": [said]}, {**base, "choices": [over]}]
    frames.append({**base, "choices": [], "usage": usage})
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    return head + b"".join(map(chunk, [*frames, "[DONE]"])) + b"0\r\n\r\n"


async def serve(delay: float, turns: int) -> None:
    """Answer, and say at the end of standard input how long that took in all."""
    took = 0.0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal took
        with contextlib.suppress(
            asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError
        ):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = re.search(rb"content-length: (\d+)", head.lower())
                body = await reader.readexactly(int(size[1] if size else 0))
                started = time.perf_counter()
                await asyncio.sleep(delay)
                number = body.count(b'"tool_call_id"')
                writer.write(answer(number, is_last=number >= turns))
                await writer.drain()
                took += time.perf_counter() - started

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    print(took, flush=True)


class Server:
    """The server for the time of a `with` block; then `took` is its own time."""

    def __init__(self, delay: float, turns: int) -> None:
        self._words = [sys.executable, "-m", "tests.bench.models", "serve", str(delay), str(turns)]
        self.took = 0.0

    def __enter__(self) -> Server:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._words, stdin=pipe, stdout=pipe, text=True)
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{self._process.stdout.readline().strip()}/v1"
        os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"] = self.url, "none"
        return self

    def __exit__(self, *_: object) -> None:
        self.took = float(self._process.communicate()[0])


def history(turns: int) -> list[Message]:
    said = [Message("system", "be good"), Message("user", "go")]
    for at in range(turns):
        said.append(Message("assistant", "", (Call("look", {"q": "x" * 20}, f"id{at}"),)))
        said.append(Message("tool", RESULT, tool_call_id=f"id{at}"))
    return said


async def timed(ask: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await ask()
    return 1e3 * (time.perf_counter() - started)


async def directly(turns: int) -> tuple[Callable[[], Awaitable[Any]], Callable[[], Awaitable[Any]]]:
    """The same question to pydantic-ai and to OpenAI's client, with histories made beforehand."""
    from openai import AsyncOpenAI
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.models.openai import OpenAIChatModel

    from durable_nb.llm.asking import offered
    from durable_nb.llm.translate import Translator

    model, client = OpenAIChatModel("gpt-4o-mini"), AsyncOpenAI()
    messages, parameters = Translator().translated(history(turns)), offered([look])
    wire: Any = await model._map_messages(messages, parameters)
    schema = {"name": "look", "description": look.description, "parameters": look.schema}

    async def theirs() -> None:
        async with model_request_stream(
            model, messages, model_request_parameters=parameters
        ) as stream:
            async for _ in stream:
                pass

    async def bare() -> None:
        stream: Any = await client.chat.completions.create(
            model="gpt-4o-mini",
            messages=wire,
            tools=[{"type": "function", "function": schema}],  # type: ignore[list-item]
            stream=True,
            stream_options={"include_usage": True},
        )
        async for _ in stream:
            pass

    return theirs, bare


async def a_turn(turns: int) -> str:
    """One question with a history of so many turns, in all three ways."""
    theirs, bare = await directly(turns)
    model: Any = as_model(NAME)
    before, after = Transcript(history(turns - 1)), Transcript(history(turns))

    async def ours() -> None:
        await model.complete(after, [look])

    await model.complete(before, [look])
    ways = (ours, theirs, bare)
    took = [[await timed(way) for way in ways] for _ in range(ROUNDS)]
    mine, pydantic, openai = (median(each) for each in zip(*took, strict=True))
    return (
        f"a turn after {turns:3}: {mine:5.1f} ms; pydantic-ai called directly {pydantic:5.1f}, "
        f"OpenAI's client {openai:5.1f}: {mine - openai:+.1f} ms a turn"
    )


def a_run(turns: int, *, is_stored: bool) -> str:
    """A whole run over the time that its server took."""
    with Server(REPLY, turns) as server, tempfile.TemporaryDirectory() as folder:
        store = SQLiteCheckpointer(Path(folder, "runs")) if is_stored else MemoryCheckpointer()
        agent = Agent("bench", NAME, [look], checkpointer=store, max_turns=turns + 1)
        started = time.perf_counter()
        agent.run("go", execution_id="run")
        took = time.perf_counter() - started
        store.close()
    kind = "SQLite" if is_stored else "memory"
    return (
        f"a run of {turns} turns ({kind}): {took:.2f} s; its server {server.took:.2f} s, "
        f"× {took / server.took:.3f}"
    )


async def _asked(times: int) -> None:
    _, bare = await directly(0)
    for _ in range(times):
        await bare()


def a_floor(turns: int) -> str:
    """What OpenAI's own client takes for as many questions without a history: no run is faster."""
    with Server(REPLY, turns) as server:
        started = time.perf_counter()
        engine.call(_asked(turns), engine.Stop())
        took = time.perf_counter() - started
    return f"{turns} questions of OpenAI's client without a history: × {took / server.took:.3f}"


def lines(turns: int) -> Iterator[str]:
    for length in (1, 50, turns):
        with Server(0.0, 10**6):
            yield engine.call(a_turn(length), engine.Stop())
    yield a_floor(turns)
    for is_stored in (False, True):
        yield a_run(turns, is_stored=is_stored)


def main() -> None:
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(float(sys.argv[2]), int(sys.argv[3])))
        return
    print(machine())
    for line in lines(int((sys.argv[1:] or ["200"])[0])):
        print(line, flush=True)


if __name__ == "__main__":
    main()
