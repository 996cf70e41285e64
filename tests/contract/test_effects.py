"""R4: an `@idempotent` function has its effect once a run, whatever dies or races."""

from __future__ import annotations

import asyncio
import functools
import os
import threading
import types
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from uuid import UUID

import pytest

from durable_nb import (
    IdempotencyError,
    InvalidInput,
    NotStorable,
    Resume,
    StaleLog,
    call,
    carry,
    current,
    idempotent,
    interrupt,
    tool,
)
from durable_nb.model.entries import Reentry
from durable_nb.stores.protocol import Begun, Kept
from tests.support.agents import bot, told
from tests.support.ledger import Ledger

WORK = [call("work"), "done"]


def run_twice(store, elsewhere, body, *, execution_id: str = "r1") -> list[object]:
    """What the tool's body returns on its first pass, which pauses, and on its second."""
    passes: list[object] = []

    def work() -> str:
        passes.append(body())
        interrupt("why")
        return "ok"

    first = bot(store, WORK, work).run("go", execution_id=execution_id)
    assert first.status == "paused", told(first)
    result = bot(elsewhere, WORK, work).resume(execution_id, resume_value=Resume(True))
    assert told(result) == ["ok"]
    return passes


def module(name: str, effects: Ledger) -> types.ModuleType:
    """A module with a function `charge`."""
    made = types.ModuleType(name)
    source = (
        "from durable_nb import idempotent\n"
        "@idempotent\ndef charge(order):\n    effects.add(f'{__name__} {order}')\n    return order\n"
    )
    vars(made).update(effects=effects)
    exec(source, vars(made))
    return made


def test_functions_of_one_name_in_two_modules_are_two(store, elsewhere, effects) -> None:
    one, two = module("shop", effects), module("bank", effects)
    run_twice(store, elsewhere, lambda: (one.charge(1), two.charge(1)))
    assert effects.lines == ["shop 1", "bank 1"]


def test_however_arguments_are_passed_the_key_is_one(store, elsewhere, effects) -> None:
    @idempotent
    def charge(customer: str, amount: int = 5, *, note: str = "") -> str:
        effects.add(f"{customer} {amount} {note}")
        return f"{customer} {amount}"

    def body() -> None:
        charge("c", 5)
        charge("c", amount=5)
        charge(customer="c")
        charge(amount=5, customer="c", note="")
        charge("c", 6)
        charge("c", 5, note="x")

    run_twice(store, elsewhere, body)
    assert effects.lines == ["c 5 ", "c 6 ", "c 5 x"]


def test_arguments_of_other_types_are_other_keys(store, elsewhere, effects) -> None:
    @idempotent
    def charge(value: object) -> None:
        effects.add(repr(value))

    values = [1, 1.0, True, "1", None, (1,), [1], {"a": 1}, {1: 1}, Decimal(1), b"1"]
    run_twice(store, elsewhere, lambda: [charge(value) for value in values])
    assert effects.lines == [repr(value) for value in values]


def test_stars_and_closures_and_methods_have_keys(store, elsewhere, effects) -> None:
    class Shop:
        def __init__(self, name: str) -> None:
            self.name = name

        @idempotent(key_fn=lambda self, amount: [self.name, amount])
        def charge(self, amount: int) -> None:
            effects.add(f"{self.name} {amount}")

        @staticmethod
        @idempotent
        def fixed(amount: int) -> None:
            effects.add(f"fixed {amount}")

    @idempotent
    def every(*args: int, **kwargs: int) -> None:
        effects.add(f"{args} {sorted(kwargs.items())}")

    def body() -> None:
        Shop("a").charge(1)
        Shop("b").charge(1)
        Shop("a").charge(amount=1)
        Shop.fixed(2)
        every(1, 2, x=3, y=4)
        every(1, 2, y=4, x=3)
        every(1, 2)

    run_twice(store, elsewhere, body)
    assert effects.lines == ["a 1", "b 1", "fixed 2", "(1, 2) [('x', 3), ('y', 4)]", "(1, 2) []"]


@dataclass
class Address:
    street: str


@dataclass
class Order:
    number: str
    address: Address


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (Order("1", Address("x")), "argument 'order'"),
        ({"orders": [Order("1", Address("x"))]}, r"argument 'order' of .*\['orders'\]\[0\]"),
        (object(), "argument 'order'"),
        (Colour.RED, "argument 'order'"),
        (threading.Lock(), "argument 'order'"),
        (lambda: 1, "argument 'order'"),
    ],
)
def test_an_argument_without_a_stored_form_is_named_and_the_body_not_run(
    store, effects, value, place: str
) -> None:
    caught: list[Exception] = []

    @idempotent
    def charge(order: object) -> None:
        effects.add("charge")

    def work() -> str:
        try:
            charge(value)
        except IdempotencyError as error:
            caught.append(error)
            raise
        return "ok"

    (text,) = told(bot(store, WORK, work).run("go"))
    assert text.startswith("Error: IdempotencyError")
    with pytest.raises(IdempotencyError, match=place):
        raise caught[0]
    assert isinstance(caught[0], NotStorable)
    assert effects.lines == []


