"""The same run on other systems of this kind, where they are installed: `requirements.txt` here.

A turn is a model's reply that asks for one tool, and a tool whose result is 1 KB. Each system keeps
what it keeps by default, in a SQLite file, and drives a scripted model in this process.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULT = "x" * 1000


def measured(turns: int) -> Iterator[str]:
    """A line for each system that is installed here."""
    for package, run in (("fastaiagent", fastaiagent), ("langgraph", langgraph), ("dbos", dbos)):
        try:
            name = f"{package} {version(package)}"
        except PackageNotFoundError:
            continue
        with tempfile.TemporaryDirectory() as folder:
            seconds, done = run(turns, Path(folder))
            stored = sum(each.stat().st_size for each in Path(folder).rglob("*") if each.is_file())
        yield f"{name}: {done} turns in {seconds:.2f} s, {stored / 1e6:.2f} MB"


def fastaiagent(turns: int, folder: Path) -> tuple[float, int]:
    """It ends a run after at most 100 model calls."""
    from fastaiagent import Agent, AgentConfig, FunctionTool
    from fastaiagent.checkpointers.sqlite import SQLiteCheckpointer
    from fastaiagent.llm.client import LLMResponse
    from fastaiagent.llm.message import ToolCall
    from fastaiagent.testing import FunctionModel

    turns = min(turns, 99)
    asked = 0

    def reply(*_: Any, **__: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked > turns:
            return LLMResponse(content="done")
        return LLMResponse(tool_calls=[ToolCall(id=f"c{asked}", name="work", arguments={})])

    tool = FunctionTool(name="work", fn=lambda: RESULT)
    agent = Agent(
        name="bench",
        llm=FunctionModel(reply),
        tools=[tool],
        config=AgentConfig(max_iterations=100),
        checkpointer=SQLiteCheckpointer(str(folder / "runs.sqlite3")),
    )
    return _timed(lambda: agent.run("go", execution_id="r1")), turns


def langgraph(turns: int, folder: Path) -> tuple[float, int]:
    """Messages in a graph of two nodes, a checkpoint after each."""
    from langchain_core.messages import AIMessage, ToolMessage
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, MessagesState, StateGraph

    def model(state: Any) -> Any:
        asked = sum(isinstance(message, AIMessage) for message in state["messages"])
        calls = [{"name": "work", "args": {}, "id": f"c{asked}"}] if asked < turns else []
        return {"messages": [AIMessage("" if calls else "done", tool_calls=calls)]}

    def tool(state: Any) -> Any:
        call = state["messages"][-1].tool_calls[0]
        return {"messages": [ToolMessage(RESULT, tool_call_id=call["id"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tool", tool)
    graph.add_edge(START, "model")
    graph.add_conditional_edges(
        "model", lambda state: "tool" if state["messages"][-1].tool_calls else END
    )
    graph.add_edge("tool", "model")
    with SqliteSaver.from_conn_string(str(folder / "runs.sqlite3")) as saver:
        app = graph.compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "r1"}, "recursion_limit": 3 * turns + 10}
        return _timed(lambda: app.invoke({"messages": [("user", "go")]}, config)), turns


def dbos(turns: int, folder: Path) -> tuple[float, int]:
    """A workflow whose model calls and tools are steps."""
    from dbos import DBOS

    DBOS(
        config={
            "name": "bench",
            "system_database_url": f"sqlite:///{folder / 'runs.sqlite3'}",
            "run_admin_server": False,
            "log_level": "ERROR",
        }
    )

    @DBOS.step()
    def model(turn: int) -> str:
        return "work" if turn < turns else "done"

    @DBOS.step()
    def tool() -> str:
        return RESULT

    @DBOS.workflow()
    def run() -> str:
        turn = 0
        while model(turn) != "done":
            tool()
            turn += 1
        return "done"

    DBOS.launch()
    try:
        return _timed(run), turns
    finally:
        DBOS.destroy()


def _timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started
