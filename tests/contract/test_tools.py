"""Tools: what a model may call, with which arguments, and what it reads of what came of it."""

from __future__ import annotations

import asyncio
import json
import math
import pickle
import threading
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from durable_nb import (
    Agent,
    Call,
    Checkpointer,
    InvalidInput,
    InvalidTool,
    MemoryCheckpointer,
    Message,
    Reply,
    ScriptedModel,
    Tool,
    UnknownExecution,
    call,
    tool,
)
from tests.support.agents import bot, nodes, told


class Speed(Enum):
    FAST = "fast"


class Address(BaseModel):
    street: str
    number: int = 1


@dataclass
class Point:
    x: int
    y: list[float]


class Word(str):
    __slots__ = ()


class Named(str, Enum):  # noqa: UP042
    ONE = "one"


def returns(value: Any) -> Tool:
    return tool(name="work")(lambda: value)


# --- arguments ------------------------------------------------------------------------------------


def everything(
    text: str,
    count: int,
    *,
    when: date,
    speed: Speed = Speed.FAST,
    address: Address | None = None,
    point: Point | None = None,
    kind: Literal["a", "b"] = "a",
    tags: tuple[str, ...] = (),
    limit: Annotated[int, Field(ge=0, description="how many")] = 5,
    anything: Any = None,
) -> str:
    """Take all sorts of arguments."""
    values = [text, count, when, speed, address, point, kind, tags, limit]
    return " ".join(type(value).__name__ for value in values)


def test_arguments_arrive_as_their_annotations_say(store) -> None:
    arguments = {
        "text": "x",
        "count": 3,
        "when": "2026-01-02",
        "speed": "fast",
        "address": {"street": "x"},
        "point": {"x": 1, "y": [1, 2.5]},
        "tags": ["a", "b"],
    }
    result = bot(store, [call("everything", **arguments), "done"], everything).run("go")
    assert told(result) == ["str int date Speed Address Point str tuple int"]


def test_a_tool_is_told_to_the_model_by_its_signature_and_docstring() -> None:
    made = Tool(everything)
    assert (made.name, made.description) == ("everything", "Take all sorts of arguments.")
    schema = made.schema
    assert schema["type"] == "object"
    assert set(schema["required"]) == {"text", "count", "when"}
    assert schema["additionalProperties"] is False
    assert schema["properties"]["limit"] == {
        "default": 5,
        "description": "how many",
        "minimum": 0,
        "title": "Limit",
        "type": "integer",
    }
    assert json.loads(json.dumps(schema)) == schema


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "text: Field required; count: Field required"),
        (
            {"text": "x", "count": "many"},
            "count: Input should be a valid integer, unable to parse string as an integer",
        ),
        ({"text": None, "count": 1}, "text: Input should be a valid string"),
        ({"text": "x", "count": 1, "extra": 1}, "extra: Extra inputs are not permitted"),
        ({"text": "x", "count": 1, "point": {"x": 1}}, "point.y: Field required"),
    ],
)
def test_arguments_that_do_not_fit_are_an_error_the_model_reads(
    store, effects, arguments, why
) -> None:
    def work(text: str, count: int, point: Point | None = None) -> str:
        effects.add("work")
        return "ok"

    result = bot(store, [call("work", **arguments), "done"], work).run("go", execution_id="r1")
    assert told(result) == [f"Error: invalid arguments for work: {why}"]
    assert effects.lines == []
    assert nodes(store, "r1") == [
        ("turn:0", "completed"),
        ("turn:1", "completed"),
        ("run_end", "completed"),
    ]


def said(*calls: Call) -> Reply:
    return Reply(Message("assistant", "", calls))


@pytest.mark.parametrize("arguments", ["", "{", "[1]", "null", "order=1042", '"text"'])
def test_arguments_that_are_no_json_object_are_an_error_the_model_reads(store, arguments) -> None:
    script = [said(Call("work", arguments, "c1")), "done"]
    result = bot(store, script, returns("ok")).run("go", execution_id="r1")
    (text,) = told(result)
    assert text.startswith("Error: the arguments of work are not a JSON object")
    assert result.status == "completed"


