"""What a child of a crash matrix does: it drives a run in a directory of its own, to its end or to
its own, and answers the pauses on the way."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from durable_nb.core.nodes import Pending
from durable_nb.core.state import state_of
from durable_nb.lab.acts import Act, Watch
from durable_nb.lab.ends import kill
from durable_nb.lab.fuse import arm, follow
from durable_nb.lab.handover import Say, unpack
from durable_nb.lab.ledger import INSTEAD
from durable_nb.lab.points import Point, Written
from durable_nb.llm.protocol import Model
from durable_nb.llm.scripted import ScriptedModel
from durable_nb.model.decisions import Resume
from durable_nb.model.messages import Reply, Usage
from durable_nb.runtime.agent import Agent
from durable_nb.stores.protocol import Checkpointer
from durable_nb.stores.sqlite import SQLiteCheckpointer

Answers: TypeAlias = Resume | Callable[[Pending], Resume]

EXECUTION_ID = "matrix"
"""The same in every kill, so that what a tool makes of it can be compared."""

BY = "crash_matrix"


def approve(pause: Pending) -> Resume:
    """What a crash matrix answers where nobody says otherwise: yes, and run it again."""
    if pause.asks == "in_doubt":
        return Resume.run_again(by=BY)
    return Resume(approved=True, by=BY)


class Cell(NamedTuple):
    """The directory of one kill: where the run works, what it wrote, and how often it asked."""

    folder: Path

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def ledgers(self) -> Path:
        return self.folder / "ledgers"

    @property
    def asked(self) -> Path:
        return self.folder / "asked"

    def store(self) -> Checkpointer:
        """It outlives a process, and need not outlive the machine."""
        return SQLiteCheckpointer(self.folder / "runs.sqlite3", synchronous="NORMAL")

    def model_calls(self) -> int:
        return self.asked.stat().st_size if self.asked.exists() else 0


class Ran(NamedTuple):
    """How a run ended, over which rows, what its model said, what its tools did, `doubts`: how often
    a person was asked about a call in doubt, and what it has imported."""

    status: str
    output: str | None
    rows: tuple[Written, ...]
    replies: tuple[Reply, ...]
    usage: Usage
    acts: tuple[Act, ...]
    doubts: int
    modules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Errand:
    """One child's work: drive the run of a cell. With a `point` it is killed there.

    `packed` holds the agent and the answers to its pauses; `replies` stand in for its model.
    `in_workdir`: the run is told where it works.
    """

    packed: bytes
    prompt: str
    cell: Cell
    in_workdir: bool
    point: Point | None = None
    is_watched: bool = False
    replies: tuple[Reply, ...] | None = None

    def __call__(self, say: Say) -> Ran:
        self._settle()
        agent, answers = unpack(self.packed, str(self.cell.work) if self.in_workdir else None)
        store = self.cell.store()
        agent.llm = _Counted(agent.llm, self.replies, self.cell.asked)
        agent._checkpointer = store
        watch = Watch() if self.is_watched else None
        if watch is not None:
            follow(agent, store, watch)
        if self.point is not None:
            arm(agent, store, self.point, functools.partial(kill, say))
        doubts = _to_the_end(self, agent, answers)
        return _ran(store, watch.acts if watch else (), doubts)

    def _settle(self) -> None:
        """Be in the cell's directory, and print into its file."""
        os.chdir(self.cell.work)
        os.environ[INSTEAD] = str(self.cell.ledgers)
        output = os.open(self.cell.folder / "output", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in (1, 2):
            os.dup2(output, stream)


def _to_the_end(errand: Errand, agent: Agent, answers: Answers) -> int:
    """Do what each status of the run asks for, until it is over. Returns how often that was to say
    what became of a call in doubt."""
    store, doubts = agent.checkpointer, 0
    workdir = errand.cell.work if errand.in_workdir else None
    while True:
        match [run.status for run in store.runs()]:
            case []:
                agent.run(errand.prompt, execution_id=EXECUTION_ID, workdir=workdir)
            case ["paused"]:
                (pause,) = store.list_pending_interrupts()
                doubts += pause.asks == "in_doubt"
                agent.resume(
                    EXECUTION_ID, resume_value=_decided(answers, pause), pause=pause.number
                )
            case ["completed" | "cancelled"]:
                return doubts
            case _:
                agent.resume(EXECUTION_ID)


def _decided(answers: Answers, pause: Pending) -> Resume:
    if not isinstance(answers, Resume):
        return answers(pause)
    return answers if pause.asks == "approval" else Resume.run_again(by=answers.by)


def _ran(store: Checkpointer, acts: Sequence[Act], doubts: int) -> Ran:
    """What the log says of the run when it is over."""
    state = state_of(store.load(EXECUTION_ID))
    rows = store.list(EXECUTION_ID)
    return Ran(
        state.status,
        getattr(state.newest.entry, "output", None),
        tuple(
            Written(row.number, row.node_id, row.step_type, getattr(row.entry, "tool", None))
            for row in rows
        ),
        tuple(Reply(said) for said in state.transcript if said.role == "assistant"),
        state.usage,
        tuple(acts),
        doubts,
        tuple(name for name in sys.modules if name != "__main__"),
    )


class _Counted:
    """The agent's model, or the replies that stand in for it, whose requests are counted where
    the count outlives the process."""

    def __init__(self, llm: Model, replies: tuple[Reply, ...] | None, asked: Path) -> None:
        self._llm = llm
        self.name: str = getattr(llm, "name", None) or type(llm).__name__
        complete = (llm if replies is None else ScriptedModel(replies)).complete

        @functools.wraps(complete)
        def counted(*request: Any) -> Reply | Awaitable[Reply]:
            with asked.open("ab") as file:
                file.write(b".")
            return complete(*request)

        self.complete = counted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._llm, name)