def test_a_key_function_makes_any_argument_possible(store, elsewhere, effects) -> None:
    @idempotent(key_fn=lambda order: order.number)
    def charge(order: Order) -> str:
        effects.add(f"{order.number} {order.address.street}")
        return order.number

    passes = run_twice(
        store,
        elsewhere,
        lambda: [charge(Order("1", Address(street))) for street in ("x", "y")],
    )
    assert effects.lines == ["1 x"]
    assert passes == [["1", "1"], ["1", "1"]]


def test_a_key_that_cannot_be_stored_is_refused(store, effects) -> None:
    @idempotent(key_fn=lambda order: order)
    def charge(order: object) -> None:
        effects.add("charge")

    (text,) = told(bot(store, WORK, tool(name="work")(lambda: charge(object()))).run("go"))
    assert text.startswith("Error: IdempotencyError")
    assert "the key of" in text
    assert effects.lines == []


def test_arguments_that_do_not_fit_are_an_error_before_the_body(store, effects) -> None:
    @idempotent
    def charge(order: str) -> None:
        effects.add("charge")

    (text,) = told(bot(store, WORK, tool(name="work")(lambda: charge(1, 2))).run("go"))
    assert text.startswith("Error: TypeError")
    assert effects.lines == []


KEPT = [
    None,
    False,
    0,
    "",
    [],
    -0.0,
    2**80,
    "a\0b \ud800",
    (1, [2, {"a": {3}}]),
    {1: "x", (2,): None},
    frozenset({1}),
    b"\xff",
    Decimal("1.10"),
    UUID(int=5),
    datetime(2026, 1, 2, tzinfo=UTC),
    {"$tuple": [1]},
]


@pytest.mark.parametrize("value", KEPT, ids=repr)
def test_a_result_is_the_same_on_the_first_pass_and_on_a_hit(
    store, elsewhere, effects, value
) -> None:
    @idempotent
    def charge() -> object:
        effects.add("charge")
        return value

    first, second = run_twice(store, elsewhere, charge)
    assert repr(first) == repr(second) == repr(value)
    assert type(first) is type(second) is type(value)
    assert effects.lines == ["charge"]


def test_the_first_pass_returns_the_stored_form_too(store, elsewhere) -> None:
    body = {"list": [1]}

    @idempotent
    def charge() -> dict[str, list[int]]:
        return body

    first, second = run_twice(store, elsewhere, charge)
    assert first == second == body
    assert first is not body
    first["list"].append(2)
    assert body == {"list": [1]}


def test_a_result_that_cannot_be_stored_is_an_error_and_is_not_remembered(store, effects) -> None:
    @idempotent
    def charge() -> object:
        effects.add("charge")
        return {"receipt": object()}

    (text,) = told(bot(store, WORK, tool(name="work")(charge)).run("go"))
    assert text.startswith("Error: IdempotencyError: @idempotent: the result of ")
    assert "['receipt']" in text
    assert effects.lines == ["charge"]


def test_a_function_that_raises_is_run_again_by_a_later_pass(store, elsewhere, effects) -> None:
    @idempotent
    def charge() -> str:
        effects.add("charge")
        if len(effects.lines) < 3:
            raise ConnectionError("no")
        return "charged"

    def work() -> str:
        try:
            return charge()
        except ConnectionError:
            interrupt("again?")
            return charge()

    bot(store, WORK, work).run("go", execution_id="r1")
    result = bot(elsewhere, WORK, work).resume("r1", resume_value=Resume(True))
    assert effects.lines == ["charge"] * 3
    assert told(result) == ["Error: ConnectionError: no"] or told(result) == ["charged"]


def test_another_run_is_another_cache(store, elsewhere, effects) -> None:
    @idempotent
    def charge() -> str:
        effects.add(current().execution_id)
        return "ok"

    for execution_id in ("r1", "r2"):
        run_twice(store, elsewhere, charge, execution_id=execution_id)
    assert effects.lines == ["r1", "r2"]


