"""What `at` and `when` mean, where no run can come to, and what a run that lived says."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from durable_nb import (
    Agent,
    ExecutionExists,
    InvalidInput,
    MemoryCheckpointer,
    ScriptedModel,
    call,
    idempotent,
    interrupt,
    lab,
)
from durable_nb.lab.points import Point, point
from tests.lab import shop


@pytest.mark.parametrize(
    ("at", "meant"),
    [
        ("turn:0", Point("turn:0", "after")),
        ("turn:12/tool:re-fund_2", Point("turn:12/tool:re-fund_2", "after", "re-fund_2")),
        ("run_end", Point("run_end", "after")),
    ],
)
def test_a_node_names_a_point(at: str, meant: Point) -> None:
    assert point(at, "after") == meant


@pytest.mark.parametrize(
    "at", ["", "turn", "turn:", "turn:x", "turn:0/tool:", "turn:0 ", "tool:refund", None, 3]
)
def test_what_names_no_node_is_refused(at: object) -> None:
    with pytest.raises(InvalidInput, match="names no node"):
        point(at, "after")


def test_other_moments_are_refused_and_so_is_the_middle_of_an_end() -> None:
    with pytest.raises(InvalidInput, match="moments are"):
        point("turn:0", "later")
    with pytest.raises(InvalidInput, match="row without a step"):
        point("run_end", "during")


def one_call(folder: Path, tool: Callable[..., Any]) -> Agent:
    script = ScriptedModel([call("work"), "Done."])
    return Agent("worker", script, [tool], checkpointer=shop.store_in(folder))


def python(notes: Path) -> Callable[..., Any]:
    def work() -> None:
        shop.note(notes, "first")
        shop.note(notes, "second")

    return work


def decorated(notes: Path) -> Callable[..., Any]:
    return idempotent(python(notes))


def method(notes: Path) -> Callable[..., Any]:
    def work() -> None:
        notes.write_text("first\n")
        shop.note(notes, "second")

    return work


def builtin(notes: Path) -> Callable[..., Any]:
    def work() -> None:
        len("first")
        shop.note(notes, "second")

    return work


def coroutine(notes: Path) -> Callable[..., Any]:
    async def later() -> None:
        await asyncio.sleep(0)
        shop.note(notes, "first")

    async def work() -> None:
        await later()
        shop.note(notes, "second")

    return work


def silent(notes: Path) -> Callable[..., Any]:
    def work() -> str:
        return "nothing to call"

    return work


def raising(notes: Path) -> Callable[..., Any]:
    def work() -> None:
        raise_at_once()

    return work


def raise_at_once() -> None:
    raise ValueError("no")


@pytest.mark.parametrize(
    ("kind", "done"),
    [
        (python, ["first"]),
        (decorated, ["first"]),
        (method, ["first"]),
        (builtin, []),
        (coroutine, ["first"]),
        (silent, []),
        (raising, []),
    ],
)
def test_during_is_when_the_first_call_of_the_body_is_over(
    tmp_path: Path, kind: Callable[[Path], Any], done: list[str]
) -> None:
    notes = tmp_path / "notes"
    crash = lab.crash(one_call(tmp_path, kind(notes)), "Work", at="turn:0/tool:work", when="during")
    assert shop.noted(notes) == done
    assert crash.rows[-1].node_id == "turn:0/tool:work"


@pytest.mark.parametrize(("kind", "done"), [(coroutine, ["first", "second"]), (raising, [])])
def test_after_is_when_the_body_is_over_also_by_an_error_or_on_a_loop(
    tmp_path: Path, kind: Callable[[Path], Any], done: list[str]
) -> None:
    notes = tmp_path / "notes"
    crash = lab.crash(one_call(tmp_path, kind(notes)), "Work", at="turn:0/tool:work", when="after")
    assert shop.noted(notes) == done
    assert crash.rows[-1].node_id == "turn:0/tool:work"


def test_an_async_model_is_killed_while_its_reply_is_awaited(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    async def ask() -> None:
        shop.note(notes, "asked")
        await asyncio.sleep(0)

    class Remote:
        async def complete(self, messages: object, tools: object) -> None:
            await ask()
            shop.note(notes, "reply")

    agent = Agent("remote", Remote(), checkpointer=shop.store_in(tmp_path))
    crash = lab.crash(agent, "Go", at="turn:0", when="during")
    assert shop.noted(notes) == ["asked"]
    assert [row.node_id for row in crash.rows] == ["turn:0"]


def test_a_node_that_the_run_never_reaches_is_an_error_that_says_what_it_reached(
    tmp_path: Path,
) -> None:
    with pytest.raises(InvalidInput) as refused:
        lab.crash(shop.bot(tmp_path), "Refund", at="turn:5", when="before", execution_id="r")
    assert "it is completed, and came to turn:0, turn:0/tool:refund, turn:1, run_end" in str(
        refused.value
    )


def test_a_tool_that_pauses_is_not_over(tmp_path: Path) -> None:
    def work() -> None:
        interrupt("manager_approval")

    with pytest.raises(InvalidInput, match="it is paused, and came to turn:0, turn:0/tool:work"):
        lab.crash(one_call(tmp_path, work), "Work", at="turn:0/tool:work", when="after")


def test_a_run_that_fails_before_the_point_says_of_what(tmp_path: Path) -> None:
    agent = Agent("ill", ScriptedModel([OSError("503")]), checkpointer=shop.store_in(tmp_path))
    with pytest.raises(InvalidInput, match=r"it is failed.*OSError: 503"):
        lab.crash(agent, "Go", at="turn:1", when="before")


def test_what_run_refuses_crash_refuses_too(tmp_path: Path) -> None:
    agent = shop.bot(tmp_path)
    agent.run("Refund", execution_id="r")
    with pytest.raises(ExecutionExists, match="'r' has rows already"):
        lab.crash(agent, "Refund", at="turn:0", when="before", execution_id="r")
    with pytest.raises(InvalidInput, match="a prompt is text"):
        lab.crash(agent, " ", at="turn:0", when="before")
    assert len(shop.store_in(tmp_path).runs()) == 1


def test_an_agent_that_cannot_go_to_a_child_is_refused_and_nothing_runs(tmp_path: Path) -> None:
    lock = threading.Lock()

    def work() -> None:
        lock.acquire()

    with pytest.raises(InvalidInput, match="cannot be handed to another process"):
        lab.crash(one_call(tmp_path, work), "Work", at="turn:0", when="before")
    with pytest.raises(InvalidInput, match="has no tool 'pay'"):
        lab.crash(shop.bot(tmp_path), "Refund", at="turn:0/tool:pay", when="before")
    in_memory = Agent("a", ScriptedModel(["x"]), checkpointer=MemoryCheckpointer())
    with pytest.raises(InvalidInput, match="MemoryCheckpointer cannot be handed"):
        lab.crash(in_memory, "Go", at="turn:0", when="before")
    assert list(shop.store_in(tmp_path).runs()) == []