@pytest.mark.parametrize("arguments", [[1], None, 5])
def test_arguments_of_another_kind_are_an_error_the_model_reads(store, arguments) -> None:
    script = [said(Call("work", arguments, "c1")), "done"]
    assert told(bot(store, script, returns("ok")).run("go"))[0].startswith("Error: the arguments")


def test_an_unknown_tool_is_an_error_that_names_those_there_are(store) -> None:
    script = [[call("refund", order="1"), call("work"), call("")], "done"]
    result = bot(store, script, returns("ok")).run("go", execution_id="r1")
    assert told(result) == [
        "Error: there is no tool 'refund'; there are work",
        "Error: there is no tool ''; there are work",
        "ok",
    ]
    assert [row.node_id for row in store.list("r1")][:2] == ["turn:0", "turn:0/tool:work"]


def test_an_agent_without_tools_says_so(store) -> None:
    (text,) = told(bot(store, [call("work"), "done"]).run("go"))
    assert text.startswith("Error: there is no tool 'work'")


def test_each_call_of_a_reply_gets_one_result_whatever_its_id(store, elsewhere, effects) -> None:
    def note(name: str) -> str:
        effects.add(name)
        return name

    calls = [
        Call("note", {"name": "a"}, "x"),
        Call("note", {"name": "b"}, "x"),
        Call("note", {"name": "c"}, ""),
        Call("note", {"name": "d"}, ""),
        Call("nothing", {}, "x"),
        Call("note", {"name": "e"}, "y"),
    ]
    result = bot(store, [said(*calls), "done"], note).run("go", execution_id="r1")
    assert effects.lines == ["a", "c", "d", "e"]
    asked = next(message for message in result.messages if message.tool_calls)
    ids = [each.id for each in asked.tool_calls]
    results = {m.tool_call_id: m.content for m in result.messages if m.role == "tool"}
    assert len(set(ids)) == 6
    assert (ids[0], ids[5]) == ("x", "y")
    assert [results[id_].split(":")[0] for id_ in ids] == ["a", "Error", "c", "d", "Error", "e"]
    assert elsewhere.load("r1").rows[-1].entry.status == "completed"


def test_an_id_of_an_earlier_turn_is_made_its_own(store, effects) -> None:
    def note(name: str) -> str:
        effects.add(name)
        return name

    script = [said(Call("note", {"name": name}, "call_0")) for name in "abc"]
    result = bot(store, [*script, "done"], note).run("go", execution_id="r1")
    assert effects.lines == ["a", "b", "c"]
    assert told(result) == ["a", "b", "c"]
    ids = [each.id for message in result.messages for each in message.tool_calls]
    assert len(set(ids)) == 3


# --- results --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ("a\0b 🎉", "a\0b 🎉"),
        ("\ud800", "\ud800"),
        (None, "null"),
        (True, "true"),
        (7, "7"),
        ([1, "x"], '[1,"x"]'),
        ({"a": (1, 2)}, '{"a":[1,2]}'),
        (Point(1, [2.0]), '{"x":1,"y":[2.0]}'),
        (Address(street="x"), '{"street":"x","number":1}'),
        (date(2026, 1, 2), '"2026-01-02"'),
        (Speed.FAST, '"fast"'),
        (Word("word"), "word"),
        (Named.ONE, "one"),
        (Path("/tmp/x"), '"/tmp/x"'),
    ],
    ids=repr,
)
def test_a_result_is_read_as_text(store, elsewhere, value, text: str) -> None:
    result = bot(store, [call("work"), "done"], returns(value)).run("go", execution_id="r1")
    assert told(result) == [text]
    assert type(told(result)[0]) is str
    assert elsewhere.load("r1").rows[2].entry.messages[0].content == text


def cyclic() -> list[object]:
    loop: list[object] = []
    loop.append(loop)
    return loop


