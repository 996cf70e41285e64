"""R2, R8: a tool asks for a person; nothing goes on without an answer, and each answers one pause."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import os
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum

import pytest

from durable_nb import (
    AlreadyResumed,
    Checkpointer,
    DurableError,
    InvalidInput,
    NotStorable,
    OutsideTool,
    PauseSwallowed,
    Resume,
    RunPaused,
    call,
    carry,
    idempotent,
    interrupt,
    tool,
)
from durable_nb.model.entries import Answer, Log
from durable_nb.runtime.ports import Ports
from tests.support.agents import bot, nodes, told

YES, NO = Resume(True), Resume(False)
WORK = [call("work"), "done"]


def work_tool(body):
    """The function as the tool `work`."""
    return tool(name="work")(body)


# --- the signal leaves the tool -------------------------------------------------------------------


def plain() -> str:
    return interrupt("why").by


def in_try_except_exception() -> str:
    try:
        return interrupt("why").by
    except Exception:
        return "went on"


def in_suppress() -> str:
    with contextlib.suppress(Exception):
        return interrupt("why").by
    return "went on"


def retried(function):
    @functools.wraps(function)
    def again():
        for _ in range(3):
            with contextlib.suppress(Exception):
                return function()
        return "gave up"

    return again


@retried
def in_a_retry() -> str:
    return interrupt("why").by


def with_a_finally() -> str:
    try:
        return interrupt("why").by
    finally:
        len("clean up")


def caught_and_raised_again() -> str:
    try:
        return interrupt("why").by
    except BaseException:
        len("clean up")
        raise


def caught_and_asked_again() -> str:
    try:
        return interrupt("why").by
    except BaseException:
        return interrupt("another").by


def deeper() -> str:
    return (lambda: plain())()


def in_a_generator() -> str:
    return next(interrupt("why").by for _ in range(1))


async def in_a_coroutine() -> str:
    await asyncio.sleep(0)
    return interrupt("why").by


async def in_an_awaited_coroutine() -> str:
    return await in_a_coroutine()


async def around_a_task_group() -> str:
    async with asyncio.TaskGroup():
        return interrupt("why").by


async def in_an_async_try() -> str:
    try:
        return interrupt("why").by
    except Exception:
        return "went on"


def from_a_sync_function():
    return in_a_coroutine()


class Desk:
    def method(self) -> str:
        return interrupt("why").by


PAUSING = [
    plain,
    in_try_except_exception,
    in_suppress,
    in_a_retry,
    with_a_finally,
    caught_and_raised_again,
    caught_and_asked_again,
    deeper,
    in_a_generator,
    in_a_coroutine,
    in_an_awaited_coroutine,
    around_a_task_group,
    in_an_async_try,
    from_a_sync_function,
    Desk().method,
    lambda: plain(),
]


@pytest.mark.parametrize("body", PAUSING, ids=lambda body: getattr(body, "__name__", str(body)))
def test_wherever_a_tool_asks_the_run_pauses_and_the_answer_comes_back(store, body) -> None:
    for resume in (False, True):  # each way in, each way out
        run_id = f"r{resume}"
        agent = bot(store, WORK, work_tool(body))
        if resume:
            assert asyncio.run(agent.arun("go", execution_id=run_id)).status == "paused"
            result = asyncio.run(agent.aresume(run_id, resume_value=Resume(True, by="ann")))
        else:
            assert agent.run("go", execution_id=run_id).status == "paused"
            result = agent.resume(run_id, resume_value=Resume(True, by="ann"))
        assert (result.status, told(result)) == ("completed", ["ann"])


# --- the signal is swallowed ----------------------------------------------------------------------


def bare_except() -> str:
    try:
        interrupt("why")
    except:  # noqa: E722
        return "went on"


def except_base_exception() -> str:
    try:
        interrupt("why")
    except BaseException:
        return "went on"


def return_in_finally() -> str:
    try:
        interrupt("why")
    finally:
        return "went on"  # noqa: B012


def raise_another() -> str:
    try:
        interrupt("why")
    except BaseException as error:
        raise ValueError("other") from error


def suppressing_all() -> str:
    with contextlib.suppress(BaseException):
        interrupt("why")
    return "went on"


def swallow_twice() -> str:
    for _ in range(2):
        with contextlib.suppress(BaseException):
            interrupt("why")
    return "went on"


async def async_swallow() -> str:
    with contextlib.suppress(BaseException):
        interrupt("why")
    await asyncio.sleep(0)
    return "went on"


async def async_raise_another() -> str:
    try:
        interrupt("why")
    except BaseException:
        raise ValueError("other") from None


SWALLOWING = [
    bare_except,
    except_base_exception,
    return_in_finally,
    raise_another,
    suppressing_all,
    swallow_twice,
    async_swallow,
    async_raise_another,
]


@pytest.mark.parametrize("body", SWALLOWING, ids=lambda body: body.__name__)
def test_a_tool_that_swallows_the_pause_fails_the_run_unapproved(store, effects, body) -> None:
    after = tool(name="after")(lambda: effects.add("after"))
    agent = bot(store, [[call("work"), call("after")], "done"], work_tool(body), after)
    with pytest.raises(PauseSwallowed, match="work"):
        agent.run("go", execution_id="r1")
    assert [run.status for run in store.runs()] == ["failed"]
    assert effects.lines == []
    assert agent.llm.asked == 1
    with pytest.raises(PauseSwallowed):
        agent.resume("r1")
    repaired = bot(store, [[call("work"), call("after")], "done"], work_tool(plain), after)
    assert repaired.resume("r1").status == "paused"


def test_a_swallowed_pause_that_ends_in_an_interrupt_is_no_approval(store) -> None:
    def work() -> str:
        with contextlib.suppress(BaseException):
            interrupt("why")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bot(store, WORK, work).run("go", execution_id="r1")
    assert [run.status for run in store.runs()] == ["crashed"]
    assert bot(store, WORK, work_tool(plain)).resume("r1").status == "paused"


# --- another thread or task -----------------------------------------------------------------------


def in_a_thread(ask) -> str:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(ask).result().by


def in_a_plain_thread() -> str:
    return in_a_thread(plain)


def in_a_carried_thread() -> str:
    return in_a_thread(carry(lambda: interrupt("why")))


def in_a_copied_context() -> str:
    context = contextvars.copy_context()
    return in_a_thread(lambda: context.run(interrupt, "why"))


async def in_to_thread() -> str:
    return (await asyncio.to_thread(interrupt, "why")).by


async def in_an_executor() -> str:
    return await asyncio.get_running_loop().run_in_executor(None, plain)


async def in_a_task() -> str:
    return await asyncio.create_task(in_a_coroutine())


async def gathered() -> str:
    return (await asyncio.gather(in_a_coroutine(), in_a_coroutine()))[0]


async def in_a_task_of_a_group() -> str:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(in_a_coroutine())
    return task.result()


ELSEWHERE = [
    in_a_plain_thread,
    in_a_carried_thread,
    in_a_copied_context,
    in_to_thread,
    in_an_executor,
    in_a_task,
    gathered,
    in_a_task_of_a_group,
]


@pytest.mark.parametrize("body", ELSEWHERE, ids=lambda body: body.__name__)
def test_interrupt_in_another_thread_or_task_is_a_clear_error(store, body) -> None:
    result = bot(store, WORK, work_tool(body)).run("go", execution_id="r1")
    (text,) = told(result)
    assert text.startswith("Error: ")
    assert "interrupt()" in text or "ExceptionGroup" in text
    assert [row.step_type for row in store.list("r1")].count("hitl_pause") == 0


@pytest.mark.parametrize("body", ELSEWHERE, ids=lambda body: body.__name__)
def test_an_answer_is_not_replayed_in_another_thread_or_task(store, body) -> None:
    def both() -> str:
        assert interrupt("why").approved
        return body()

    result = bot(store, WORK, work_tool(both)).run("go", execution_id="r1")
    result = bot(store, WORK, work_tool(both)).resume("r1", resume_value=YES)
    assert told(result)[0].startswith("Error: ")


def test_interrupt_outside_of_a_run_is_a_clear_error() -> None:
    with pytest.raises(OutsideTool, match=r"interrupt\(\) works only inside of a tool"):
        interrupt("why")


def test_a_thread_that_outlives_its_tool_cannot_pause_a_later_one(store) -> None:
    seen: list[object] = []
    late = threading.Event()

    def ask() -> None:
        late.wait(10)
        try:
            interrupt("late")
        except BaseException as error:
            seen.append(error)

    def work() -> str:
        thread = threading.Thread(target=carry(ask))
        thread.start()
        threads.append(thread)
        return "started"

    def second() -> str:
        late.set()
        threads[0].join()
        return "second"

    threads: list[threading.Thread] = []
    result = bot(store, [call("work"), call("second"), "done"], work, second).run("go")
    assert told(result) == ["started", "second"]
    assert [type(error) for error in seen] == [OutsideTool]


# --- answers --------------------------------------------------------------------------------------


def test_two_gates_are_two_pauses_and_two_answers(store, elsewhere, effects) -> None:
    def work() -> str:
        for who in ("manager", "vp"):
            if not interrupt(who).approved:
                return f"{who} said no"
        effects.add("work")
        return "both"

    first = bot(store, WORK, work).run("go", execution_id="r1").pending_interrupt
    assert (first["reason"], first["number"]) == ("manager", 3)
    second = bot(elsewhere, WORK, work).resume("r1", resume_value=YES, pause=3).pending_interrupt
    assert (second["reason"], second["number"]) == ("vp", 5)
    assert effects.lines == []
    with pytest.raises(AlreadyResumed, match="pause 3 is not open"):
        bot(elsewhere, WORK, work).resume("r1", resume_value=YES, pause=3)
    assert [pause.reason for pause in store.list_pending_interrupts()] == ["vp"]
    result = bot(store, WORK, work).resume("r1", resume_value=YES, pause=5)
    assert told(result) == ["both"]
    assert effects.lines == ["work"]


def test_gates_of_one_reason_are_told_apart_by_their_order(store) -> None:
    def work() -> str:
        return "".join("ny"[interrupt("sure?").approved] for _ in range(3))

    agent = bot(store, WORK, work)
    agent.run("go", execution_id="r1")
    for decision in (YES, NO):
        assert agent.resume("r1", resume_value=decision).status == "paused"
    result = agent.resume("r1", resume_value=YES)
    assert told(result)[0].splitlines()[-1] == "yny"


def test_a_validation_loop_asks_until_the_answer_is_good(store, elsewhere) -> None:
    def work() -> int:
        while True:
            value = interrupt("a number from 0 to 99").metadata["value"]
            if isinstance(value, int) and 0 <= value < 100:
                return value

    bot(store, WORK, work).run("go", execution_id="r1")
    for value in (-1, "x"):
        again = bot(elsewhere, WORK, work).resume(
            "r1", resume_value=Resume(True, metadata={"value": value})
        )
        assert again.status == "paused"
    result = bot(store, WORK, work).resume("r1", resume_value=Resume(True, metadata={"value": 30}))
    assert told(result) == ["30"]
    assert [row.step_type for row in store.list("r1")].count("hitl_pause") == 3


def test_another_reason_pauses_anew(store, elsewhere, effects) -> None:
    def old() -> str:
        interrupt("refund of 100?")
        raise KeyboardInterrupt  # it dies with the answer in the log

    def new() -> str:
        interrupt("refund of 100000?")
        effects.add("paid")
        return "paid"

    bot(store, WORK, work_tool(old)).run("go", execution_id="r1")
    with pytest.raises(KeyboardInterrupt):
        bot(store, WORK, work_tool(old)).resume("r1", resume_value=YES)
    result = bot(elsewhere, WORK, work_tool(new)).resume("r1")
    assert result.pending_interrupt["reason"] == "refund of 100000?"
    assert effects.lines == []
    assert bot(store, WORK, work_tool(new)).resume("r1", resume_value=YES).status == "completed"
    assert effects.lines == ["paid"]


def test_a_gate_put_before_an_answered_one_pauses_anew(store, effects) -> None:
    def one() -> str:
        interrupt("second")
        interrupt("third")
        return "ok"

    def two() -> str:
        for reason in ("first", "second", "third"):
            interrupt(reason)
        effects.add("went through")
        return "ok"

    agent = bot(store, WORK, work_tool(one))
    agent.run("go", execution_id="r1")
    agent.resume("r1", resume_value=YES)
    edited = bot(store, WORK, work_tool(two))
    asked = []
    while (result := edited.resume("r1", resume_value=YES)).status == "paused":
        asked.append(result.pending_interrupt["reason"])
        assert len(asked) < 9
    assert asked[0] == "first"
    assert effects.lines == ["went through"]


def test_a_second_call_of_an_approved_tool_pauses_again(store, effects) -> None:
    def refund(amount: int) -> str:
        interrupt("refund", {"amount": amount})
        effects.add(f"refund {amount}")
        return "ok"

    script = [call("refund", amount=1), call("refund", amount=5000), "done"]
    agent = bot(store, script, refund)
    agent.run("go", execution_id="r1")
    result = agent.resume("r1", resume_value=YES)
    assert result.pending_interrupt["context"] == {"amount": 5000}
    assert effects.lines == ["refund 1"]


def test_a_decision_where_no_pause_is_open_runs_nothing(store, effects) -> None:
    def work() -> str:
        effects.add("work")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bot(store, WORK, work).run("go", execution_id="r1")
    for options in ({}, {"pause": 3}, {"pause": 2}):
        with pytest.raises(AlreadyResumed, match="'r1'"):
            bot(store, WORK, work).resume("r1", resume_value=YES, **options)
    assert effects.lines == ["work"]
    assert len(store.load("r1").rows) == 2


@pytest.mark.parametrize("pause", [0, 1, 2, 4, 99, -1])
def test_an_answer_to_another_pause_changes_nothing(store, pause: int) -> None:
    agent = bot(store, WORK, work_tool(plain))
    agent.run("go", execution_id="r1")
    with pytest.raises(AlreadyResumed, match=f"pause {pause} is not open"):
        agent.resume("r1", resume_value=YES, pause=pause)
    assert len(store.load("r1").rows) == 3


def test_a_decision_that_cannot_be_kept_claims_nothing(store, elsewhere) -> None:
    agent = bot(store, WORK, work_tool(plain))
    agent.run("go", execution_id="r1")
    with pytest.raises(NotStorable, match=r"metadata\['token'\]"):
        agent.resume("r1", resume_value=Resume(True, metadata={"token": object()}))
    with pytest.raises(InvalidInput, match="approver"):
        agent.resume("r1", resume_value=Resume(True, metadata={"approver": 5}))
    assert [pause.number for pause in elsewhere.list_pending_interrupts()] == [3]
    assert not elsewhere.load("r1").live


def test_the_log_says_who_decided(store) -> None:
    ports = Ports(user=lambda: "os-user")
    cases = [
        (Resume(True), "os-user"),
        (Resume(True, metadata={"approver": "ann"}), "ann"),
        (Resume(True, metadata={"approver": "ann"}, by="bob"), "bob"),
    ]
    for number, (decision, who) in enumerate(cases):
        agent = bot(store, WORK, work_tool(plain), ports=ports)
        agent.run("go", execution_id=f"r{number}")
        assert told(agent.resume(f"r{number}", resume_value=decision)) == [who]
        (answer,) = [
            row.entry for row in store.load(f"r{number}").rows if isinstance(row.entry, Answer)
        ]
        assert (answer.by, answer.approved, answer.pause) == (who, True, 3)


@pytest.mark.parametrize("decision", [YES, Resume(True, {"a": (1, {2})}, "fine", None, "ann"), NO])
def test_the_tool_gets_the_decision_as_it_was_given(store, decision: Resume) -> None:
    got: list[Resume] = []
    agent = bot(store, WORK, tool(name="work")(lambda: got.append(interrupt("why"))))
    agent.run("go", execution_id="r1")
    agent.resume("r1", resume_value=decision)
    assert (got[0].approved, got[0].reason) == (decision.approved, decision.reason)
    assert dict(got[0].metadata) == dict(decision.metadata)


@pytest.mark.parametrize("reason", ["over budget", "two\nlines", "ünï 🎉 </div>", "[not run: x]"])
def test_a_rejections_reason_reaches_the_model_word_for_word(store, reason: str) -> None:
    def work() -> str:
        return "paid" if interrupt("why").approved else "not paid"

    agent = bot(store, WORK, work)
    agent.run("go", execution_id="r1")
    result = agent.resume("r1", resume_value=Resume(False, reason=reason, by="ann"))
    assert told(result) == [f"[rejected by ann: {reason}]\nnot paid"]


def test_a_rejection_without_a_reason_says_who(store) -> None:
    agent = bot(store, WORK, work_tool(lambda: interrupt("why") and None))
    agent.run("go", execution_id="r1")
    result = agent.resume("r1", resume_value=Resume(False, by="ann"))
    assert told(result)[0].splitlines()[0] == "[rejected by ann]"


def test_a_rejected_tool_that_raises_still_tells_the_reason(store) -> None:
    def work() -> str:
        if not interrupt("why").approved:
            raise PermissionError("no")
        return "ok"

    agent = bot(store, WORK, work)
    agent.run("go", execution_id="r1")
    result = agent.resume("r1", resume_value=Resume(False, reason="too much", by="ann"))
    assert told(result) == ["[rejected by ann: too much]\nError: PermissionError: no"]


def test_a_skipping_gate_never_enters_its_rejected_tool_again(store, effects) -> None:
    def work() -> str:
        effects.add("entered")
        interrupt("why", on_reject="skip")
        return "ok"

    agent = bot(store, WORK, work)
    agent.run("no", execution_id="no")
    result = agent.resume("no", resume_value=Resume(False, reason="too much", by="ann"))
    assert told(result) == ["[rejected by ann: too much]\nwork was not run"]
    assert effects.lines == ["entered"]
    agent.run("yes", execution_id="yes")
    assert told(agent.resume("yes", resume_value=YES)) == ["ok"]
    assert effects.lines == ["entered"] * 3


CONDITIONS = {
    "if": lambda: "yes" if interrupt("why") else "no",
    "not": lambda: "no" if not interrupt("why") else "yes",
    "and": lambda: interrupt("why") and "yes",
    "bool": lambda: str(bool(interrupt("why"))),
    "while": lambda: next(iter([x for x in [1] if interrupt("why")])),
}


@pytest.mark.parametrize("decision", [YES, NO])
@pytest.mark.parametrize("body", CONDITIONS.values(), ids=CONDITIONS)
def test_a_decision_used_as_a_condition_approves_nothing(store, body, decision: Resume) -> None:
    agent = bot(store, WORK, work_tool(body))
    assert agent.run("go", execution_id="r1").status == "paused"
    result = agent.resume("r1", resume_value=decision)
    assert "Error: TypeError: a Resume is not a condition" in told(result)[0]
    assert ("turn:0/tool:work", "completed") in nodes(store, "r1")[3:]


# --- the context is frozen ------------------------------------------------------------------------


def test_a_context_changed_after_the_pause_is_stored_as_it_was(store, elsewhere) -> None:
    context = {"order": {"amount": 100}, "tags": ["a"]}
    runs_of_the_tool = []

    def work() -> str:
        runs_of_the_tool.append(1)
        context["order"]["amount"] += len(runs_of_the_tool)  # recomputed differently each pass
        try:
            return interrupt("why", context).by
        finally:
            context["tags"].append("changed")

    result = bot(store, WORK, work).run("go", execution_id="r1")
    as_it_was = {"order": {"amount": 101}, "tags": ["a"]}
    assert result.pending_interrupt["context"] == as_it_was
    context["order"]["amount"] = 7
    result.pending_interrupt["context"]["tags"].append("by the caller")
    assert elsewhere.list_pending_interrupts()[0].context == as_it_was
    bot(elsewhere, WORK, work).resume("r1", resume_value=YES)
    assert store.load("r1").rows[2].entry.context == as_it_was


@pytest.mark.parametrize(
    ("context", "place"),
    [
        ({"a": [object()]}, r"context['a'][0]"),
        (object(), "context is of type object"),
        ({"when": lambda: 1}, "context['when']"),
        ({1, (2, object)}, "context member"),
    ],
)
def test_a_context_that_cannot_be_stored_is_named_and_the_tool_stops(
    store, effects, context, place: str
) -> None:
    def work() -> str:
        with contextlib.suppress(Exception):
            interrupt("why", context)
        effects.add("went on")
        return "went on"

    result = bot(store, WORK, work).run("go", execution_id="r1")
    assert result.status == "completed"
    (text,) = told(result)
    assert text.startswith("Error: NotStorable: ")
    assert place in text
    assert effects.lines == []
    assert store.list_pending_interrupts() == []


@pytest.mark.parametrize("arguments", [("",), (None,), (5,), ("why", None, "maybe")])
def test_an_interrupt_that_makes_no_sense_stops_the_tool(store, effects, arguments) -> None:
    reason, *rest = arguments
    options = {"on_reject": rest[1]} if rest else {}

    def work() -> str:
        interrupt(reason, **options)
        effects.add("went on")
        return "went on"

    assert told(bot(store, WORK, work).run("go"))[0].startswith("Error: ")
    assert effects.lines == []


@dataclass(frozen=True)
class Lax(Resume):
    """A kind of `Resume` that checks nothing."""

    def __post_init__(self) -> None:
        pass


@pytest.mark.parametrize(
    ("decision", "pause"), [(Lax("no"), None), (Lax(1), None), (YES, "3"), (YES, 3.0), (YES, True)]
)
def test_what_is_no_decision_on_a_numbered_pause_claims_nothing(store, decision, pause) -> None:
    agent = bot(store, WORK, work_tool(plain))
    agent.run("go", execution_id="r1")
    with pytest.raises(InvalidInput):
        agent.resume("r1", resume_value=decision, pause=pause)
    assert len(store.list("r1")) == 3


def test_nobodys_name_is_no_name(store) -> None:
    bot(store, WORK, work_tool(plain)).run("go", execution_id="r1")
    agent = bot(store, WORK, work_tool(plain), ports=Ports(user=lambda: "ann"))
    assert told(agent.resume("r1", resume_value=Resume(True, by=""))) == ["ann"]


class Unspeakable:
    def __repr__(self) -> str:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("context", "expires_in"),
    [
        (None, "1h"),
        (None, float("nan")),
        (None, float("inf")),
        (None, 1e12),  # no calendar has that year
        (None, -(10**30)),
        ({"a": {Unspeakable()}}, None),
    ],
)
def test_a_tool_that_catches_what_is_wrong_with_its_interrupt_does_not_go_on(
    store, effects, context, expires_in
) -> None:
    def work() -> str:
        with contextlib.suppress(Exception):
            interrupt("why", context, expires_in=expires_in)
        effects.add("went on")
        return "went on"

    assert told(bot(store, WORK, work).run("go"))[0].startswith("Error: ")
    assert effects.lines == []
    assert store.list_pending_interrupts() == []


def test_a_member_of_an_enum_of_texts_is_a_reason(store, elsewhere) -> None:
    class Why(StrEnum):
        PRICE = "too dear"

    def work() -> str:
        return interrupt(Why.PRICE).by

    assert bot(store, WORK, work).run("go", execution_id="r1").pending_interrupt == {
        "reason": "too dear",
        "context": None,
        "node_id": "turn:0/tool:work",
        "agent_path": "agent:bot/tool:work",
        "number": 3,
    }
    answer = Resume(True, by="ann")
    assert told(bot(elsewhere, WORK, work).resume("r1", resume_value=answer)) == ["ann"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_interrupt_in_a_forked_child_is_an_error_there(store) -> None:
    def work() -> str:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                interrupt("why")
            except OutsideTool:
                status = 7
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        return str(os.waitstatus_to_exitcode(status))

    assert told(bot(store, WORK, work).run("go")) == ["7"]


# --- siblings -------------------------------------------------------------------------------------


def batch_tools(effects):
    def gate(name: str) -> str:
        effects.add(f"gate {name}")
        return "ok" if interrupt("why", name).approved else "no"

    def note(name: str) -> str:
        effects.add(f"note {name}")
        return name

    return gate, note


@pytest.mark.parametrize("decision", [YES, NO])
def test_siblings_of_a_paused_call_never_run_and_the_model_is_told(
    store, elsewhere, effects, decision: Resume
) -> None:
    calls = [call("note", name="a"), call("gate", name="b"), call("note", name="c")]
    tools = batch_tools(effects)
    bot(store, [calls, "done"], *tools).run("go", execution_id="r1")
    result = bot(elsewhere, [calls, "done"], *tools).resume("r1", resume_value=decision)
    assert effects.lines == ["note a", "gate b", "gate b"]
    first, second, third = told(result)
    assert (first, second.splitlines()[-1]) == ("a", "ok" if decision.approved else "no")
    assert third.startswith("[not run: ")
    assert result.output == "done"


def test_a_gate_after_a_gate_in_one_reply_is_asked_for_again(store, effects) -> None:
    calls = [call("gate", name="a"), call("gate", name="b")]
    script = [calls, call("gate", name="b"), "done"]
    agent = bot(store, script, *batch_tools(effects))
    agent.run("go", execution_id="r1")
    result = agent.resume("r1", resume_value=YES)
    assert (result.status, result.pending_interrupt["context"]) == ("paused", "b")
    result = agent.resume("r1", resume_value=YES)
    assert [text[:8] for text in told(result)] == ["ok", "[not run", "ok"]


# --- races ----------------------------------------------------------------------------------------


def race(count: int, resume) -> Counter[str]:
    ready = threading.Barrier(count)

    def one(index: int) -> str:
        ready.wait()
        try:
            return resume(index).status
        except DurableError as error:
            return type(error).__name__

    with ThreadPoolExecutor(count) as pool:
        return Counter(pool.map(one, range(count)))


@pytest.mark.parametrize("bound", [True, False])
def test_of_five_threads_that_answer_one_pause_one_wins(store, opened, effects, bound) -> None:
    def work() -> str:
        if interrupt("why").approved:
            effects.add("work")
        return "ok"

    stores = [store, opened()]
    bot(store, WORK, work).run("go", execution_id="r1")
    options = {"pause": 3} if bound else {}
    outcome = race(
        5,
        lambda n: bot(stores[n % 2], WORK, work).resume(
            "r1", resume_value=Resume(True, by=f"p{n}"), **options
        ),
    )
    assert outcome == {"completed": 1, "AlreadyResumed": 4}
    assert effects.lines == ["work"]


class Together:
    """A store whose first readers all see the same: none goes on before the last has read."""

    def __init__(self, store: Checkpointer, readers: threading.Barrier) -> None:
        self._store, self._readers = store, readers
        self._waited = False

    def load(self, execution_id: str) -> Log:
        log = self._store.load(execution_id)
        if not self._waited:
            self._waited = True
            self._readers.wait()
        return log

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


@pytest.mark.parametrize("bound", [True, False])
def test_a_click_of_many_passes_one_gate_only(store, opened, effects, bound) -> None:
    def work() -> str:
        for gate in ("one", "two"):
            interrupt(gate)
        effects.add("work")
        return "ok"

    bot(store, WORK, work).run("go", execution_id="r1")
    options = {"pause": 3} if bound else {}
    readers = threading.Barrier(5)
    stores = [Together(opened(), readers) for _ in range(5)]
    outcome = race(
        5, lambda n: bot(stores[n], WORK, work).resume("r1", resume_value=YES, **options)
    )
    assert outcome == {"paused": 1, "AlreadyResumed": 4}
    assert effects.lines == []
    assert [pause.reason for pause in store.list_pending_interrupts()] == ["two"]


def test_who_lost_is_told_who_won_and_when(store, elsewhere) -> None:
    now = Ports(clock=lambda: 10**15)
    bot(store, WORK, work_tool(plain), ports=now).run("go", execution_id="r1")
    bot(store, WORK, work_tool(plain), ports=now).resume("r1", resume_value=Resume(True, by="ann"))
    with pytest.raises(AlreadyResumed, match="ann approved pause 3 at 2001-09-09 01:46:40 UTC"):
        bot(elsewhere, WORK, work_tool(plain)).resume("r1", resume_value=NO, pause=3)


def test_an_answer_survives_a_resumer_that_dies_after_its_claim(store, elsewhere, effects) -> None:
    def dying() -> str:
        interrupt("why")
        raise KeyboardInterrupt

    @idempotent
    def charge() -> str:
        effects.add("charge")
        return "ok"

    def working() -> str:
        interrupt("why")
        return charge()

    bot(store, WORK, work_tool(dying)).run("go", execution_id="r1")
    with pytest.raises(KeyboardInterrupt):
        bot(store, WORK, work_tool(dying)).resume("r1", resume_value=Resume(True, by="ann"))
    assert [run.status for run in elsewhere.runs()] == ["crashed"]
    with pytest.raises(AlreadyResumed, match="ann approved"):
        bot(elsewhere, WORK, work_tool(working)).resume("r1", resume_value=NO)
    result = bot(elsewhere, WORK, work_tool(working)).resume("r1")
    assert (result.status, effects.lines) == ("completed", ["charge"])


def test_an_answer_survives_a_model_that_fails_after_the_tool(store, elsewhere, effects) -> None:
    def work() -> str:
        if interrupt("why").approved:
            effects.add("work")
        return "ok"

    script = [call("work"), ConnectionError("503"), "done"]
    agent = bot(store, script, work)
    agent.run("go", execution_id="r1")
    with pytest.raises(ConnectionError):
        agent.resume("r1", resume_value=Resume(True, by="ann"))
    result = bot(elsewhere, WORK, work).resume("r1")
    assert (result.status, effects.lines) == ("completed", ["work"])
    answers = [row.entry for row in store.load("r1").rows if isinstance(row.entry, Answer)]
    assert [(answer.by, answer.approved) for answer in answers] == [("ann", True)]


def test_a_tool_that_died_before_it_asked_asks_on_resume(store, elsewhere, effects) -> None:
    died = []

    def work() -> str:
        if not died:
            died.append(1)
            raise KeyboardInterrupt
        interrupt("why")
        effects.add("work")
        return "ok"

    with pytest.raises(KeyboardInterrupt):
        bot(store, WORK, work).run("go", execution_id="r1")
    assert bot(elsewhere, WORK, work).resume("r1").status == "paused"
    with pytest.raises(RunPaused):
        bot(store, WORK, work).resume("r1")
    assert bot(store, WORK, work).resume("r1", resume_value=YES).status == "completed"
    assert effects.lines == ["work"]


def test_a_pause_after_a_crash_is_the_one_that_would_have_been(store, elsewhere) -> None:
    died = []

    def work() -> str:
        if not died:
            died.append(1)
            raise KeyboardInterrupt
        return interrupt("why", {"amount": 5000}).by

    with pytest.raises(KeyboardInterrupt):
        bot(store, WORK, work).run("go", execution_id="died")
    bot(elsewhere, WORK, work).resume("died")
    bot(store, WORK, work).run("go", execution_id="lived")
    after_death, alive = (store.get_last(each) for each in ("died", "lived"))
    assert after_death.entry == alive.entry
    assert (after_death.node_id, after_death.agent_path) == (alive.node_id, alive.agent_path)
    result = bot(elsewhere, WORK, work).resume("died", resume_value=Resume(True, by="ann"))
    assert told(result) == ["ann"]


# --- edits ----------------------------------------------------------------------------------------


def test_edited_arguments_run_and_the_log_shows_both(store, effects) -> None:
    def refund(order: str, amount: int) -> str:
        interrupt("why", {"amount": amount})
        effects.add(f"refund {amount}")
        return "ok"

    agent = bot(store, [call("refund", order="1", amount=100), "done"], refund)
    agent.run("go", execution_id="r1")
    for edited, says in (({"amount": "many"}, "edit"), ({"amounts": 1}, "; .* takes .*amount")):
        with pytest.raises(InvalidInput, match=says):
            agent.resume("r1", resume_value=Resume(True, edited=edited))
    result = agent.resume("r1", resume_value=Resume(True, edited={"amount": 90}, by="ann"))
    assert effects.lines == ["refund 90"]
    assert told(result) == ["[approved with edits: amount=90]\nok"]
    rows = store.load("r1").rows
    assert (rows[1].entry.arguments["amount"], rows[3].entry.edited) == (100, {"amount": 90})
    assert rows[3].entry.shown != rows[3].entry.ran


def test_a_gate_whose_context_cannot_be_stored_is_no_way_through(store: Checkpointer, effects):
    """Decision 2: the signal leaves the tool, whatever the tool suppresses."""

    @work_tool
    def work() -> str:
        with contextlib.suppress(Exception):
            interrupt("why", {"token": object()})
        effects.add("went on")
        return "went on"

    result = bot(store, WORK, work).run("go", execution_id="r1")
    assert "context['token']" in told(result)[0]
    assert effects.lines == []
