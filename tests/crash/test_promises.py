"""What the two documents that this project was made from ask of a durable run: a test for each
check of theirs that concerns a store and its processes. A docstring says what is held, and in
which section of theirs it stands: `boundaries` has numbered ones, `bugs` and `limits` are the
last two, `resuming` is the other document.

`tests/workspace/test_every_kill.py` holds the rest of `resuming`: killed anywhere, same tree.
`tests/docs/seeds.toml` says of every sentence of theirs where it is shown.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from durable_nb import (
    AlreadyResumed,
    ForkRefused,
    InvalidInput,
    MissingTool,
    Resume,
    idempotent,
    interrupt,
)
from durable_nb.core.nodes import listing
from tests.crash.agents import SCRIPT, make
from tests.support.agents import bot, told
from tests.support.children import Process
from tests.support.postgres import server
from tests.support.stores import STORES

CHARGE = "charge 1042 5000"
YES = Resume(True, by="ann")


@pytest.fixture
def killed_in(start, wait_for, tmp_path: Path):
    """Kills a child that has said a line, and lets whoever comes next go on."""

    def kill(agent: str, line: str) -> None:
        (tmp_path / "hold").touch()
        child = start(agent)
        wait_for(line)
        child.kill()
        (tmp_path / "go").touch()

    return kill


# --- 1: between one step and the next -------------------------------------------------------------


def test_a_run_that_completes_has_a_row_a_step_and_a_marker(start, store) -> None:
    """boundaries 1: two turns and a call are three rows, and the end is a fourth."""
    assert start("small").outcome() == "completed"
    assert listing(store.list("r1")).splitlines() == [
        "#0 turn:0              llm_call   completed",
        "#0 turn:0/tool:refund  tool_call  completed",
        "#1 turn:1              llm_call   completed",
        "#2 run_end             run_end    completed",
    ]


def test_a_run_that_pauses_has_a_pending_row_and_no_marker(start, store) -> None:
    """boundaries 1: a pause is one more row, somebody can be asked, and nothing has ended."""
    assert start("gated").outcome() == "paused"
    rows = store.list("r1")
    assert [row.step_type for row in rows] == ["llm_call", "tool_call", "hitl_pause"]
    (pending,) = store.list_pending_interrupts()
    assert (pending.reason, pending.context) == ("manager", {"order": "1042", "amount": 5000})
    assert {row.agent_path for row in rows} == {"agent:bot", "agent:bot/tool:refund"}


# --- 2: between the process that paused and the one that resumes ----------------------------------


def test_one_process_pauses_another_resumes_and_a_third_is_refused(
    start, store, effects, tmp_path
) -> None:
    """boundaries 2, bugs: the rows alone carry a run over, and carry it over once."""
    assert start("gated").outcome() == "paused"
    assert make("gated", store, tmp_path).resume("r1", resume_value=YES).status == "completed"
    assert start("gated", "approve").outcome() == "AlreadyResumed"
    assert start("gated", "resume").outcome() == "AlreadyResumed"
    assert effects.lines == [CHARGE]


def test_what_the_approver_sees_is_frozen(store, elsewhere) -> None:
    """boundaries 2: the world moves on after a pause, what is decided about does not."""
    world = {"balance": 100}

    def refund(order: str, amount: int) -> str:
        interrupt("manager", world)
        return "ok"

    bot(store, SCRIPT, refund).run("go", execution_id="r1")
    world["balance"] = 0
    assert [pause.context for pause in elsewhere.list_pending_interrupts()] == [{"balance": 100}]


def test_of_five_resumers_at_once_one_wins(start, store, effects, tmp_path) -> None:
    """boundaries 2 and 6, bugs: on each store. (`test_races` does it 200 times with twenty.)"""
    assert start("gated").outcome() == "paused"
    agent, together = make("gated", store, tmp_path), threading.Barrier(5)

    def resume(_: int) -> str:
        together.wait()
        try:
            return agent.resume("r1", resume_value=YES).status
        except AlreadyResumed:
            return "AlreadyResumed"

    with ThreadPoolExecutor(5) as pool:
        outcomes = Counter(pool.map(resume, range(5)))
    assert outcomes == {"completed": 1, "AlreadyResumed": 4}
    assert effects.lines == [CHARGE]


def test_a_resume_needs_the_tool_and_names_it(start, store, effects, tmp_path) -> None:
    """boundaries 2, limits: without the tool nothing is claimed; with it, the pause is still there."""
    assert start("gated").outcome() == "paused"
    with pytest.raises(MissingTool, match="refund"):
        bot(store, SCRIPT).resume("r1", resume_value=YES)
    assert make("gated", store, tmp_path).resume("r1", resume_value=YES).status == "completed"
    assert effects.lines == [CHARGE]


# --- 3: between a crash and a rerun ---------------------------------------------------------------


def test_killed_in_its_tool_a_run_asks_its_model_for_the_answer_only(
    store, killed_in, effects, tmp_path
) -> None:
    """boundaries 3, bugs: the tool again with the arguments of the log; one request, one charge."""
    killed_in("held", "entered")
    agent = make("held", store, tmp_path)
    assert agent.resume("r1").status == "completed"
    assert (agent.llm.asked, effects.lines) == (1, ["entered", "entered", "charge 1042"])


def test_killed_as_its_model_answers_a_run_repeats_no_tool(start, store, effects, tmp_path) -> None:
    """boundaries 3, bugs: the request in flight again, on the history of the log."""
    assert start("small", at=6, when="before").outcome() == "signal 9"
    agent = make("small", store, tmp_path)
    assert agent.resume("r1").status == "completed"
    assert (agent.llm.asked, effects.lines) == (1, [CHARGE])


def test_a_sibling_of_a_call_that_paused_is_not_run(start, store, effects, tmp_path) -> None:
    """boundaries 3: neither before the decision nor after it, and the model is told."""
    assert start("gated_and_noting").outcome() == "paused"
    assert effects.lines == []
    result = make("gated_and_noting", store, tmp_path).resume("r1", resume_value=YES)
    assert effects.lines == [CHARGE]
    assert told(result)[1].startswith("[not run: ")


def test_a_tool_that_runs_again_after_a_crash_may_pause(
    store, killed_in, start, effects, tmp_path
) -> None:
    """boundaries 3: a process that died before it could ask leaves a run that asks now."""
    killed_in("slow_gated", "entered")
    assert make("slow_gated", store, tmp_path).resume("r1").status == "paused"
    assert len(store.list_pending_interrupts()) == 1
    assert start("slow_gated", "approve").outcome() == "completed"
    assert effects.lines == ["entered", "entered", "entered", CHARGE]


# --- 4: between a resume and a side effect --------------------------------------------------------


def test_before_a_pause_only_what_is_idempotent_happens_once(
    start, store, effects, tmp_path
) -> None:
    """boundaries 4, bugs, limits: a resumed tool runs from its top; what is wrapped is remembered,
    and what is not cannot be found."""
    assert start("charging_first").outcome() == "paused"
    agent = make("charging_first", store, tmp_path)
    assert agent.resume("r1", resume_value=YES).status == "completed"
    assert effects.lines == ["logged", "charge 1042", "logged"]


def test_another_run_remembers_nothing_of_the_first(start, effects) -> None:
    """boundaries 4: a cache is a run's own."""
    assert start("small").outcome() == start("small", id="r2").outcome() == "completed"
    assert effects.lines == [CHARGE] * 2