def test_one_key_in_two_tools_and_turns_of_a_run_is_one_effect(store, effects) -> None:
    @idempotent
    def charge() -> str:
        effects.add("charge")
        return "ok"

    first, second = (tool(name=name)(lambda: charge()) for name in ("first", "second"))
    script = [[call("first"), call("second")], call("first"), "done"]
    assert told(bot(store, script, first, second).run("go")) == ["ok"] * 3
    assert effects.lines == ["charge"]


def test_outside_of_a_run_nothing_is_remembered(effects) -> None:
    @idempotent
    def charge(order: object) -> int:
        effects.add("charge")
        return len(effects.lines)

    @idempotent
    async def acharge() -> int:
        effects.add("acharge")
        return len(effects.lines)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [charge(object()), charge(object())] == [1, 2]
        assert [asyncio.run(acharge()), asyncio.run(acharge())] == [3, 4]


@pytest.mark.parametrize("threads", [4, 16])
def test_one_key_in_many_threads_runs_once_and_all_get_the_result(store, effects, threads) -> None:
    @idempotent
    def charge(order: str) -> dict[str, int]:
        effects.add(order)
        return {"n": len(effects.lines)}

    def work() -> str:
        ready = threading.Barrier(threads)

        def one(_: int) -> dict[str, int]:
            ready.wait()
            return charge("1042")

        with ThreadPoolExecutor(threads) as pool:
            got = [pool.submit(carry(one), n) for n in range(threads)]
            assert [each.result() for each in got] == [{"n": 1}] * threads
        return "ok"

    assert told(bot(store, WORK, work).run("go")) == ["ok"]
    assert effects.lines == ["1042"]


def test_one_key_in_many_tasks_runs_once(store, elsewhere, effects) -> None:
    @idempotent
    async def charge(order: str) -> int:
        effects.add(order)
        await asyncio.sleep(0.01)
        return len(effects.lines)

    async def work() -> str:
        got = await asyncio.gather(*(charge("1042") for _ in range(5)))
        assert got == [1] * 5
        interrupt("why")
        return "ok"

    bot(store, WORK, work).run("go", execution_id="r1")
    result = bot(elsewhere, WORK, work).resume("r1", resume_value=Resume(True))
    assert told(result) == ["ok"]
    assert effects.lines == ["1042"]


def test_a_second_caller_runs_the_body_when_the_first_raised(store, effects) -> None:
    inside, waiting = threading.Event(), threading.Event()

    @idempotent
    def charge() -> str:
        effects.add("charge")
        if len(effects.lines) == 1:
            inside.set()
            waiting.wait(10)
            raise ConnectionError("no")
        return "ok"

    def work() -> str:
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(carry(charge))
            inside.wait(10)
            second = pool.submit(carry(charge))
            waiting.set()
            assert isinstance(first.exception(), ConnectionError)
            return second.result()

    assert told(bot(store, WORK, work).run("go")) == ["ok"]
    assert effects.lines == ["charge"] * 2


def test_a_function_that_calls_itself_does_not_wait_for_itself(store) -> None:
    @idempotent
    def loop(n: int) -> int:
        return loop(n)

    @idempotent
    async def async_loop(n: int) -> int:
        return await async_loop(n)

    @idempotent
    def down(n: int) -> int:
        return down(n - 1) + 1 if n else 0

    async def work_async() -> int:
        return await async_loop(1)

    tools = [
        tool(name="a")(lambda: loop(1)),
        tool(name="b")(work_async),
        tool(name="c")(lambda: down(3)),
    ]
    first, second, third = told(bot(store, [[call(n) for n in "abc"], "done"], *tools).run("go"))
    for text in (first, second):
        assert text.startswith("Error: IdempotencyError")
        assert "calls itself" in text
    assert third == "3"


def test_plain_threads_of_a_tool_remember_nothing_and_say_so(store, effects) -> None:
    @idempotent
    def charge(order: str) -> str:
        effects.add(order)
        return "ok"

    def work(carried: bool) -> str:
        function = carry(charge) if carried else charge
        for _ in range(2):
            with ThreadPoolExecutor(1) as pool:
                pool.submit(function, str(carried)).result()
        return "ok"

    script = [call("work", carried=False), call("work", carried=True), "done"]
    with pytest.warns(UserWarning, match="nothing is remembered.*carry"):
        bot(store, script, work).run("go")
    assert effects.lines == ["False", "False", "True"]


def test_a_tool_asked_for_current_says_which_call_it_is(store, elsewhere) -> None:
    seen = []

    async def work() -> str:
        seen.append((current().execution_id, current().call_id, current().tool))
        inner = await asyncio.to_thread(lambda: current().call_id)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(carry(lambda: current().call_id)).result() == inner
        interrupt("why")
        return "ok"

    bot(store, WORK, work).run("go", execution_id="r1")
    bot(elsewhere, WORK, work).resume("r1", resume_value=Resume(True))
    assert len(seen) == 2
    assert seen[0] == seen[1]
    assert seen[0][0::2] == ("r1", "work")


