"""R5: a fork branches any run at any step under a new id, and leaves the original untouched."""

from __future__ import annotations

import pytest

from durable_nb import (
    AgentMismatch,
    AlreadyResumed,
    Checkpointer,
    ExecutionExists,
    ForkRefused,
    InvalidInput,
    MissingTool,
    Resume,
    RunPaused,
    UnknownExecution,
    call,
    interrupt,
)
from durable_nb.core.state import fold
from tests.support.agents import bot, nodes, told

YES = Resume(True, by="ann")
SCRIPT = [call("refund", order="1042", amount=20), "Refund is on its way."]
LARGE = [call("refund", order="1042", amount=5000), "Refund is on its way."]


def refund_with(effects):
    def refund(order: str, amount: int) -> str:
        """Pay an order back."""
        if amount > 100 and not interrupt("approval", {"amount": amount}).approved:
            return "no refund"
        effects.add(f"{order} {amount}")
        return f"refunded {amount}"

    return refund


@pytest.mark.parametrize(
    ("at", "charges", "asked"),
    [
        ("turn:0", 2, 2),
        (1, 2, 2),
        ("turn:0/tool:refund", 2, 1),
        (2, 2, 1),
        ("turn:1", 1, 1),
        (None, 1, 1),
    ],
)
def test_a_finished_run_is_forked_at_any_step(store: Checkpointer, effects, at, charges, asked):
    refund = refund_with(effects)
    bot(store, SCRIPT, refund).run("go", execution_id="r1")
    before = [str(row) for row in store.list("r1")]
    agent = bot(store, SCRIPT, refund)
    result = agent.fork("r1", at=at, execution_id="f1")
    assert (result.status, result.output) == ("completed", "Refund is on its way.")
    assert len(effects.lines) == charges
    assert agent.llm.asked == asked
    assert [str(row) for row in store.list("r1")] == before
    run = next(run for run in store.runs() if run.execution_id == "f1")
    assert (run.parent, run.session, run.status) == ("r1", "f1", "completed")


def test_a_fork_lists_its_own_rows_and_counts_on_from_its_parent(store: Checkpointer, effects):
    refund = refund_with(effects)
    bot(store, SCRIPT, refund).run("go", execution_id="r1")
    bot(store, SCRIPT, refund).fork("r1", at="turn:1", execution_id="f1")
    assert nodes(store, "f1") == [("turn:1", "completed"), ("run_end", "completed")]
    assert [row.number for row in store.list("f1")] == [4, 5]
    messages = store.get_last("f1").state_snapshot["messages"]
    assert messages == store.get_last("r1").state_snapshot["messages"]


def test_edited_arguments_replace_the_saved_ones(store: Checkpointer, effects):
    refund = refund_with(effects)
    bot(store, SCRIPT, refund).run("go", execution_id="r1")
    result = bot(store, SCRIPT, refund).fork("r1", at="turn:0/tool:refund", edit={"amount": 7})
    assert effects.lines == ["1042 20", "1042 7"]
    assert told(result) == ["refunded 7"]


def test_an_edit_of_a_run_that_waits_is_of_the_call_that_waits(store: Checkpointer, effects):
    refund = refund_with(effects)
    bot(store, LARGE, refund).run("go", execution_id="r1")
    agent = bot(store, LARGE, refund)
    assert agent.fork("r1", edit={"amount": 20}, execution_id="f1").status == "completed"
    assert effects.lines == ["1042 20"]
    larger = agent.fork("r1", edit={"amount": 7000}, execution_id="f2")
    assert larger.pending_interrupt["context"] == {"amount": 7000}
    with pytest.raises(InvalidInput, match="no arguments to edit"):
        agent.fork("r1", at=3, edit={"amount": 20})


@pytest.mark.parametrize("edit", [{"amount": "many"}, {"colour": "red"}])
def test_an_edit_that_the_tool_cannot_take_changes_nothing(store: Checkpointer, effects, edit):
    refund = refund_with(effects)
    bot(store, SCRIPT, refund).run("go", execution_id="r1")
    with pytest.raises(InvalidInput, match="edit"):
        bot(store, SCRIPT, refund).fork("r1", at=2, edit=edit)
    with pytest.raises(InvalidInput, match="no arguments"):
        bot(store, SCRIPT, refund).fork("r1", at="turn:1", edit={"amount": 1})
    with pytest.raises(InvalidInput, match="mapping"):
        bot(store, SCRIPT, refund).fork("r1", at=2, edit=["amount"])
    assert [run.execution_id for run in store.runs()] == ["r1"]


def test_a_prompt_is_said_before_the_model_is_asked_next(store: Checkpointer, effects):
    refund = refund_with(effects)
    bot(store, SCRIPT, refund).run("go", execution_id="r1")
    at_turn = bot(store, SCRIPT, refund).fork("r1", at="turn:1", prompt="in French")
    at_tool = bot(store, SCRIPT, refund).fork("r1", at="turn:0/tool:refund", prompt="in French")
    for result in (at_turn, at_tool):
        roles = [message.role for message in result.messages]
        assert roles == ["user", "assistant", "tool", "user", "assistant"]
        assert result.messages[3].content == "in French"


@pytest.mark.parametrize("at", [3, 4])
def test_an_approval_is_never_inherited(store: Checkpointer, effects, at):
    refund = refund_with(effects)
    bot(store, LARGE, refund).run("go", execution_id="r1")
    bot(store, LARGE, refund).resume("r1", resume_value=YES)
    fork = bot(store, LARGE, refund).fork("r1", at=at, execution_id="f1")
    assert fork.status == "paused"
    assert fork.pending_interrupt["context"] == {"amount": 5000}
    (waiting,) = store.list_pending_interrupts()
    assert (waiting.execution_id, waiting.arguments) == ("f1", {"order": "1042", "amount": 5000})
    assert effects.lines == ["1042 5000"]
    assert bot(store, LARGE, refund).resume("f1", resume_value=YES).status == "completed"
    assert effects.lines == ["1042 5000"] * 2