def test_outside_of_a_run_each_call_is_a_call(effects) -> None:
    """boundaries 4: wrapped functions are fit for tests of their own."""

    @idempotent
    def charge() -> None:
        effects.add("charge")

    charge()
    charge()
    assert effects.lines == ["charge"] * 2


def test_a_result_that_cannot_be_kept_is_an_error(store) -> None:
    """boundaries 4: it is refused, not run without protection, and the model reads which."""

    @idempotent
    def opaque() -> object:
        return object()

    def refund(order: str, amount: int) -> str:
        return str(opaque())

    (text,) = told(bot(store, SCRIPT, refund).run("go"))
    assert "IdempotencyError" in text
    assert "opaque" in text


# --- 5: between a run that ended and one that died ------------------------------------------------


def test_a_finished_run_refuses_a_resume_in_every_process(start, store, tmp_path) -> None:
    """boundaries 5, bugs: there is nothing left to do, and nothing is done."""
    assert start("small").outcome() == "completed"
    assert start("small", "resume").outcome() == "AlreadyResumed"
    agent = make("small", store, tmp_path)
    with pytest.raises(AlreadyResumed, match="completed"):
        agent.resume("r1")
    assert agent.llm.asked == 0


def test_a_run_that_raised_goes_on_after_its_tool(store, elsewhere, effects) -> None:
    """boundaries 5, bugs: the marker of a failure is stepped over; the charge stays one."""

    def refund(order: str, amount: int) -> str:
        effects.add("charge")
        return "ok"

    script = [SCRIPT[0], RuntimeError("the provider answered 503"), SCRIPT[1]]
    with pytest.raises(RuntimeError, match="503"):
        bot(store, script, refund).run("go", execution_id="r1")
    assert store.get_last("r1").status == "failed"
    assert bot(elsewhere, SCRIPT, refund).resume("r1").status == "completed"
    assert effects.lines == ["charge"]


