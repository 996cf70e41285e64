"""Plans of runs, and what each calls for, said without durable_nb's help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from hypothesis import strategies as st

from durable_nb import Agent, Call, Checkpointer, Resume, call, idempotent, interrupt
from durable_nb.stores.protocol import Checkpointer as Store
from tests.support.providers import StrictModel

Kind = Literal["note", "charge", "approved", "rejected", "boom", "unknown", "bad"]
Plan = tuple[tuple[Kind, ...], ...]

KINDS = ("note", "charge", "approved", "rejected", "boom", "unknown", "bad")
PLANS = st.lists(
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=3).map(tuple), max_size=3
).map(tuple)
GATES = ("approved", "rejected")


@dataclass
class World:
    """What has happened, in this process's memory; no process of a test's run outlives another."""

    effects: list[str] = field(default_factory=list)


def script(plan: Plan) -> list[list[Call] | str]:
    """The model's side of the plan."""
    return [
        [_call(kind, f"{turn}.{at}") for at, kind in enumerate(kinds)]
        for turn, kinds in enumerate(plan)
    ] + ["the end"]


def _call(kind: Kind, place: str) -> Call:
    match kind:
        case "unknown":
            return call("nothing", place=place)
        case "bad":
            return call("note", where=place)
        case "approved" | "rejected":
            return call("gate", place=place)
        case _:
            return call(kind, place=place)


def agent(plan: Plan, store: Checkpointer, world: World) -> Agent:
    """The agent as a new process makes it."""

    @idempotent
    def pay(place: str) -> str:
        world.effects.append(place)
        return place

    def note(place: str) -> str:
        world.effects.append(place)
        return f"noted {place}"

    def charge(place: str) -> str:
        return f"charged {pay(place)}"

    def gate(place: str) -> str:
        return f"paid {pay(place)}" if interrupt("sure?", {"place": place}).approved else "not paid"

    def boom(place: str) -> str:
        world.effects.append(place)
        raise ValueError(place)

    return Agent("bot", StrictModel(script(plan)), [note, charge, gate, boom], checkpointer=store)


def decision(plan: Plan, store: Store, execution_id: str) -> Resume:
    """What the plan's person says to the open pause."""
    (pause,) = [p for p in store.list_pending_interrupts() if p.execution_id == execution_id]
    turn, at = map(int, str(pause.context["place"]).split("."))
    return Resume(plan[turn][at] == "approved", by="ann")


# --- what the plan calls for ----------------------------------------------------------------------


def called(kinds: Sequence[Kind]) -> list[tuple[int, Kind]]:
    """The calls of a reply that become a step: those before the first gate, and that gate."""
    steps = [(at, kind) for at, kind in enumerate(kinds) if kind not in ("unknown", "bad")]
    gates = [index for index, (_, kind) in enumerate(steps) if kind in GATES]
    return steps[: gates[0] + 1] if gates else steps


def effects(plan: Plan) -> list[str]:
    """Where something happens, in order."""
    return [
        f"{turn}.{at}"
        for turn, kinds in enumerate(plan)
        for at, kind in called(kinds)
        if kind != "rejected"
    ]


def kind_of(plan: Plan, place: str) -> Kind:
    turn, at = map(int, place.split("."))
    return plan[turn][at]


def results(plan: Plan) -> dict[str, str]:
    """How the result of each call begins."""
    begin = {
        "note": "noted {}",
        "charge": "charged {}",
        "approved": "paid {}",
        "rejected": "[rejected by ann]\nnot paid",
        "boom": "Error: ValueError: {}",
        "unknown": "Error: there is no tool 'nothing'",
        "bad": "Error: invalid arguments for note",
    }
    expected = {}
    for turn, kinds in enumerate(plan):
        ran = [at for at, _ in called(kinds)]
        for at, kind in enumerate(kinds):
            settled = at in ran or kind in ("unknown", "bad")
            expected[f"{turn}.{at}"] = (
                begin[kind].format(f"{turn}.{at}") if settled else "[not run: "
            )
    return expected


def rows(plan: Plan) -> list[tuple[str, str]]:
    """The run's rows, those of resumes left out."""
    expected = []
    for turn, kinds in enumerate(plan):
        expected.append((f"turn:{turn}", "llm_call"))
        for _, kind in called(kinds):
            tool = "gate" if kind in GATES else kind
            expected.append((f"turn:{turn}/tool:{tool}", "tool_call"))
            if kind in GATES:
                expected.append((f"turn:{turn}/tool:{tool}", "hitl_pause"))
    return [*expected, (f"turn:{len(plan)}", "llm_call"), ("run_end", "run_end")]


def once_each(happened: Sequence[str]) -> list[str]:
    """What happened, without repeats that follow one another."""
    return [place for place, _ in groupby(happened)]