def test_a_fork_of_a_second_gate_asks_at_the_first_again(store: Checkpointer, effects):
    def pay() -> str:
        interrupt("manager")
        interrupt("vp")
        effects.add("paid")
        return "paid"

    script = [call("pay"), "done"]
    bot(store, script, pay).run("go", execution_id="r1")
    bot(store, script, pay).resume("r1", resume_value=YES)
    fork = bot(store, script, pay).fork("r1", execution_id="f1")
    assert fork.pending_interrupt["reason"] == "vp"
    again = bot(store, script, pay).resume("f1", resume_value=YES)
    assert again.pending_interrupt["reason"] == "manager"
    bot(store, script, pay).resume("f1", resume_value=YES)
    assert effects.lines == ["paid"]


def test_paused_crashed_and_forked_runs_can_be_forked(store: Checkpointer, effects):
    refund = refund_with(effects)

    def dies(order: str, amount: int) -> str:
        raise KeyboardInterrupt

    dies.__name__ = "refund"
    bot(store, LARGE, refund).run("go", execution_id="paused")
    with pytest.raises(KeyboardInterrupt):
        bot(store, SCRIPT, dies).run("go", execution_id="crashed")
    assert bot(store, LARGE, refund).fork("paused", execution_id="p1").status == "paused"
    first = bot(store, SCRIPT, refund).fork("crashed", execution_id="c1")
    second = bot(store, SCRIPT, refund).fork("c1", at="turn:0/tool:refund", execution_id="c2")
    third = bot(store, SCRIPT, refund).fork("c2", at="turn:1", execution_id="c3")
    assert [each.status for each in (first, second, third)] == ["completed"] * 3
    assert first.messages == second.messages == third.messages
    assert {run.execution_id: run.status for run in store.runs()}["crashed"] == "crashed"
    with pytest.raises(RunPaused):
        bot(store, LARGE, refund).resume("p1")


def test_a_fork_at_the_end_is_refused(store: Checkpointer, effects):
    refund = refund_with(effects)
    bot(store, SCRIPT, refund).run("go", execution_id="r1")
    agent = bot(store, SCRIPT, refund)
    for at in ("run_end", 4):
        with pytest.raises(ForkRefused, match="not a step"):
            agent.fork("r1", at=at)
    for at in ("turn:9", 99, 0, -1, ""):
        with pytest.raises(ForkRefused, match="no entry"):
            agent.fork("r1", at=at)
    with pytest.raises(UnknownExecution):
        agent.fork("nope")
    with pytest.raises(ExecutionExists):
        agent.fork("r1", execution_id="r1")
    with pytest.raises(MissingTool):
        bot(store, SCRIPT).fork("r1", at="turn:0/tool:refund")
    stranger = bot(store, SCRIPT, refund)
    stranger.name = "other"
    with pytest.raises(AgentMismatch):
        stranger.fork("r1")
    assert [run.execution_id for run in store.runs()] == ["r1"]


def test_a_run_that_ends_as_a_fork_refuses_a_resume(store: Checkpointer, effects):
    refund = refund_with(effects)
    bot(store, SCRIPT, refund).run("go", execution_id="r1")
    bot(store, SCRIPT, refund).fork("r1", execution_id="f1")
    with pytest.raises(AlreadyResumed):
        bot(store, SCRIPT, refund).resume("f1")


def test_a_fork_counts_its_own_tokens(store: Checkpointer, effects):
    from durable_nb import Message, Reply, Usage

    refund = refund_with(effects)
    script = [
        Reply(
            Message("assistant", tool_calls=(call("refund", order="1", amount=1),)), Usage(10, 1)
        ),
        Reply(Message("assistant", "done"), Usage(20, 2)),
    ]
    assert bot(store, script, refund).run("go", execution_id="r1").usage == Usage(30, 3)
    assert bot(store, script, refund).fork("r1", at="turn:1").usage == Usage(20, 2)


def test_a_run_knows_the_forks_and_follow_ups_that_go_on_from_it(
    store: Checkpointer, elsewhere: Checkpointer
) -> None:
    agent = bot(store, ["One.", "Two."])
    agent.run("go", execution_id="r1")
    assert store.branches("r1") == []
    agent.fork("r1", at=1, execution_id="b")
    agent.resume("r1", prompt="and then?")
    agent.fork("b", execution_id="c")
    assert elsewhere.branches("r1") == [("b", 1), ("r1-2", 2)]
    assert elsewhere.branches("b") == [("c", 1)]
    with pytest.raises(UnknownExecution):
        elsewhere.branches("nothing")


def test_a_fork_begins_at_a_step_that_its_source_has_from_its_own_parent(
    store: Checkpointer, effects
):
    agent = bot(store, [*SCRIPT, "Anything else?", "Bye."], refund_with(effects))
    agent.run("go", execution_id="r1")
    agent.resume("r1", prompt="thanks")
    source = store.load("r1-2").rows
    for at in (1, 2, 3, 5):
        result = agent.fork("r1-2", at=at, execution_id=f"f{at}")
        again = store.load(f"f{at}").rows
        assert [row.number for row in again] == list(range(1, len(again) + 1))
        assert again[: at - 1] == source[: at - 1]
        assert tuple(fold(again).transcript) == tuple(result.messages)
