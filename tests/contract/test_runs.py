"""R1, R5: a run and its rows, over every store: what is listed, how it ends, what is refused."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from durable_nb import (
    Agent,
    AgentMismatch,
    AlreadyResumed,
    Call,
    Checkpointer,
    DurableError,
    ExecutionExists,
    InvalidInput,
    MemoryCheckpointer,
    Message,
    MissingTool,
    ModelFailed,
    NotStorable,
    Reply,
    Resume,
    RunPaused,
    ScriptedModel,
    TurnLimit,
    UnknownExecution,
    Usage,
    call,
    current,
    idempotent,
    interrupt,
    tool,
)
from durable_nb.core.nodes import listing
from durable_nb.runtime.ports import Ports
from tests.support.agents import bot, nodes
from tests.support.ledger import Ledger

SMALL = [call("refund", order="1042", amount=20), "Refund for order 1042 is on its way."]
LARGE = [call("refund", order="1042", amount=5000), "Done."]


def refund_tool(effects: Ledger):
    @idempotent
    def charge(order: str, amount: int) -> dict[str, bool]:
        effects.add(f"charge {order} {amount}")
        return {"ok": True}

    def refund(order: str, amount: int) -> str:
        """Refund an order."""
        if amount > 100 and not interrupt("manager_approval", {"amount": amount}).approved:
            return "no refund"
        charge(order, amount)
        return f"refunded {amount}"

    return refund


def test_a_completed_run_lists_as_four_rows(store, effects) -> None:
    result = bot(store, SMALL, refund_tool(effects)).run("Refund order 1042", execution_id="small")
    assert (result.status, result.output) == ("completed", SMALL[1])
    assert result.execution_id == "small"
    assert result.pending_interrupt is None
    assert effects.lines == ["charge 1042 20"]
    assert listing(store.list("small")) == (
        "#0 turn:0              llm_call   completed\n"
        "#0 turn:0/tool:refund  tool_call  completed\n"
        "#1 turn:1              llm_call   completed\n"
        "#2 run_end             run_end    completed"
    )
    assert [row.agent_path for row in store.list("small")] == [
        "agent:bot",
        "agent:bot/tool:refund",
        "agent:bot",
        "agent:bot",
    ]


def test_a_paused_run_lists_as_three_rows_and_has_no_end(store, elsewhere, effects) -> None:
    result = bot(store, LARGE, refund_tool(effects)).run("Refund order 1042", execution_id="large")
    assert (result.status, result.output) == ("paused", None)
    assert result.pending_interrupt == {
        "reason": "manager_approval",
        "context": {"amount": 5000},
        "node_id": "turn:0/tool:refund",
        "agent_path": "agent:bot/tool:refund",
        "number": 3,
    }
    assert effects.lines == []
    assert listing(elsewhere.list("large")) == (
        "#0 turn:0              llm_call    completed\n"
        "#0 turn:0/tool:refund  tool_call   completed\n"
        "#0 turn:0/tool:refund  hitl_pause  interrupted"
    )
    assert not elsewhere.load("large").live
    assert [run.status for run in elsewhere.runs()] == ["paused"]


def test_a_row_is_on_disk_before_its_step_begins(store, elsewhere) -> None:
    seen: list[list[tuple[str, str]]] = []

    def look() -> str:
        seen.append(nodes(elsewhere, current().execution_id))
        return "seen"

    def script(messages):
        seen.append(nodes(elsewhere, "r1"))
        return call("look") if len(messages) == 1 else "done"

    bot(store, script, look).run("go", execution_id="r1")
    turn, tool_row = ("turn:0", "completed"), ("turn:0/tool:look", "completed")
    assert seen == [[turn], [turn, tool_row], [turn, tool_row, ("turn:1", "completed")]]


def test_each_row_carries_what_had_been_said_up_to_it(store, elsewhere, effects) -> None:
    bot(store, SMALL, refund_tool(effects)).run("go", execution_id="r1")
    said = [row.state_snapshot["messages"] for row in elsewhere.list("r1")]
    assert [[message.role for message in each] for each in said] == [
        ["user"],
        ["user", "assistant"],
        ["user", "assistant", "tool"],
        ["user", "assistant", "tool", "assistant"],
    ]
    (asked,) = said[1][-1].tool_calls
    assert (asked.tool, asked.arguments) == ("refund", {"order": "1042", "amount": 20})


class Bare:
    """A store with the methods that `Checkpointer` names, and no others."""

    def __init__(self, store: Checkpointer) -> None:
        self._store = store

    def __getattr__(self, name: str) -> object:
        if name.startswith("_") or name not in vars(Checkpointer):
            raise AttributeError(f"{name!r} is not in the protocol")
        return getattr(self._store, name)


def test_an_agent_asks_no_more_of_a_store_than_the_protocol_has(store, elsewhere, effects) -> None:
    agent = bot(Bare(store), [*LARGE, "Now this."], refund_tool(effects))
    assert agent.run("go", execution_id="r1").status == "paused"
    assert agent.resume("r1", resume_value=Resume(True)).status == "completed"
    assert agent.fork("r1", at="turn:1").output == "Done."
    assert agent.resume("r1", prompt="and now?").execution_id == "r1-2"
    assert {run.status for run in elsewhere.runs()} == {"completed"}
    assert effects.lines == ["charge 1042 5000"]


@pytest.mark.parametrize("state", ["completed", "paused", "crashed", "failed"])
def test_run_never_repeats_an_id(store, elsewhere, effects, state: str) -> None:
    def work(amount: int) -> str:
        effects.add("work")
        if amount > 100:
            interrupt("why")
        if amount < 0:
            raise KeyboardInterrupt
        return "ok"

    amounts = {"completed": 1, "paused": 101, "crashed": -1, "failed": 1}
    script = [call("work", amount=amounts[state]), "done"]
    model = [script[0], ValueError("no")] if state == "failed" else script
    with suppress(KeyboardInterrupt, ValueError):
        bot(store, model, work).run("go", execution_id="r1")
    before = store.load("r1")
    agent = bot(elsewhere, script, work)
    with pytest.raises(ExecutionExists, match="'r1'"):
        agent.run("go", execution_id="r1")
    assert agent.llm.asked == 0
    assert effects.lines == ["work"]
    assert elsewhere.load("r1") == before
    assert {run.status for run in store.runs()} == {state}


def test_a_completed_run_refuses_a_resume_and_says_when_it_ended(store, effects) -> None:
    clock = iter(range(10**15, 10**16, 10**6))
    agent = bot(store, SMALL, refund_tool(effects), ports=Ports(clock=lambda: next(clock)))
    agent.run("go", execution_id="r1")
    for resume_value in (None, Resume(True), Resume(False)):
        with pytest.raises(AlreadyResumed, match=r"completed at 2001-09-09 01:46:\d\d UTC"):
            agent.resume("r1", resume_value=resume_value)
    assert agent.llm.asked == 2
    assert effects.lines == ["charge 1042 20"]


def test_a_failed_run_says_why_and_goes_on_where_it_failed(store, elsewhere, effects) -> None:
    script = [SMALL[0], ConnectionError("503"), SMALL[1]]
    agent = bot(store, script, refund_tool(effects))
    with pytest.raises(ConnectionError, match="503"):
        agent.run("go", execution_id="r1")
    last = elsewhere.get_last("r1")
    assert (last.status, last.entry.error) == ("failed", "ConnectionError: 503")
    assert [run.status for run in elsewhere.runs()] == ["failed"]
    result = bot(elsewhere, SMALL, refund_tool(effects)).resume("r1")
    assert result.output == SMALL[1]
    assert effects.lines == ["charge 1042 20"]
    assert nodes(store, "r1")[2:] == [
        ("turn:1", "completed"),
        ("run_end", "failed"),
        ("turn:1", "completed"),
        ("run_end", "completed"),
    ]


def test_an_error_that_leaves_a_run_names_it(store) -> None:
    """Nobody has said what the run is called, and it is what to resume."""

    class Bare:
        def complete(self, messages, tools):
            raise ModelFailed("no answer")

    agent = Agent("bot", Bare(), checkpointer=store)
    with pytest.raises(ModelFailed, match="no answer") as failed:
        agent.run("go")
    (run,) = store.runs()
    said = f"run {run.execution_id!r} is kept; resume it when that is mended"
    assert failed.value.__notes__ == [said]
    assert failed.value._render_traceback_() == [f"\x1b[31mModelFailed\x1b[0m: no answer; {said}"]


def test_an_error_that_names_its_run_does_not_name_it_again(store, effects) -> None:
    with pytest.raises(TurnLimit) as failed:
        bot(store, SMALL, refund_tool(effects), max_turns=1).run("go", execution_id="r1")
    assert not hasattr(failed.value, "__notes__")


def test_a_run_may_fail_again_and_again_and_still_complete(store, effects) -> None:
    script = [ValueError("a"), ValueError("b"), SMALL[0], ValueError("c"), SMALL[1]]
    agent = bot(store, script, refund_tool(effects))
    with pytest.raises(ValueError, match="a"):
        agent.run("go", execution_id="r1")
    for why in "bc":
        with pytest.raises(ValueError, match=why):
            agent.resume("r1")
    assert agent.resume("r1").status == "completed"
    assert effects.lines == ["charge 1042 20"]
    assert agent.llm.asked == 5


def test_what_a_model_must_not_answer_fails_the_run_with_its_name(store) -> None:
    said = Message("assistant", "x")
    for answer in (
        "text",
        None,
        Reply(Message("user", "I am you")),
        Reply("x"),
        Reply(said, None),
        Reply(said, Usage(1, None)),
        Reply(Message("assistant", None)),
        Reply(Message("assistant", b"x")),
        Reply(Message("assistant", "x", None)),
        Reply(Message("assistant", "x", ({"tool": "work"},))),
        Reply(Message("assistant", "x", (Call(["work"]),))),
        Reply(Message("assistant", "x", (Call("work", {}, 5),))),
        Reply(Message("assistant", "x", extra=None)),
    ):

        class Odd:
            def complete(self, messages, tools, answer=answer):
                return answer

        with pytest.raises(InvalidInput, match=r"complete\(\) returns an assistant Reply"):
            Agent("bot", Odd(), checkpointer=store).run("go")  # type: ignore[arg-type]
    assert {run.status for run in store.runs()} == {"failed"}
    for run in store.runs():
        agent = Agent("bot", ScriptedModel(["better"]), checkpointer=store)
        assert agent.resume(run.execution_id).output == "better"


def test_a_reply_that_cannot_be_stored_fails_the_run_before_its_tool_runs(store, effects) -> None:
    script = [call("work", value=object())]
    with pytest.raises(NotStorable, match=r"\['value'\]"):
        bot(store, script, tool(name="work")(lambda value: effects.add("x"))).run("go")
    assert effects.lines == []
    assert {run.status for run in store.runs()} == {"failed"}


def test_the_turn_limit_fails_the_run_and_more_turns_go_on_with_it(store, effects) -> None:
    script = [SMALL[0], call("refund", order="1043", amount=7), "done"]
    refund = refund_tool(effects)
    with pytest.raises(TurnLimit, match=r"'r1'.* 2 turns.*max_turns"):
        bot(store, script, refund, max_turns=2).run("go", execution_id="r1")
    with pytest.raises(TurnLimit):
        bot(store, script, refund, max_turns=2).resume("r1")
    patient = bot(store, script, refund, max_turns=3)
    assert patient.resume("r1").output == "done"
    assert patient.llm.asked == 1
    assert effects.lines == ["charge 1042 20", "charge 1043 7"]


def test_usage_counts_over_the_whole_run(store) -> None:
    def priced(said, cost):
        message = Message("assistant", *(["", (said,)] if not isinstance(said, str) else [said]))
        return Reply(message, Usage(*cost))

    def gate() -> str:
        interrupt("why")
        return "ok"

    script = [priced(call("gate"), (10, 1)), priced(call("gate"), (20, 2)), priced("done", (30, 3))]
    agent = bot(store, script, gate)
    assert agent.run("go", execution_id="r1").usage == Usage(10, 1)
    assert agent.resume("r1", resume_value=Resume(True)).usage == Usage(30, 3)
    result = bot(store, script, gate).resume("r1", resume_value=Resume(True))
    assert result.usage == Usage(60, 6)
    assert result.usage.total_tokens == 66


def test_numbers_order_a_run_whatever_the_clock_says(store, elsewhere, effects) -> None:
    for execution_id, step in (("still", 0), ("backwards", -3_600_000_000)):
        now = [10**15]

        def clock(now=now, step=step) -> int:
            now[0] += step
            return now[0]

        agent = bot(store, LARGE, refund_tool(effects), ports=Ports(clock=clock))
        agent.run("go", execution_id=execution_id)
        agent.resume(execution_id, resume_value=Resume(True))
        assert [row.number for row in elsewhere.list(execution_id)] == [1, 2, 3, 4, 5, 6]
        assert [row.step_type for row in elsewhere.list(execution_id)] == [
            "llm_call",
            "tool_call",
            "hitl_pause",
            "resume",
            "llm_call",
            "run_end",
        ]
    assert [run.execution_id for run in elsewhere.runs()] == ["backwards", "still"]
    assert [run.status for run in elsewhere.runs()] == ["completed"] * 2


def test_an_execution_id_is_minted_by_the_ports_when_left_out(store) -> None:
    agent = bot(store, ["hi"], ports=Ports(new_id=iter(["first", "second"]).__next__))
    assert [agent.run("go").execution_id for _ in range(2)] == ["first", "second"]
    real = bot(store, ["hi"])
    assert real.run("go").execution_id != real.run("go").execution_id


def test_a_system_prompt_a_workdir_and_tags_are_kept(store, elsewhere, tmp_path) -> None:
    places = []

    def where() -> str:
        places.append(current().workdir)
        return "here"

    agent = bot(store, [call("where"), "ok"], where, system_prompt="be brief")
    result = agent.run("go", execution_id="r1", workdir=tmp_path / "x" / "..", tags=["a", "b"])
    assert [message.role for message in result.messages[:2]] == ["system", "user"]
    (run,) = elsewhere.runs()
    assert (run.workdir, run.tags, run.prompt) == (str(tmp_path), ("a", "b"), "go")
    assert places == [str(tmp_path)]


BAD_INPUT = [
    ({"prompt": ""}, "a prompt is text"),
    ({"prompt": " \n\t "}, "a prompt is text"),
    ({"prompt": None}, "a prompt is text"),
    ({"prompt": ["hi"]}, "a prompt is text"),
    ({"prompt": "x" * 10_000_001}, r"10,000,001 bytes.*10,000,000"),
    ({"prompt": "é" * 5_000_001}, "10,000,002 bytes"),
    ({"execution_id": ""}, "execution_id is text"),
    ({"execution_id": 7}, "execution_id is text"),
    ({"execution_id": "x" * 513}, "512 bytes"),
    ({"execution_id": "é" * 257}, "512 bytes"),
    ({"execution_id": "a\0b"}, "no NUL"),
    ({"tags": "demo"}, "tags"),
    ({"tags": [5]}, "a tag"),
    ({"tags": ["a\0"]}, "no NUL"),
    ({"execution_id": "\ud800"}, "not valid text"),
]


@pytest.mark.parametrize(("given", "why"), BAD_INPUT, ids=[why for _, why in BAD_INPUT])
def test_bad_input_is_refused_and_changes_nothing(store, given, why: str) -> None:
    agent = bot(store, ["hi"])
    with pytest.raises(InvalidInput, match=why) as refused:
        agent.run(**{"prompt": "go", **given})
    assert isinstance(refused.value, ValueError)
    with pytest.raises(InvalidInput, match=why):
        asyncio.run(agent.arun(**{"prompt": "go", **given}))
    assert agent.llm.asked == 0
    assert list(store.runs()) == []


def test_the_largest_prompt_and_the_longest_id_are_taken(store) -> None:
    prompt, execution_id = "x" * 10_000_000, "é" * 256
    result = bot(store, ["ok"]).run(prompt, execution_id=execution_id)
    assert result.messages[0].content == prompt
    assert len(store.runs()[0].prompt) <= 500
    assert store.load(execution_id).rows[0].entry.messages[0].content == prompt


@pytest.mark.parametrize(
    "prompt", ["a\0b", "\ud800 lone", "'; drop table runs; --", "{{x}} 🎉 </div>", "\\u0000"]
)
def test_a_prompt_is_data(store, elsewhere, prompt: str) -> None:
    result = bot(store, ["ok"]).run(prompt, execution_id="r1")
    assert result.messages[0].content == prompt
    assert elsewhere.load("r1").rows[0].entry.messages[0].content == prompt
    assert len(elsewhere.runs()) == 1


@pytest.mark.parametrize(
    "execution_id", ["", "nope", "x" * 10_240, "a'--", "../r1", "\0", "\ud800"]
)
def test_a_resume_of_an_unknown_run_says_so_and_asks_no_model(store, execution_id: str) -> None:
    agent = bot(store, ["hi"])
    agent.run("go", execution_id="r1")
    for options in ({}, {"resume_value": Resume(True)}, {"take_over": True}):
        with pytest.raises(UnknownExecution, match=r"no run .*views\.runs\(\)"):
            agent.resume(execution_id, **options)
    assert agent.llm.asked == 1


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"name": ""}, "agent's name"),
        ({"name": "  "}, "agent's name"),
        ({"name": None}, "agent's name"),
        ({"llm": "opnai:gpt-5"}, "did you mean openai"),
        ({"llm": object()}, "complete"),
        ({"llm": None}, "complete"),
        ({"max_turns": 0}, "max_turns"),
        ({"max_turns": -1}, "max_turns"),
        ({"max_turns": 1.5}, "max_turns"),
        ({"max_turns": True}, "max_turns"),
        ({"name": "a\0b"}, "no NUL"),
        ({"name": "a\ud800"}, "not valid text"),
        ({"system_prompt": 5}, "system prompt"),
        ({"checkpointer": "runs.sqlite3"}, "SQLiteCheckpointer"),
    ],
)
def test_an_agent_that_cannot_work_is_refused_when_it_is_made(options, why: str) -> None:
    given = {"name": "bot", "llm": bot(MemoryCheckpointer(), ["hi"]).llm, **options}
    with pytest.raises(DurableError, match=why):
        Agent(**given)


def test_another_agents_run_is_refused(store, effects) -> None:
    bot(store, LARGE, refund_tool(effects)).run("go", execution_id="r1")
    other = Agent("other", bot(store, LARGE).llm, [refund_tool(effects)], checkpointer=store)
    with pytest.raises(AgentMismatch, match=r"'r1' belongs to agent 'bot'.*'other'"):
        other.resume("r1", resume_value=Resume(True))
    assert len(store.list_pending_interrupts()) == 1


def test_a_missing_tool_is_named_before_anything_is_claimed(store, elsewhere, effects) -> None:
    bot(store, LARGE, refund_tool(effects)).run("go", execution_id="r1")
    without = bot(elsewhere, LARGE, tool(name="other")(lambda: "x"))
    with pytest.raises(MissingTool, match="'refund'"):
        without.resume("r1", resume_value=Resume(True))
    assert len(store.load("r1").rows) == 3
    assert [pause.number for pause in store.list_pending_interrupts()] == [3]
    right = bot(elsewhere, LARGE, refund_tool(effects))
    assert right.resume("r1", resume_value=Resume(True)).status == "completed"
    assert effects.lines == ["charge 1042 5000"]


def test_a_missing_sibling_tool_is_named_too(store, effects) -> None:
    def first() -> str:
        raise KeyboardInterrupt

    script = [[call("first"), call("second")], "done"]
    with pytest.raises(KeyboardInterrupt):
        bot(store, script, first, tool(name="second")(lambda: "x")).run("go", execution_id="r1")
    with pytest.raises(MissingTool, match="'second'"):
        bot(store, script, tool(name="first")(lambda: "x")).resume("r1")
    assert len(store.load("r1").rows) == 2


def test_a_paused_run_wants_a_decision(store, effects) -> None:
    agent = bot(store, LARGE, refund_tool(effects))
    agent.run("go", execution_id="r1")
    with pytest.raises(RunPaused, match=r"'manager_approval'.*resume_value"):
        agent.resume("r1")
    assert len(store.load("r1").rows) == 3


def test_a_resume_through_an_old_handle_after_another_process_finished(
    store, elsewhere, effects
) -> None:
    old = bot(store, LARGE, refund_tool(effects))
    result = old.run("go", execution_id="r1")
    bot(elsewhere, LARGE, refund_tool(effects)).resume(
        "r1", resume_value=Resume(True, metadata={"approver": "ann"})
    )
    with pytest.raises(AlreadyResumed, match="ann approved"):
        old.resume(result.execution_id, resume_value=Resume(True), pause=3)
    assert effects.lines == ["charge 1042 5000"]


def test_a_run_is_seen_alone_by_its_id(store, effects) -> None:
    refund = refund_tool(effects)
    for execution_id in ("one", "two"):
        bot(store, SMALL, refund).run("go", execution_id=execution_id)
    assert effects.lines == ["charge 1042 20"] * 2
    assert {row.execution_id for row in store.list("one")} == {"one"}


def test_a_default_store_is_a_file_of_the_working_directory(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DURABLE_NB_STORE", raising=False)
    agent = Agent("bot", bot(MemoryCheckpointer(), ["hi"]).llm)
    assert list(tmp_path.iterdir()) == []
    agent.run("go", execution_id="r1")
    assert (tmp_path / ".durable" / "runs.sqlite3").is_file()
    monkeypatch.setenv("DURABLE_NB_STORE", str(tmp_path / "else.sqlite3"))
    agent.run("go", execution_id="r1")
    assert Path(agent.checkpointer.path) == tmp_path / "else.sqlite3"
    agent.checkpointer.close()


def test_one_agent_drives_many_runs_at_once(store, effects) -> None:
    agent = bot(store, SMALL, refund_tool(effects))
    results: list[str] = []

    def one(index: int) -> None:
        results.append(agent.run("go", execution_id=f"r{index}").status)

    threads = [threading.Thread(target=one, args=[index]) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["completed"] * 6
    assert effects.lines == ["charge 1042 20"] * 6
