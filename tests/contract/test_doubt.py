"""R4: a call that had begun and left no result is in doubt; people say what becomes of it."""

from __future__ import annotations

import asyncio

import pytest

from durable_nb import (
    Checkpointer,
    InvalidInput,
    InvalidTool,
    Resume,
    Tool,
    call,
    idempotent,
    interrupt,
    tool,
)
from tests.support.agents import bot, nodes, told

SCRIPT = [call("pay", order="1042"), "done"]


class Dies:
    """A side effect whose process dies after it, as often as it is told to."""

    def __init__(self, effects, times: int = 1) -> None:
        self.effects, self.left = effects, times

    def __call__(self, order: str) -> str:
        self.effects.add(order)
        self.left -= 1
        if self.left >= 0:
            raise KeyboardInterrupt
        return "paid"


def pay_tool(effect, **options) -> Tool:
    @tool(name="pay", **options)
    def pay(order: str) -> str:
        """Pay."""
        return effect(order)

    return pay


def crashed(store: Checkpointer, pay: Tool) -> None:
    with pytest.raises(KeyboardInterrupt):
        bot(store, SCRIPT, pay).run("go", execution_id="r1")


def test_by_default_the_tool_runs_again(store: Checkpointer, effects):
    pay = pay_tool(Dies(effects))
    crashed(store, pay)
    assert bot(store, SCRIPT, pay).resume("r1").status == "completed"
    assert effects.lines == ["1042", "1042"]


def test_a_fork_at_a_tool_that_asks_on_crash_runs_it(store: Checkpointer, effects):
    pay = pay_tool(Dies(effects, times=0), on_crash="ask")
    bot(store, SCRIPT, pay).run("go", execution_id="r1")
    assert bot(store, SCRIPT, pay).fork("r1", at="turn:0/tool:pay").status == "completed"
    assert effects.lines == ["1042", "1042"]


def test_a_tool_that_fails_on_crash_is_not_run_and_the_model_is_told(store: Checkpointer, effects):
    pay = pay_tool(Dies(effects), on_crash="fail")
    crashed(store, pay)
    result = bot(store, SCRIPT, pay).resume("r1")
    assert result.status == "completed"
    assert told(result) == [
        '[in doubt: pay(order="1042") had begun when its process died; it was not run again]'
    ]
    assert effects.lines == ["1042"]


def test_a_tool_that_asks_on_crash_pauses_the_run(store: Checkpointer, effects):
    pay = pay_tool(Dies(effects), on_crash="ask")
    crashed(store, pay)
    result = bot(store, SCRIPT, pay).resume("r1")
    assert result.status == "paused"
    assert result.pending_interrupt["reason"] == "in_doubt"
    assert result.pending_interrupt["context"] == {"tool": "pay", "arguments": {"order": "1042"}}
    (waiting,) = store.list_pending_interrupts()
    assert waiting.asks == "in_doubt"
    assert effects.lines == ["1042"]


@pytest.mark.parametrize(
    ("answer", "read", "effect"),
    [
        (Resume.happened("it was paid"), "it was paid", 1),
        (Resume.happened({"id": 7}), '{"id":7}', 1),
        (Resume.happened(), "null", 1),
        (Resume.run_again(), "paid", 2),
    ],
)
def test_the_answer_decides(store: Checkpointer, effects, answer, read, effect):
    pay = pay_tool(Dies(effects), on_crash="ask")
    crashed(store, pay)
    bot(store, SCRIPT, pay).resume("r1")
    result = bot(store, SCRIPT, pay).resume("r1", resume_value=answer)
    assert (result.status, told(result)) == ("completed", [read])
    assert len(effects.lines) == effect


def test_stop_cancels_the_run(store: Checkpointer, effects):
    pay = pay_tool(Dies(effects), on_crash="ask")
    crashed(store, pay)
    bot(store, SCRIPT, pay).resume("r1")
    result = bot(store, SCRIPT, pay).resume("r1", resume_value=Resume.stop(by="ann"))
    assert (result.status, result.output) == ("cancelled", None)
    assert store.get_last("r1").entry.error == "stopped by ann"
    assert effects.lines == ["1042"]


def test_an_answer_is_good_for_one_attempt(store: Checkpointer, effects):
    pay = pay_tool(Dies(effects, times=2), on_crash="ask")
    crashed(store, pay)
    bot(store, SCRIPT, pay).resume("r1")
    with pytest.raises(KeyboardInterrupt):
        bot(store, SCRIPT, pay).resume("r1", resume_value=Resume.run_again())
    assert bot(store, SCRIPT, pay).resume("r1").status == "paused"
    assert effects.lines == ["1042", "1042"]


def test_a_tool_that_died_after_its_approval_is_in_doubt_too(store: Checkpointer, effects):
    effect = Dies(effects)

    @tool(name="pay", on_crash="ask")
    def pay(order: str) -> str:
        if not interrupt("approval").approved:
            return "no"
        return effect(order)

    bot(store, SCRIPT, pay).run("go", execution_id="r1")
    with pytest.raises(KeyboardInterrupt):
        bot(store, SCRIPT, pay).resume("r1", resume_value=Resume(True))
    result = bot(store, SCRIPT, pay).resume("r1")
    assert result.pending_interrupt["reason"] == "in_doubt"
    result = bot(store, SCRIPT, pay).resume("r1", resume_value=Resume.run_again())
    assert (result.status, told(result)) == ("completed", ["paid"])
    assert len(effects.lines) == 2