def test_a_fork_leaves_the_original_as_it_was(start, store, tmp_path) -> None:
    """boundaries 5: another id, from any step; the marker is not one."""
    assert start("small").outcome() == "completed"
    before, agent = store.load("r1").rows, make("small", store, tmp_path)
    fork = agent.fork("r1")
    assert (fork.status, len(before)) == ("completed", 4)
    assert fork.execution_id != "r1"
    with pytest.raises(ForkRefused, match="not a step"):
        agent.fork("r1", at="run_end")
    assert store.load("r1").rows == before


def test_a_tool_that_raises_is_no_failed_run(store) -> None:
    """boundaries 5, limits: the model reads the error and goes on."""

    def refund(order: str, amount: int) -> str:
        raise LookupError("no such order")

    result = bot(store, SCRIPT, refund).run("go")
    assert (result.status, told(result)) == ("completed", ["Error: LookupError: no such order"])


def test_pruning_takes_what_ended_and_no_pause(start, store, effects, tmp_path) -> None:
    """boundaries 5: whoever was asked can still answer."""
    assert start("small", id="over").outcome() == "completed"
    assert start("gated").outcome() == "paused"
    assert list(store.prune(older_than=0)) == ["over"]
    assert make("gated", store, tmp_path).resume("r1", resume_value=YES).status == "completed"


# --- 6: between a laptop and a fleet --------------------------------------------------------------


def forbid_connections(folder: Path, kind: str) -> None:
    """Do a run and a resume in a process that ends at once if it asks for a connection."""

    def end(event: str, _: object) -> None:
        if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
            os._exit(3)

    sys.addaudithook(end)
    agent = make("gated", STORES[kind](folder), folder)
    agent.run("go", execution_id="r1")
    agent.resume("r1", resume_value=YES)


@pytest.mark.parametrize("kind", ["sqlite-full"])
def test_nothing_leaves_a_process_that_was_not_told_to_connect(kind, store, tmp_path) -> None:
    """boundaries 6, bugs: what is written stays on this machine."""
    assert Process(forbid_connections, tmp_path, kind).ended() == "ended 0"
    assert store.get_last("r1").status == "completed"


@pytest.mark.parametrize("kind", ["sqlite-full", "sqlite-normal"])
def test_one_file_serves_many_processes(kind, start, store, effects) -> None:
    """limits: theirs takes one process at a time; here several drive runs at once."""
    children = [start("small", id=f"r{n}") for n in range(4)]
    assert [child.outcome() for child in children] == ["completed"] * 4
    assert len(store.runs()) == len(effects.lines) == 4


# --- what else it will not do, or does here -------------------------------------------------------


def test_a_decision_takes_no_word_that_it_does_not_know() -> None:
    """limits: a payload under another name is an error, never dropped."""
    with pytest.raises(TypeError, match="data"):
        Resume(True, data={"amount": 90})  # type: ignore[call-arg]


def test_arun_leaves_its_loop_free(store) -> None:
    """limits: the names in `a` are not for symmetry alone."""
    free = threading.Event()

    def refund(order: str, amount: int) -> str:
        assert free.wait(30), "the loop is blocked"
        return "ok"

    async def main() -> str:
        run = asyncio.create_task(bot(store, SCRIPT, refund).arun("go"))
        await asyncio.sleep(0)
        free.set()
        return (await run).status

    assert asyncio.run(main()) == "completed"


def test_nothing_resumes_by_itself(start, store, effects) -> None:
    """limits: a crashed and a paused run wait for somebody, however often they are looked at."""
    assert start("gated").outcome() == "paused"
    assert start("small", id="r2", at=2, when="after").outcome() == "signal 9"
    for _ in range(2):
        assert len(store.list("r1")) == 3
        assert len(store.list("r2")) == 2
    assert effects.lines == []


