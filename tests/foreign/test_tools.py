"""pydantic-ai's tools and toolsets, run by an agent."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
from itertools import product
from typing import Any

import cloudpickle
import pytest
from pydantic import BaseModel
from pydantic_ai import (
    ApprovalRequired,
    BinaryContent,
    CallDeferred,
    ExternalToolset,
    FunctionToolset,
    ModelRetry,
    RunContext,
    Tool,
    ToolReturn,
)
from pydantic_ai.tools import ToolDefinition

from durable_nb import Agent, Checkpointer, InvalidTool, Resume, call, current, interrupt
from durable_nb.runtime.tools import Tool as OurTool
from tests.support.agents import bot, told
from tests.support.ledger import Ledger


class Order(BaseModel):
    number: str
    amount: int = 1


def double(number: int) -> int:
    """Twice a number.

    Args:
        number: What is doubled.
    """
    if number < 0:
        raise ModelRetry("give a number from 0 on")
    return 2 * number


async def later(number: int) -> int:
    """Twice a number, later."""
    await asyncio.sleep(0)
    return double(number)


def test_a_tool_is_shown_to_the_model_as_pydantic_ai_shows_it(store: Checkpointer):
    theirs = Tool(double)
    (ours,) = bot(store, ["-"], theirs).tools
    assert isinstance(ours, OurTool)
    assert (ours.name, ours.description) == ("double", "Twice a number.")
    assert ours.schema == theirs.function_schema.json_schema
    assert ours.schema["properties"]["number"]["description"] == "What is doubled."
    assert ours.source.startswith("def double(")


@pytest.mark.parametrize("function", [double, later])
def test_a_tool_runs_and_the_model_reads_what_it_gives_and_what_it_objects_to(
    store: Checkpointer, function: Any
):
    calls = [call(function.__name__, number=each) for each in (4, -1, "x")]
    result = bot(store, [*calls, "done"], Tool(function)).run("go")
    assert told(result) == [
        "8",
        "Error: ModelRetry: give a number from 0 on",
        f"Error: invalid arguments for {function.__name__}: number: Input should be a valid "
        "integer, unable to parse string as an integer",
    ]


def test_a_sync_tool_runs_in_the_callers_thread_where_it_can_ask_a_person(store: Checkpointer):
    def pay(amount: int) -> str:
        assert threading.current_thread() is threading.main_thread()
        return f"paid {amount}" if interrupt("boss", {"amount": amount}).approved else "not paid"

    agent = bot(store, [call("pay", amount=3), "done"], Tool(pay))
    assert agent.run("go", execution_id="r1").pending_interrupt["reason"] == "boss"
    assert told(agent.resume("r1", resume_value=Resume(True))) == ["paid 3"]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_tool_that_takes_a_context_is_told_its_call_and_run(store: Checkpointer, is_async: bool):
    def where(context: RunContext[None], /, *, word: str) -> list[Any]:
        call = current()
        assert (context.tool_call_id, context.run_id) == (call.call_id, call.execution_id)
        return [context.deps, context.tool_name, word]

    async def where_async(context: RunContext[None], word: str) -> list[Any]:
        return where(context, word=word)

    tool = Tool(where_async if is_async else where, name="where")
    result = bot(store, [call("where", word="here"), "done"], tool).run("go")
    assert told(result) == ['[null,"where","here"]']


def test_a_tool_may_take_positional_arguments_and_one_model(store: Checkpointer):
    def add(first: int, /, *more: int) -> int:
        return first + sum(more)

    def ship(order: Order) -> str:
        return f"{order.number} x {order.amount}"

    calls = [call("add", first=1, more=[2, 3]), call("ship", number="7")]
    result = bot(store, [calls, "done"], Tool(add), Tool(ship)).run("go")
    assert told(result) == ["6", "7 x 1"]


def test_of_a_tool_return_the_model_reads_the_value_and_of_a_picture_what_it_is(
    store: Checkpointer,
):
    def draw() -> ToolReturn:
        picture = BinaryContent(b"123", media_type="image/png")
        return ToolReturn(return_value={"picture": picture}, content="not shown")

    result = bot(store, [call("draw"), "done"], Tool(draw)).run("go")
    assert told(result) == ['{"picture":"[image/png, 3 bytes]"}']


def pay_out(effects: Ledger, *, asks: bool, is_async: bool = False) -> Tool[None]:
    """A tool that needs approval: always, or it says so itself for more than 100."""

    def pay(context: RunContext[None], amount: int) -> str:
        if not asks and amount > 100 and not context.tool_call_approved:
            raise ApprovalRequired
        effects.add(amount)
        return f"paid {amount}"

    async def pay_async(context: RunContext[None], amount: int) -> str:
        return pay(context, amount)

    return Tool(pay_async if is_async else pay, name="pay", requires_approval=asks)


@pytest.fixture(params=product(("asks itself", "has to be asked"), ("sync", "async")), ids=" ".join)
def payer(request: pytest.FixtureRequest, store: Checkpointer, effects: Ledger) -> Agent:
    """An agent that pays 200, whichever way its tool needs approval."""
    asks, how = request.param
    tool = pay_out(effects, asks=asks == "has to be asked", is_async=how == "async")
    return bot(store, [call("pay", amount=200), "done"], tool)


def test_a_tool_that_needs_approval_pauses_and_runs_once_it_has_it(payer: Agent, effects: Ledger):
    pending = payer.run("go", execution_id="r1").pending_interrupt
    assert (pending["reason"], pending["context"]) == ("approval", {"amount": 200})
    assert effects.lines == []
    assert told(payer.resume("r1", resume_value=Resume(True))) == ["paid 200"]
    assert effects.lines == ["200"]


def test_an_approved_tool_runs_with_what_the_person_edited(payer: Agent, effects: Ledger):
    payer.run("go", execution_id="r1")
    payer.resume("r1", resume_value=Resume(True, edited={"amount": 150}))
    assert effects.lines == ["150"]


def test_a_rejection_does_not_run_the_tool_and_reaches_the_model(payer: Agent, effects: Ledger):
    payer.run("go", execution_id="r1")
    no = Resume(False, reason="too much", by="alice")
    (text,) = told(payer.resume("r1", resume_value=no))
    assert "[rejected by alice: too much]" in text
    assert effects.lines == []


def test_a_small_amount_needs_no_approval_of_a_tool_that_asks_for_it_itself(
    store: Checkpointer, effects: Ledger
):
    tool = pay_out(effects, asks=False)
    assert told(bot(store, [call("pay", amount=9), "done"], tool).run("go")) == ["paid 9"]


def test_the_metadata_of_a_wish_for_approval_is_shown_with_the_arguments(store: Checkpointer):
    def wipe(disk: str) -> str:
        raise ApprovalRequired(metadata={"risk": "high"})

    agent = bot(store, [call("wipe", disk="a"), "done"], Tool(wipe))
    pending = agent.run("go", execution_id="r1").pending_interrupt
    assert pending["context"] == {"arguments": {"disk": "a"}, "metadata": {"risk": "high"}}
    (text,) = told(agent.resume("r1", resume_value=Resume(True)))
    assert "wipe asks again for the approval that it has" in text


def test_a_deferred_call_is_an_error_that_says_what_to_do(store: Checkpointer):
    def wait() -> str:
        raise CallDeferred

    (text,) = told(bot(store, [call("wait"), "done"], Tool(wait)).run("go"))
    assert "a run has no results from outside; let it call interrupt()" in text


def test_a_validator_and_a_timeout_of_a_tool_hold(store: Checkpointer):
    def even(context: RunContext[None], number: int) -> None:
        if number % 2:
            raise ModelRetry(f"{number} is odd")

    async def forever() -> str:
        await asyncio.Event().wait()
        return "never"

    tools = Tool(double, args_validator=even), Tool(forever, timeout=0.01)
    calls = [call("double", number=2), call("double", number=3), call("forever")]
    assert told(bot(store, [calls, "done"], *tools).run("go")) == [
        "4",
        "Error: ModelRetry: 3 is odd",
        "Error: ModelRetry: Timed out after 0.01 seconds.",
    ]


def test_a_prepared_tool_is_the_one_that_its_function_makes_or_refuses(store: Checkpointer):
    async def rename(context: RunContext[None], tool: ToolDefinition) -> ToolDefinition:
        tool.name = "twice"
        return tool

    async def omit(context: RunContext[None], tool: ToolDefinition) -> None:
        return None

    agent = bot(store, [call("twice", number=2), "done"], Tool(double, prepare=rename))
    assert told(agent.run("go")) == ["4"]
    with pytest.raises(InvalidTool, match=r"'double' cannot be a tool here: its prepare\(\)"):
        bot(store, ["-"], Tool(double, prepare=omit))


def test_a_toolset_stands_for_its_tools_also_under_other_names(store: Checkpointer):
    tools = FunctionToolset([double, Tool(later)])
    agent = bot(store, [call("my_later", number=2), "done"], tools, tools.prefixed("my"))
    assert [each.name for each in agent.tools] == ["double", "later", "my_double", "my_later"]
    assert told(agent.run("go")) == ["4"]
    assert "async def later" in agent.toolbox["my_later"].source


def test_a_name_that_no_model_could_call_is_refused_with_how_to_rename_it(store: Checkpointer):
    """As `files.read` of an MCP server."""
    toolset = FunctionToolset([Tool(lambda: "read", name="files.read")])
    named = {"files_read": "files.read"}
    with pytest.raises(InvalidTool, match=re.escape(f".renamed({named})")):
        bot(store, ["x"], toolset)
    agent = bot(store, [call("files_read"), "x"], toolset.renamed(named))
    assert told(agent.run("go")) == ["read"]


def test_a_toolset_can_ask_for_approval_of_some_calls(store: Checkpointer):
    tools = FunctionToolset([double]).approval_required(lambda _, tool, given: given["number"] > 9)
    agent = bot(store, [[call("double", number=1), call("double", number=10)], "done"], tools)
    pending = agent.run("go", execution_id="r1").pending_interrupt
    assert (pending["reason"], pending["context"]) == ("approval", {"number": 10})
    assert told(agent.resume("r1", resume_value=Resume(True))) == ["2", "20"]


def test_metadata_says_what_a_resume_does_with_a_call_in_doubt(store: Checkpointer):
    asked = Tool(double, metadata={"on_crash": "ask"})
    failed = FunctionToolset([later]).with_metadata(on_crash="fail")
    agent = bot(store, ["-"], asked, failed)
    assert [each.on_crash for each in agent.tools] == ["ask", "fail"]
    with pytest.raises(InvalidTool, match="on_crash is 'rerun', 'ask' or 'fail', not 'never'"):
        bot(store, ["-"], Tool(double, metadata={"on_crash": "never"}))


def test_what_no_model_could_call_is_refused(store: Checkpointer):
    with pytest.raises(InvalidTool, match="'two words' cannot be a tool's name"):
        bot(store, ["-"], Tool(double, name="two words"))
    with pytest.raises(InvalidTool, match="two tools are named 'double'"):
        bot(store, ["-"], Tool(double), double)
    external = ExternalToolset([ToolDefinition(name="far")])
    with pytest.raises(InvalidTool, match="'far' cannot be a tool here: its results come from"):
        bot(store, ["-"], external)


def test_an_agent_with_their_tools_travels_to_another_process(store: Checkpointer):
    tools = Tool(double), FunctionToolset([later]).prefixed("my")
    script = [[call("double", number=1), call("my_later", number=2)], "done"]
    agent = bot(store, script, *tools)
    again = cloudpickle.loads(cloudpickle.dumps(agent.tools))
    there = bot(store, script, *again)
    assert told(there.run("go")) == ["2", "4"]
    assert there.definition() == agent.definition()


def test_an_agent_without_them_loads_nothing_of_theirs():
    code = (
        "import sys; from durable_nb import Agent, ScriptedModel, MemoryCheckpointer\n"
        "def plain() -> int: return 1\n"
        "Agent('bot', ScriptedModel(['-']), [plain], checkpointer=MemoryCheckpointer()).run('go')\n"
        "print(sorted({'pydantic_ai', 'fastmcp', 'mcp', 'anyio'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