def test_a_pause_about_a_call_in_doubt_changes_nothing_for_its_siblings(
    store: Checkpointer, effects
):
    script = [[call("pay", order="1"), call("pay", order="2")], "done"]
    pay = pay_tool(Dies(effects), on_crash="ask")
    with pytest.raises(KeyboardInterrupt):
        bot(store, script, pay).run("go", execution_id="r1")
    bot(store, script, pay).resume("r1")
    result = bot(store, script, pay).resume("r1", resume_value=Resume.happened("paid 1"))
    assert told(result) == ["paid 1", "paid"]
    assert effects.lines == ["1", "2"]


def test_the_wrong_kind_of_answer_is_refused(store: Checkpointer, effects):
    pay = pay_tool(Dies(effects), on_crash="ask")
    crashed(store, pay)
    agent = bot(store, SCRIPT, pay)
    agent.resume("r1")
    for approved in (True, False):
        with pytest.raises(InvalidInput, match="in doubt"):
            agent.resume("r1", resume_value=Resume(approved))

    def ask() -> str:
        return str(interrupt("why").approved)

    asking = bot(store, [call("ask"), "done"], ask)
    asking.run("go", execution_id="r2")
    for answer in (Resume.happened(1), Resume.run_again(), Resume.stop()):
        with pytest.raises(InvalidInput, match="approval"):
            asking.resume("r2", resume_value=answer)
    assert len(store.list_pending_interrupts()) == 2


def test_on_crash_and_in_doubt_take_only_what_they_know():
    with pytest.raises(InvalidTool, match="on_crash"):
        tool(name="pay", on_crash="retry")(len)
    with pytest.raises(InvalidInput, match="in_doubt"):
        idempotent(in_doubt="fail")


# --- @idempotent -----------------------------------------------------------------------------------


def asking_charge(effect, kind: str):
    if kind == "sync":

        @idempotent(in_doubt="ask")
        def charge(order: str) -> str:
            return effect(order)

        def pay(order: str) -> str:
            return f"charged: {charge(order)}"

    else:

        @idempotent(in_doubt="ask")
        async def charge(order: str) -> str:
            await asyncio.sleep(0)
            return effect(order)

        async def pay(order: str) -> str:
            return f"charged: {await charge(order)}"

    return tool(name="pay")(pay)


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize(
    ("answer", "read", "effect"),
    [(Resume.happened("by hand"), "charged: by hand", 1), (Resume.run_again(), "charged: paid", 2)],
)
def test_an_idempotent_call_in_doubt_asks(store: Checkpointer, effects, kind, answer, read, effect):
    pay = asking_charge(Dies(effects), kind)
    crashed(store, pay)
    result = bot(store, SCRIPT, pay).resume("r1")
    assert result.pending_interrupt["reason"] == "in_doubt"
    assert result.pending_interrupt["context"]["arguments"] == {"order": "1042"}
    result = bot(store, SCRIPT, pay).resume("r1", resume_value=answer)
    assert (result.status, told(result)) == ("completed", [read])
    assert len(effects.lines) == effect
    assert ("turn:0/tool:pay", "interrupted") in nodes(store, "r1")


def test_an_idempotent_answer_is_good_for_one_attempt(store: Checkpointer, effects):
    pay = asking_charge(Dies(effects, times=2), "sync")
    crashed(store, pay)
    bot(store, SCRIPT, pay).resume("r1")
    with pytest.raises(KeyboardInterrupt):
        bot(store, SCRIPT, pay).resume("r1", resume_value=Resume.run_again())
    again = bot(store, SCRIPT, pay).resume("r1")
    assert again.status == "paused"
    result = bot(store, SCRIPT, pay).resume("r1", resume_value=Resume.happened("paid twice"))
    assert told(result) == ["charged: paid twice"]
    assert len(effects.lines) == 2


def test_calls_in_doubt_are_on_record(store: Checkpointer, effects):
    effect = Dies(effects)

    @idempotent
    def charge(order: str) -> str:
        return effect(order)

    pay = pay_tool(charge)
    crashed(store, pay)
    (doubt,) = store.effects("r1")
    assert (doubt.attempts, doubt.kept_at) == (1, None)
    assert doubt.function.endswith("charge")
    bot(store, SCRIPT, pay).resume("r1")
    (kept,) = store.effects("r1")
    assert kept.attempts == 2
    assert kept.kept_at is not None


def test_a_gate_before_a_call_in_doubt_keeps_its_answer(store: Checkpointer, effects):
    effect = Dies(effects)

    @idempotent(in_doubt="ask")
    def charge(order: str) -> str:
        return effect(order)

    @tool(name="pay")
    def pay(order: str) -> str:
        decision = interrupt("approval")
        return f"{charge(order)} for {decision.by}"

    bot(store, SCRIPT, pay).run("go", execution_id="r1")
    with pytest.raises(KeyboardInterrupt):
        bot(store, SCRIPT, pay).resume("r1", resume_value=Resume(True, by="ann"))
    assert bot(store, SCRIPT, pay).resume("r1").pending_interrupt["reason"] == "in_doubt"
    result = bot(store, SCRIPT, pay).resume("r1", resume_value=Resume.happened("paid", by="bob"))
    assert told(result) == ["paid for ann"]
    assert effects.lines == ["1042"]
