"""The kill matrix: a process is killed with SIGKILL before, inside and after each entry of a run;
another one goes on, and the world is held against what the plan calls for (R2, R3, R4).

`python -m tests.crash.matrix` prints it as a table.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

from durable_nb import Agent, Checkpointer, Resume, call, idempotent, interrupt
from tests.crash.child import die
from tests.support.agents import bot
from tests.support.children import Process
from tests.support.ledger import Ledger
from tests.support.postgres import server
from tests.support.stores import STORES, Dying

KINDS = ("sqlite-full", "postgres")
When = Literal["before", "inside", "after"]
WHENS: tuple[When, ...] = ("before", "inside", "after")


class Entry(NamedTuple):
    """Something a run writes: by the process that `run`s or that `approve`s, as its n-th write.
    `step` is what it then does, if anything."""

    by: Literal["run", "approve"]
    write: int
    step: str | None = None


# The run asks for a refund, waits for a manager, charges and says so.
ENTRIES = {
    "turn:0": Entry("run", 1, "model"),
    "turn:0/tool:refund": Entry("run", 2, "tool"),
    "pause": Entry("run", 3),
    "answer": Entry("approve", 1, "tool"),
    "charge begun": Entry("approve", 2, "charge"),
    "charge kept": Entry("approve", 3, "tool's end"),
    "turn:1": Entry("approve", 4, "model"),
    "run_end": Entry("approve", 5),
}
POINTS = [
    point for point in product(ENTRIES, WHENS) if point[1] != "inside" or ENTRIES[point[0]].step
]

ROWS = ["llm_call", "tool_call", "hitl_pause", "llm_call", "run_end"]
WORLD = Counter(
    {"model": 2, "tool": 2, "charge": 1}
)  # the tool runs up to its question, then whole

# What happens once more than that. Nothing, but for the one step in flight: a reply that was not
# written is asked for again, a tool that had begun runs from its top, a charge that is in doubt
# runs again.
AGAIN: dict[tuple[str, When], tuple[str, ...]] = {
    ("turn:0", "inside"): ("model",),
    ("turn:0/tool:refund", "before"): ("model",),
    ("turn:0/tool:refund", "inside"): ("tool",),
    ("pause", "before"): ("tool",),
    ("answer", "inside"): ("tool",),
    ("charge begun", "before"): ("tool",),
    ("charge begun", "inside"): ("charge", "tool"),
    ("charge begun", "after"): ("tool",),
    ("charge kept", "before"): ("charge", "tool"),
    ("charge kept", "inside"): ("tool",),
    ("charge kept", "after"): ("tool",),
    ("turn:1", "before"): ("tool",),
    ("turn:1", "inside"): ("model",),
    ("run_end", "before"): ("model",),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """What became of one kill: what happened `again`, and what is `wrong` in the end."""

    again: tuple[str, ...]
    wrong: tuple[str, ...]

    def __str__(self) -> str:
        if self.wrong:
            return "WRONG: " + "; ".join(self.wrong)
        return "again: " + ", ".join(self.again) if self.again else "exact"


def planned(store: Checkpointer, folder: Path) -> Agent:
    """The plan's agent. It dies, once, in the step that the folder's file `fatal` names."""
    world, fatal = Ledger(folder / "world"), folder / "fatal"

    def step(name: str) -> None:
        world.add(name)
        end_of(name)

    def end_of(name: str) -> None:
        if fatal.exists() and fatal.read_text() == name:
            fatal.unlink()
            die()

    @idempotent
    def charge(order: str) -> str:
        step("charge")
        return order

    def refund(order: str) -> str:
        step("tool")
        if not interrupt("manager", {"order": order}).approved:
            return "no refund"
        charge(order)
        end_of("tool's end")
        return "refunded"

    def script(messages: Any) -> Any:
        step("model")
        return call("refund", order="1042") if len(messages) == 1 else "It is on its way."

    return bot(store, script, refund)


def kill(folder: Path, kind: str, name: str, when: When) -> Cell:
    """Kill a run at a point, go on with it in this process, and judge."""
    entry = ENTRIES[name]
    store = STORES[kind](folder)
    agent = planned(store, folder)
    if entry.by == "approve":
        agent.run("Refund order 1042", execution_id="r1")
    if Process(_drive_to_death, folder, kind, entry, when).ended() != "signal 9":
        return Cell((), ("it was not killed",))
    _go_on(agent)
    cell = _judge(store, Ledger(folder / "world"))
    store.close()
    return cell


def _drive_to_death(folder: Path, kind: str, entry: Entry, when: When) -> None:
    store: Any = STORES[kind](folder)
    if when == "inside":
        (folder / "fatal").write_text(str(entry.step))
    else:
        store = Dying(store, entry.write, when, die)
    agent = planned(store, folder)
    if entry.by == "run":
        agent.run("Refund order 1042", execution_id="r1")
    else:
        agent.resume("r1", resume_value=Resume(True, by="ann"))


def _go_on(agent: Agent) -> None:
    """Do what each status of the run asks for, until it is over."""
    while True:
        match [run.status for run in agent.checkpointer.runs()]:
            case []:
                agent.run("Refund order 1042", execution_id="r1")
            case ["paused"]:
                agent.resume("r1", resume_value=Resume(True, by="bob"))
            case ["completed"]:
                return
            case _:
                agent.resume("r1")


def _judge(store: Checkpointer, world: Ledger) -> Cell:
    rows = [row.step_type for row in store.list("r1") if row.step_type != "resume"]
    answers = [row for row in store.load("r1").rows if type(row.entry).__name__ == "Answer"]
    happened = Counter(world.lines)
    wrong = [
        *(f"rows {rows}" for _ in [0] if rows != ROWS),
        *(f"{len(answers)} answers" for _ in [0] if len(answers) != 1),
        *(f"lost: {name}" for name in sorted(WORLD - happened)),
    ]
    return Cell(tuple(sorted((happened - WORLD).elements())), tuple(wrong))


def table(folder: Path) -> tuple[str, bool]:
    """All kills as text, and whether each went as the plan says."""
    cells = {
        (kind, *point): kill(_made(folder / f"{kind} {at}"), kind, *point)
        for kind in KINDS
        for at, point in enumerate(POINTS)
    }
    red = [at for at, cell in cells.items() if cell != Cell(AGAIN.get(at[1:], ()), ())]
    lines = [f"{'':22}" + "".join(f"{when:24}" for when in WHENS)]
    for kind in KINDS:
        lines.append(kind)
        for name in ENTRIES:
            shown = (str(cells.get((kind, name, when), "-")) for when in WHENS)
            lines.append(f"  {name:20}" + "".join(f"{text:24}" for text in shown))
    lines.append(f"{len(cells)} kills, {len(cells) - len(red)} as the plan calls for")
    lines += [f"not so: {' '.join(at)}" for at in red]
    return "\n".join(line.rstrip() for line in lines), not red


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def main() -> int:
    server()  # before the first child, which finds its address in the environment
    with TemporaryDirectory() as folder:
        text, green = table(Path(folder))
    print(text)
    return 0 if green else 1


if __name__ == "__main__":
    from tests.crash import matrix  # by the name that its children import it by

    sys.exit(matrix.main())
