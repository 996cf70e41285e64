"""The local model answers, calls tools within their schemas, and says what it has no room for."""

from __future__ import annotations

import asyncio
import itertools
import urllib.error
import urllib.request
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel

from durable_nb import Agent, InvalidInput, MemoryCheckpointer, ModelFailed
from durable_nb.llm.local import LocalModel
from durable_nb.llm.local_server import CONTEXT, serving
from durable_nb.llm.stream import listening
from durable_nb.model.messages import Message
from durable_nb.runtime.tools import Tool
from tests.local.shop import PROMPT, make, silent
from tests.support.ledger import Ledger
from tests.support.providers import assert_all_valid


def bot(**options: object) -> Agent:
    return Agent("bot", "local", checkpointer=MemoryCheckpointer(), **options)


def test_it_answers_a_prompt_and_its_text_is_heard_as_it_comes() -> None:
    heard: list[str] = []
    with listening(heard.append):
        result = bot().run("What is the capital of France?")
    assert "Paris" in result.output
    assert heard[0] == ""
    assert heard[-1] == result.output
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(heard))
    assert len(set(heard)) > 3


def test_it_calls_a_tool_and_reports_what_that_said(tmp_path: Path, effects: Ledger) -> None:
    agent = make(tmp_path)
    result = agent.run(PROMPT, execution_id="r1")
    assert effects.lines == ["1042: 20"]
    assert [row.node_id for row in agent.checkpointer.list("r1")] == [
        "turn:0", "turn:0/tool:refund", "turn:1", "run_end",
    ]  # fmt: skip
    assert result.output
    assert_all_valid(agent.checkpointer)


def test_what_a_reply_used_is_counted_and_costs_nothing() -> None:
    used = bot().run("What is the capital of France?").usage
    assert used.input_tokens > 10
    assert 0 < used.output_tokens <= 256
    assert used.cost == 0.0


class Wall(BaseModel):
    width: int
    height: int


def paint(colour: Literal["red", "blue"], wall: Wall, coats: list[int]) -> str:
    """Paint the wall in a colour."""
    return f"{colour} {wall} {coats}"


@pytest.mark.parametrize("prompt", ["Paint the wall red.", "Paint a wall of 3 by 4 metres blue!"])
def test_the_arguments_of_a_call_obey_the_schema_of_its_tool(prompt: str) -> None:
    tool = Tool(paint)
    reply = asyncio.run(LocalModel().complete([Message("user", prompt)], [tool]))
    (call,) = reply.message.tool_calls
    assert call.tool == "paint"
    assert tool.validate(call.arguments)["colour"] in ("red", "blue")


def test_a_reply_is_no_longer_than_max_tokens() -> None:
    result = bot(model_settings={"max_tokens": 5}).run("Write a long story about the sea.")
    assert result.usage.output_tokens == 5
    assert result.output


def test_a_history_that_is_too_long_fails_the_run_and_says_what_to_set() -> None:
    with pytest.raises(ModelFailed, match=rf"{CONTEXT}; set max_context_tokens=\d+") as failed:
        bot().run("sea " * CONTEXT, execution_id="r1")
    assert failed.value.status == 400


def test_with_max_context_tokens_a_long_conversation_goes_on() -> None:
    agent = bot(max_context_tokens=300, model_settings={"max_tokens": 10})
    agent.run("Tell me about the sea. " * 20, execution_id="s")
    assert agent.resume("s", prompt="And the land? " * 20).status == "completed"
    assert agent.resume("s", prompt="What is the capital of France?").status == "completed"


def test_a_setting_that_it_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no setting 'top_p'; it has temperature, seed"):
        bot(model_settings={"top_p": 0.5})


def test_two_runs_at_once_share_one_server() -> None:
    async def both() -> list[str]:
        agent = bot(model_settings={"max_tokens": 20})
        prompts = ["What is the capital of France?", "Tell me a story."]
        results = await asyncio.gather(*(agent.arun(prompt) for prompt in prompts))
        return [result.output for result in results]

    before = serving()
    france, story = asyncio.run(both())
    assert "Paris" in france
    assert len(story) > len("Paris")
    assert serving() is before


def test_of_eight_threads_that_ask_first_one_begins_the_server() -> None:
    code = """
from concurrent.futures import ThreadPoolExecutor
from durable_nb.llm.local_server import serving
with ThreadPoolExecutor(8) as threads:
    served = {each.url for each in threads.map(lambda _: serving(), range(8))}
assert len(served) == 1
"""
    assert silent(code) == 0


def test_the_server_listens_on_loopback_and_answers_only_who_has_its_key() -> None:
    served = serving()
    assert served.url.startswith("http://127.0.0.1:")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{served.url}/v1/completions", b"{}")
    assert refused.value.code == 401
    refused.value.close()
