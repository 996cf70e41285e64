"""A process is killed with SIGKILL at every write of a run; another one goes on (R3, R4)."""

from __future__ import annotations

import signal

import pytest

from durable_nb import AlreadyResumed, DurableError, Resume, UnknownExecution
from durable_nb.core.nodes import listing
from tests.crash.agents import make
from tests.support.agents import told

CHARGE = "charge 1042 5000"
WHENS = ("before", "after")


def without_resumes(store) -> list[tuple[str, str]]:
    rows = store.list("r1")
    return [(row.node_id, row.step_type) for row in rows if row.step_type != "resume"]


# The writes of a run that charges once: its first entry, the call, the mark that the charge has
# begun, its result, the second turn, the end. After a death `before` the result, the charge is in
# doubt and runs again; a reply whose entry was not written is asked for again.
WRITES = ("create", "call", "begin", "keep", "turn", "end")


@pytest.mark.parametrize("when", WHENS)
@pytest.mark.parametrize("at", range(1, 7))
def test_a_run_killed_at_any_write_is_finished_by_another_process(
    start, store, seen_dead, effects, tmp_path, at: int, when: str
) -> None:
    assert start("small", at=at, when=when).outcome() == f"signal {signal.SIGKILL}"
    write, agent = WRITES[at - 1], make("small", store, tmp_path)
    if (write, when) == ("create", "before"):
        with pytest.raises(UnknownExecution):
            agent.resume("r1")
        assert (agent.llm.asked, effects.lines) == (0, [])
        return
    if (write, when) == ("end", "after"):
        assert seen_dead() == ["completed"]
        with pytest.raises(AlreadyResumed):
            agent.resume("r1")
        assert (agent.llm.asked, effects.lines) == (0, [CHARGE])
        return
    assert seen_dead() == ["crashed"]
    result = agent.resume("r1")
    assert (result.status, told(result)) == ("completed", ["refunded 5000"])
    assert effects.lines == [CHARGE] * (2 if (write, when) == ("keep", "before") else 1)
    asked_before = {"create": 0, "call": 1, "begin": 1, "keep": 1, "turn": 1, "end": 2}[write]
    lost = when == "before" and write in ("call", "end")
    assert asked_before + agent.llm.asked == 2 + lost
    assert without_resumes(store) == [
        ("turn:0", "llm_call"),
        ("turn:0/tool:refund", "tool_call"),
        ("turn:1", "llm_call"),
        ("run_end", "run_end"),
    ]


CLAIM_WRITES = ("claim", "begin", "keep", "turn", "end")


@pytest.mark.parametrize("when", WHENS)
@pytest.mark.parametrize("at", range(1, 6))
def test_a_resumer_killed_at_any_write_costs_nothing(
    start, store, effects, tmp_path, at: int, when: str
) -> None:
    agent = make("gated", store, tmp_path)
    agent.run("Refund order 1042", execution_id="r1")
    killed = start("gated", "approve", at=at, when=when, by="ann")
    assert killed.outcome() == f"signal {signal.SIGKILL}"
    write = CLAIM_WRITES[at - 1]
    if (write, when) == ("end", "after"):
        with pytest.raises(AlreadyResumed, match="ann approved"):
            agent.resume("r1")
    elif (write, when) == ("claim", "before"):
        assert [pause.number for pause in store.list_pending_interrupts()] == [3]
        assert agent.resume("r1", resume_value=Resume(True, by="bob")).status == "completed"
    else:
        with pytest.raises(AlreadyResumed, match="ann approved"):
            agent.resume("r1", resume_value=Resume(False))
        assert agent.resume("r1").status == "completed"
    assert effects.lines == [CHARGE] * (2 if (write, when) == ("keep", "before") else 1)
    answers = [row.entry for row in store.load("r1").rows if type(row.entry).__name__ == "Answer"]
    assert [answer.by for answer in answers] == ["bob" if (at, when) == (1, "before") else "ann"]


def test_a_run_killed_as_it_pauses_is_paused_or_asks_again(
    start, store, seen_dead, tmp_path
) -> None:
    assert start("gated", at=3, when="before").outcome().startswith("signal")
    assert seen_dead() == ["crashed"]
    agent = make("gated", store, tmp_path)
    assert agent.resume("r1").status == "paused"
    assert start("gated", at=3, when="after", id="r2").outcome().startswith("signal")
    assert seen_dead() == ["paused", "paused"]
    rows = "\n".join(listing([row]) for row in store.list("r2"))
    assert rows.count("interrupted") == 1


@pytest.mark.parametrize("when", WHENS)
@pytest.mark.parametrize("at", [1, 2, 3])
def test_no_death_leaves_a_run_half_paused(start, store, at: int, when: str) -> None:
    assert start("gated", at=at, when=when).outcome() == f"signal {signal.SIGKILL}"
    rows = [row for run in store.runs() for row in store.list(run.execution_id)]
    interrupted = [row.number for row in rows if row.status == "interrupted"]
    assert interrupted == ([3] if (at, when) == (3, "after") else [])
    assert [pause.number for pause in store.list_pending_interrupts()] == interrupted


def test_a_run_killed_inside_of_its_tool_runs_it_again_and_asks_no_model(
    start, store, effects, wait_for, tmp_path
) -> None:
    (tmp_path / "hold").touch()
    child = start("held")
    wait_for("entered")
    child.kill()
    (tmp_path / "go").touch()
    agent = make("held", store, tmp_path)
    assert agent.resume("r1").status == "completed"
    assert effects.lines == ["entered", "entered", "charge 1042"]
    assert agent.llm.asked == 1


def test_a_run_killed_while_its_model_thinks_asks_it_again(
    start, store, effects, wait_for, tmp_path
) -> None:
    (tmp_path / "hold").touch()
    child = start("asking")
    wait_for("asked")
    child.kill()
    (tmp_path / "go").touch()
    assert make("asking", store, tmp_path).resume("r1").status == "completed"
    assert effects.lines == ["asked", "asked", CHARGE, "asked"]


def test_a_run_killed_in_the_second_of_three_calls_runs_the_second_and_the_third(
    start, store, effects, wait_for, tmp_path
) -> None:
    (tmp_path / "hold").touch()
    child = start("batch")
    wait_for("note b")
    child.kill()
    (tmp_path / "go").touch()
    result = make("batch", store, tmp_path).resume("r1")
    assert effects.lines == ["note a", "note b", "note b", "note c"]
    assert told(result) == ["noted a", "noted b", "noted c"]


def test_a_killed_run_may_be_killed_again_and_again(start, store, effects, tmp_path) -> None:
    assert start("small", at=2, when="after").outcome().startswith("signal")
    for at in (1, 2, 3, 4):
        assert start("small", "resume", at=at, when="before").outcome().startswith("signal")
    assert start("small", "resume").outcome() == "completed"
    with pytest.raises(DurableError):
        make("small", store, tmp_path).resume("r1")
    assert effects.lines == [CHARGE] * 2  # the third death was between the charge and its mark
