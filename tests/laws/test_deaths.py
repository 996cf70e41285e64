"""Whatever the plan, and wherever its processes die, the run is what the plan calls for.

Beside the plan stand the repeats that R3 and R4 admit, each for one death: a reply that was not on
disk is asked for again; a tool that was in flight runs again; an `@idempotent` body runs again only
if the process died between the body and its mark.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from durable_nb import Checkpointer, MemoryCheckpointer, UnknownExecution
from tests.laws import plans
from tests.laws.plans import PLANS, Plan, World
from tests.support.providers import assert_all_valid
from tests.support.stores import STORES, Died, Dying, When

DEATHS = st.lists(st.tuples(st.integers(1, 12), st.sampled_from(["before", "after"])), max_size=6)


@dataclass(frozen=True)
class Death:
    """A process died at a write while this entry was its run's program counter."""

    write: str
    when: When
    kind: str
    place: str | None


def statuses(store: Checkpointer) -> dict[str, str]:
    return {run.execution_id: run.status for run in store.runs()}


def counter(store: Checkpointer) -> tuple[str, str | None]:
    """The kind and the place of the entry that says what the run does now."""
    try:
        rows = store.list("r1")
    except UnknownExecution:
        return "nothing", None
    here = [
        row for row in rows if row.step_type != "resume" or row.entry.__class__.__name__ == "Answer"
    ]
    calls = [row for row in rows if row.step_type == "tool_call"]
    place = (
        str(calls[-1].entry.arguments["place"])
        if calls and here[-1].step_type != "llm_call"
        else None
    )
    return here[-1].step_type, place


def live_through(
    plan: Plan, deaths: list[tuple[int, When]], store: Checkpointer, world: World
) -> tuple[list[Death], int]:
    """One process after another until the run completes. Returns how they died, and how often
    the model was asked."""
    died, asked, waiting = [], 0, list(deaths)
    for _ in range(100):
        mortal = Dying(store, *waiting.pop(0)) if waiting else store
        agent = plans.agent(plan, mortal, world)
        status = statuses(store).get("r1")
        try:
            match status:
                case None:
                    agent.run("go", execution_id="r1")
                case "completed":
                    return died, asked
                case "paused":
                    agent.resume("r1", resume_value=plans.decision(plan, store, "r1"))
                case _:
                    agent.resume("r1")
        except Died:
            assert isinstance(mortal, Dying)
            died.append(
                Death(
                    mortal.death or "", deaths[len(deaths) - len(waiting) - 1][1], *counter(store)
                )
            )
        asked += agent.llm.asked
    raise AssertionError("the run never ends")


def judge(plan: Plan, deaths: list[tuple[int, When]], store: Checkpointer) -> None:
    world = World()
    died, asked = live_through(plan, deaths, store, world)
    lost = [death for death in died if death.when == "before"]

    replies_lost = sum(d.write == "append" and d.kind == "llm_call" for d in lost)
    assert asked == len(plan) + 1 + replies_lost

    expected = plans.effects(plan)
    assert plans.once_each(world.effects) == expected
    may_repeat = Counter(expected)
    for death in lost:
        if death.place is not None and death.place in may_repeat:
            kept = plans.kind_of(plan, death.place) in ("charge", "approved")
            may_repeat[death.place] += death.write == ("keep" if kept else "append")
    assert Counter(world.effects) == may_repeat

    checkpoints = store.list("r1")
    assert [(row.node_id, row.step_type) for row in checkpoints if row.step_type != "resume"] == (
        plans.rows(plan)
    )
    assert checkpoints[-1].entry.output == "the end"
    assert_all_valid(store)
    judge_results(plan, store)


def judge_results(plan: Plan, store: Checkpointer) -> None:
    messages = store.get_last("r1").state_snapshot["messages"]
    places = {
        each.id: str(each.arguments.get("place", each.arguments.get("where")))
        for message in messages
        for each in message.tool_calls
    }
    read = {places[m.tool_call_id]: m.content for m in messages if m.role == "tool"}
    expected = plans.results(plan)
    assert read.keys() == expected.keys()
    assert all(read[place].startswith(begins) for place, begins in expected.items())


EVERYTHING: Plan = (("note", "charge", "bad"), ("boom", "approved", "note"), ("rejected", "charge"))


@settings(max_examples=80)
@given(PLANS, DEATHS)
@example(EVERYTHING, [])
def test_a_run_is_its_plan_whenever_its_processes_die(plan, deaths) -> None:
    judge(plan, deaths, MemoryCheckpointer())


@settings(max_examples=20)
@given(PLANS, DEATHS)
@example(EVERYTHING, [(5, "before"), (3, "after")])
def test_a_run_on_disk_is_its_plan_whenever_its_processes_die(plan, deaths) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = STORES["sqlite-normal"](Path(folder))
        judge(plan, deaths, store)
        store.close()


def test_a_run_may_die_at_each_of_its_writes() -> None:
    """Every boundary of one plan that has everything, before and after."""
    whens: list[When] = ["before", "after"]
    for when in whens:
        for at in range(1, 40):
            judge(EVERYTHING, [(at, when)], MemoryCheckpointer())


def test_a_run_may_die_at_every_write_in_a_row() -> None:
    """Each process does one thing and dies: the run still ends."""
    judge(EVERYTHING, [(2, "after")] * 40, MemoryCheckpointer())