def deep() -> object:
    value: object = 1
    for _ in range(5000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {"a": [object()]},
        lambda: 1,
        cyclic(),
        deep(),
        threading.Lock(),
        b"\xff\xfe",
        ["\ud800"],
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_result_without_a_text_form_is_an_error_the_model_reads(store, value) -> None:
    result = bot(store, [call("work"), "done"], returns(value)).run("go", execution_id="r1")
    assert result.status == "completed"
    (text,) = told(result)
    assert text.startswith("Error: ")
    assert type(value).__name__ in text


@pytest.mark.parametrize("value", [math.nan, math.inf, [math.nan]], ids=repr)
def test_numbers_that_json_lacks_do_not_end_a_run(store, value) -> None:
    assert bot(store, [call("work"), "done"], returns(value)).run("go").status == "completed"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("bad order"), "Error: ValueError: bad order"),
        (KeyError("x"), "Error: KeyError: 'x'"),
        (StopIteration(5), "Error: StopIteration: 5"),
        (RuntimeError("a\0b \ud800"), "Error: RuntimeError: a\0b \ud800"),
        (
            ExceptionGroup("two", [ValueError("a"), TypeError("b")]),
            "Error: ExceptionGroup: two (2 sub-exceptions)",
        ),
        (AssertionError(), "Error: AssertionError: "),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_tool_that_raises_is_a_result_the_model_reads(store, error, text: str, kind: str) -> None:
    def work() -> None:
        raise error

    async def work_async() -> None:
        raise error

    body = tool(name="work")(work if kind == "sync" else work_async)
    result = bot(store, [call("work"), "done"], body).run("go", execution_id="r1")
    assert result.output == "done"
    if kind == "async" and isinstance(error, StopIteration):
        text = "Error: RuntimeError: coroutine raised StopIteration"
    assert told(result) == [text]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_what_stops_the_process_leaves_the_run_as_a_crash_does(
    store, elsewhere, effects, stop: type[BaseException], kind: str
) -> None:
    def work() -> str:
        effects.add("work")
        if len(effects.lines) == 1:
            raise stop
        return "ok"

    async def work_async() -> str:
        await asyncio.sleep(0)
        return work()

    body = tool(name="work")(work if kind == "sync" else work_async)
    with pytest.raises(stop):
        bot(store, [call("work"), "done"], body).run("go", execution_id="r1")
    assert [run.status for run in elsewhere.runs()] == ["crashed"]
    assert len(elsewhere.load("r1").rows) == 2
    result = bot(elsewhere, [call("work"), "done"], body).resume("r1")
    assert (result.status, effects.lines) == ("completed", ["work"] * 2)


# --- what can be a tool ---------------------------------------------------------------------------


class Desk:
    def method(self, order: str) -> str:
        """By hand."""
        return order

    @staticmethod
    def static(order: str) -> str:
        return order

    @classmethod
    def clsmethod(cls, order: str) -> str:
        return order

    def __call__(self, order: str) -> str:
        return order


def test_functions_methods_and_lambdas_are_tools(store) -> None:
    tools = [Desk().method, Desk.static, Desk.clsmethod, tool(name="short")(lambda order: order)]
    names = ["method", "static", "clsmethod", "short"]
    script = [[call(name, order=name) for name in names], "done"]
    assert told(bot(store, script, *tools).run("go")) == names


def test_a_tool_takes_a_name_and_a_description() -> None:
    @tool(name="give_back", description="Give money back.")
    def refund(order: str) -> str:
        """Not this."""
        return order

    @tool
    def plain(order: str) -> str:
        """This."""
        return order

    assert (refund.name, refund.description) == ("give_back", "Give money back.")
    assert (plain.name, plain.description) == ("plain", "This.")
    assert refund("x") == plain(order="x") == "x"
    assert repr(refund) == "Tool('give_back')"
    assert "def plain" in plain.source


def test_a_function_without_a_source_is_a_tool() -> None:
    scope: dict[str, Any] = {}
    exec("def made(x: int) -> int:\n    return x", scope)
    assert Tool(scope["made"]).source == ""