# --- resuming -------------------------------------------------------------------------------------


def test_sessions_are_listed_newest_first(start, store) -> None:
    """resuming: what was begun last comes first, whatever is resumed later."""
    for name in ("a", "b"):
        assert start("gated", id=name).outcome() == "paused"
    assert start("gated", "approve", id="a").outcome() == "completed"
    assert [session.session for session in store.sessions()] == ["b", "a"]


@pytest.mark.parametrize("kind", ["sqlite-full"])
def test_the_log_is_an_ordinary_file_of_sqlite(kind, start, tmp_path) -> None:
    """resuming: any client reads it."""
    assert start("small").outcome() == "completed"
    db = sqlite3.connect(tmp_path / "runs.sqlite3")
    nodes = [node for (node,) in db.execute("select node_id from checkpoints order by number")]
    db.close()
    assert nodes == ["turn:0", "turn:0/tool:refund", "turn:1", "run_end"]


CLIENTS = {
    "sqlite-full": lambda store: sqlite3.connect(store.path),
    "postgres": lambda store: psycopg.connect(server(), options=f"-c search_path={store.schema}"),
}


def test_a_client_of_the_database_reads_rows_messages_pauses_and_effects(
    kind, start, store
) -> None:
    """boundaries 0, resuming: three names hold it all, and the messages are there as JSON."""
    assert start("charging_first").outcome() == "paused"
    client = CLIENTS[kind](store)
    asked = client.cursor()

    def rows(query: str) -> list[tuple[object, ...]]:
        asked.execute(query)
        return asked.fetchall()

    steps = rows("select step_type, status, body from checkpoints order by number")
    assert [row[:2] for row in steps] == [
        ("llm_call", "completed"),
        ("tool_call", "completed"),
        ("hitl_pause", "interrupted"),
    ]
    assert "Refund order 1042" in steps[0][2]
    assert json.loads(steps[1][2])["arguments"] == {"order": "1042", "amount": 5000}
    assert rows("select execution_id, reason from pending_interrupts") == [("r1", "right?")]
    assert rows("select attempts, value from idempotency_cache") == [(1, '"1042"')]
    client.close()


def test_calls_that_were_asked_for_run_before_anything_else(
    store, killed_in, effects, tmp_path
) -> None:
    """resuming: without a prompt nothing is added; calls that never ran do, before the model."""
    killed_in("batch", "note b")
    result = make("batch", store, tmp_path).resume("r1")
    assert effects.lines == ["note a", "note b", "note b", "note c"]
    assert [m.content for m in result.messages if m.role == "user"] == ["Refund order 1042"]


def test_a_prompt_comes_after_the_calls_that_were_open(store, killed_in, tmp_path) -> None:
    """resuming: the history is whole, all calls are settled, and then comes what is new."""
    killed_in("batch", "note b")
    result = make("batch", store, tmp_path).resume("r1", prompt="and order 1043")
    said = [(m.role, m.content) for m in result.messages]
    results = [("tool", f"noted {name}") for name in "abc"]
    assert said[2:] == [*results, ("user", "and order 1043"), ("assistant", "done")]


def test_a_run_is_not_resumed_about_other_files(store, elsewhere, tmp_path) -> None:
    """resuming: the directory of the run is checked, where theirs trusts you to name it again."""

    def refund(order: str, amount: int) -> str:
        return str(interrupt("manager").approved)

    for name in ("site", "other"):
        (tmp_path / name).mkdir()
    bot(store, SCRIPT, refund).run("go", execution_id="r1", workdir=str(tmp_path / "site"))
    agent = bot(elsewhere, SCRIPT, refund)
    with pytest.raises(InvalidInput, match="site"):
        agent.resume("r1", resume_value=YES, workdir=str(tmp_path / "other"))
    assert agent.resume("r1", resume_value=YES).status == "completed"


def test_what_cannot_be_told_apart_is_in_doubt_and_said_so(start, store, tmp_path) -> None:
    """resuming: an effect whose record was lost runs again, and here the log counts it."""
    assert start("small", at=4, when="before").outcome() == "signal 9"
    assert make("small", store, tmp_path).resume("r1").status == "completed"
    assert [effect.attempts for effect in store.effects("r1")] == [2]