def test_an_effect_is_marked_before_its_body_and_kept_after_it(store, elsewhere) -> None:
    seen = []

    @idempotent
    def charge() -> int:
        seen.append(effects_of(elsewhere))
        return 7

    def effects_of(other) -> list[object]:
        return [type(other.effect(lease(), key)) for key in keys]

    def lease():
        from durable_nb.runtime.scope import scope

        return scope().lease

    keys: list[str] = []

    def spy(*args, **kwargs):
        keys.append(args[1])
        return begin(*args, **kwargs)

    begin = store.begin
    watched = Watched(store, spy)

    def work() -> str:
        charge()
        seen.append(effects_of(elsewhere))
        return "ok"

    bot(watched, WORK, work).run("go")
    assert seen == [[Begun], [Kept]]


class Watched:
    """A store of which one method is watched."""

    def __init__(self, store, begin) -> None:
        self._store, self.begin = store, begin

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


@pytest.mark.parametrize("when", ["before the body", "after the body"])
def test_an_owner_that_was_taken_over_begins_and_keeps_nothing(
    store, elsewhere, effects, when: str
) -> None:
    def take_over() -> None:
        log = elsewhere.load("r1")
        number = log.rows[-1].number
        entry = Reentry(0, "work", of=number, by="ann")
        elsewhere.claim("r1", entry, after=number, at=1, writer=999, take_over=True)

    @idempotent
    def charge() -> str:
        effects.add("charge")
        if when == "after the body":
            take_over()
        return "ok"

    errors: list[BaseException] = []

    def work() -> str:
        if when == "before the body":
            take_over()
        try:
            return charge()
        except BaseException as error:
            errors.append(error)
            raise

    with pytest.raises(StaleLog):
        bot(store, WORK, work).run("go", execution_id="r1")
    assert [type(error) for error in errors] == [StaleLog]
    assert effects.lines == ["charge"] * (when == "after the body")
    assert len(store.load("r1").rows) == 3


def test_a_generator_has_no_one_result() -> None:
    for body in ("def f():\n yield 1", "async def f():\n yield 1"):
        scope: dict[str, object] = {}
        exec(body, scope)
        with pytest.raises(InvalidInput, match="generator"):
            idempotent(scope["f"])


@pytest.mark.parametrize("function", [lambda: 1, functools.partial(int, "1")])
def test_a_function_without_a_name_of_its_own_is_refused(function) -> None:
    with pytest.raises(InvalidInput, match="by its name"):
        idempotent(function)


def test_the_wrapper_looks_like_its_function() -> None:
    @idempotent
    def charge(order: str) -> str:
        """Charge it."""
        return order

    @idempotent(key_fn=lambda: 1)
    async def acharge() -> None:
        """Charge it later."""

    assert (charge.__name__, charge.__doc__) == ("charge", "Charge it.")
    assert (acharge.__name__, asyncio.iscoroutinefunction(acharge)) == ("acharge", True)
    assert charge("x") == "x"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_is_no_place_for_an_idempotent_call(store, effects) -> None:
    @idempotent
    def charge(order: str) -> str:
        effects.add(order)
        return "ok"

    def pay() -> str:
        if (child := os.fork()) == 0:
            try:
                charge("in the child")
            except IdempotencyError:
                os._exit(7)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        return f"{os.waitstatus_to_exitcode(status)} {charge('1')}"

    result = bot(store, [call("pay"), "done"], pay).run("go")
    assert told(result) == ["7 ok"]
    assert effects.lines == ["1"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_that_comes_back_from_the_tool_does_not_drive_the_run(
    store, effects
) -> None:
    parent = os.getpid()

    def pay() -> str:
        if (child := os.fork()) == 0:
            return "from the child"
        _, status = os.waitpid(child, 0)
        return f"child ended with {os.waitstatus_to_exitcode(status)}"

    agent = bot(store, [call("pay"), "done"], pay)
    try:
        result = agent.run("go", execution_id="r1")
    except BaseException as error:
        if os.getpid() == parent:
            raise
        os._exit(7 if type(error).__name__ == "Abandoned" else 8)
    if os.getpid() != parent:
        os._exit(9)
    assert told(result) == ["child ended with 7"]
    assert [row.step_type for row in store.list("r1")] == [
        "llm_call", "tool_call", "llm_call", "run_end",
    ]  # fmt: skip