def star(*orders: str) -> None: ...
def double_star(**orders: str) -> None: ...
def positional(order: str, /) -> None: ...
def unknown_name(order: "Nowhere") -> None: ...  # noqa: F821, UP037
def a_lock(lock: threading.Lock) -> None: ...
def a_callable_type(back: type("X", (), {})) -> None: ...


@pytest.mark.parametrize(
    "function",
    [star, double_star, positional, unknown_name, a_lock, a_callable_type],
    ids=lambda function: function.__name__,
)
def test_a_signature_that_cannot_be_a_schema_is_refused_when_the_agent_is_made(function) -> None:
    with pytest.raises(InvalidTool, match=function.__name__):
        bot(MemoryCheckpointer(), ["hi"], function)


@pytest.mark.parametrize("thing", ["refund", 5, None, object()])
def test_what_cannot_be_called_is_no_tool(thing: object) -> None:
    with pytest.raises(InvalidTool, match="a tool is a function"):
        bot(MemoryCheckpointer(), ["hi"], thing)


@pytest.mark.parametrize("thing", [Desk(), partial(Desk.static, "x"), int, print])
def test_what_has_no_readable_signature_is_no_tool(thing) -> None:
    with pytest.raises(InvalidTool):
        bot(MemoryCheckpointer(), ["hi"], thing)


@pytest.mark.parametrize("name", ["has space", "é", "x" * 65, "a.b", "<lambda>"])
def test_a_name_that_providers_refuse_is_refused(name: str) -> None:
    with pytest.raises(InvalidTool, match="tool's name"):
        tool(name=name)(Desk.static)


def test_a_lambda_without_a_name_is_refused_with_a_way_out() -> None:
    with pytest.raises(InvalidTool, match=r"tool\(name="):
        bot(MemoryCheckpointer(), ["hi"], lambda: 1)


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidTool, match="two tools are named 'static'"):
        bot(MemoryCheckpointer(), ["hi"], Desk.static, tool(Desk.static))


def test_a_tool_goes_to_another_process() -> None:
    made = tool(name="by_hand", description="By hand.")(Desk.static)
    again = pickle.loads(pickle.dumps(made))
    assert (again.name, again.description, again.source) == (
        made.name,
        made.description,
        made.source,
    )
    assert again.schema == made.schema
    assert again("x") == "x"


def test_an_error_whose_words_fail_is_a_result_like_any_other(store: Checkpointer) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    def work() -> str:
        raise Mute

    result = bot(store, [call("work"), "done"], work).run("go")
    assert told(result) == ["Error: Mute (its text cannot be had: RuntimeError)"]


def test_what_is_not_text_is_no_runs_id(store: Checkpointer) -> None:
    bot(store, ["done"]).run("go", execution_id="5")
    for odd in (5, None, ["5"], b"5"):
        with pytest.raises(UnknownExecution):
            store.load(odd)  # type: ignore[arg-type]


def test_a_tool_that_changes_its_arguments_changes_neither_transcript_nor_log(store) -> None:
    def work(order: dict) -> str:
        order["lines"].append("changed")
        return "ok"

    result = bot(store, [call("work", order={"lines": ["one"]}), "done"], work).run("go")
    assert result.messages[1].tool_calls[0].arguments == {"order": {"lines": ["one"]}}


@pytest.mark.parametrize("workdir", ["/tmp/\udcff", "/tmp/a\0b", 5, ["x"]])
def test_what_is_no_path_is_no_working_directory(store: Checkpointer, workdir) -> None:
    agent = bot(store, ["done"])
    with pytest.raises(InvalidInput, match="workdir"):
        agent.run("go", workdir=workdir)
    assert list(store.runs()) == []


def test_a_class_is_no_model(store: Checkpointer) -> None:
    with pytest.raises(InvalidInput, match="is a class"):
        Agent("bot", ScriptedModel, checkpointer=store)  # type: ignore[arg-type]


def test_a_model_whose_name_is_no_text_goes_by_its_class(store: Checkpointer) -> None:
    class Named(ScriptedModel):
        def name(self) -> str:
            return "a method"

    assert Agent("bot", Named(["done"]), checkpointer=store).run("go").output == "done"
