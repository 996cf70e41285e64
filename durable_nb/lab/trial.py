"""One agent on trial: its run without a kill, and its run with each kill there is."""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from durable_nb.lab.advice import advice
from durable_nb.lab.effects import came, changed, copied
from durable_nb.lab.errand import Answers, Cell, Errand, Ran
from durable_nb.lab.forks import Forks
from durable_nb.lab.handover import Report, pack
from durable_nb.lab.ledger import Ledger, noted
from durable_nb.lab.points import Point, Written
from durable_nb.lab.table import Line
from durable_nb.lab.verdicts import Finding, World, judge
from durable_nb.model.errors import InvalidInput
from durable_nb.runtime.agent import Agent
from durable_nb.workspace.tree import tree_hash

Effects: TypeAlias = Ledger | Callable[[], object]
Kill: TypeAlias = tuple[Written, Point]


class Whole(NamedTuple):
    """The run that nobody killed, and what it left behind."""

    ran: Ran
    world: World


@dataclass(slots=True)
class _Case:
    """A kill that is being tried: in `cell`, which held `before` when it began."""

    at: int
    row: Written
    point: Point
    cell: Cell
    before: object
    errand: Errand


class Trial:
    """The children of one crash matrix and their directories, gone when the block is left."""

    def __init__(
        self,
        agent: Agent,
        prompt: str,
        effects: Effects | None,
        workdir: str | os.PathLike[str] | None,
        answers: Answers,
        timeout: float,
        *,
        replay: bool,
    ) -> None:
        self._agent, self._timeout = agent, timeout
        self._effects = None if isinstance(effects, Ledger) else effects
        self._source = None if workdir is None else _existing(workdir)
        self._replay = replay
        alone = copy.copy(agent)
        alone._checkpointer = None
        inside = None if self._source is None else str(self._source)
        packed = pack(alone, answers, inside=inside)
        self._errand = partial(Errand, packed, prompt, in_workdir=inside is not None)
        self._folder = tempfile.TemporaryDirectory(prefix="durable_nb-")
        self._forks = Forks(packed, inside=inside)

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *raised: object) -> None:
        self._forks.__exit__(*raised)
        self._folder.cleanup()

    def run_whole(self) -> Whole:
        """The run without a kill. Raises `InvalidInput` if it does not come to its end."""
        cell, before = self._new_cell("whole")
        errand = self._errand(cell=cell, is_watched=True)
        report = self._forks.do(errand, timeout=self._timeout)
        if report.ended != "done":
            raise InvalidInput(
                f"the run of {self._agent!r} does not come to its end without a kill: "
                f"{_trouble(report, self._timeout)}{_printed(cell)}"
            )
        ran: Ran = report.value
        self._forks.begin_with(ran.modules)
        return Whole(ran, self._world(cell, before, report))

    def kill(
        self, kills: Sequence[Kill], whole: Whole, *, at_once: int
    ) -> Iterator[tuple[int, Line]]:
        """Try each kill, some at once, and judge it; the first to be done comes first."""
        if self._effects is not None:
            at_once = 1  # what came of two kills at once could not be told apart
        waiting = iter(enumerate(kills))
        going: dict[int, _Case] = {}
        for _ in range(at_once):
            self._start_next(waiting, going, whole)
        while going:
            number, report = self._forks.report()
            case = going.pop(number)
            if case.errand.point is not None and report.ended == "killed":
                case.errand = replace(case.errand, point=None)
                going[self._forks.start(case.errand, timeout=self._timeout)] = case
            else:
                yield case.at, self._judged(case, report, whole)
                self._start_next(waiting, going, whole)

    def _start_next(
        self, waiting: Iterator[tuple[int, Kill]], going: dict[int, _Case], whole: Whole
    ) -> None:
        for at, (row, point) in waiting:
            cell, before = self._new_cell(f"kill {at}")
            replies = whole.ran.replies if self._replay else None
            errand = self._errand(cell=cell, point=point, replies=replies)
            case = _Case(at, row, point, cell, before, errand)
            going[self._forks.start(errand, timeout=self._timeout)] = case
            return

    def _judged(self, case: _Case, report: Report, whole: Whole) -> Line:
        world = self._world(case.cell, case.before, report)
        if case.errand.point is not None and report.ended == "done":
            finding = Finding("diverged", "the run went another way and never came there")
        else:
            finding = judge(world, whole.world, case.point)
        acts = [act for act in whole.ran.acts if act.number == case.point.number]
        wrap = advice(acts, finding, _function_of(self._agent, case.point))
        shutil.rmtree(case.cell.folder)
        return Line(case.row, case.point, finding, world, wrap)

    def _new_cell(self, name: str) -> tuple[Cell, object]:
        cell = Cell(Path(self._folder.name).resolve() / name)
        cell.folder.mkdir()
        cell.ledgers.mkdir()
        copied(self._source, cell.work)
        return cell, self._asked(cell)

    def _world(self, cell: Cell, before: object, report: Report) -> World:
        told = [] if self._effects is None else came(before, self._asked(cell))
        return World(
            effects=(*changed(self._source, cell.work), *noted(cell.ledgers), *told),
            model_calls=cell.model_calls(),
            output=report.value.output if report.ended == "done" else None,
            tree=tree_hash(cell.work),
            doubts=report.value.doubts if report.ended == "done" else 0,
            stuck="" if report.ended == "done" else _trouble(report, self._timeout),
        )

    def _asked(self, cell: Cell) -> object:
        """The answer of the user's callable, in the directory of a run."""
        if self._effects is None:
            return None
        with chdir(cell.work):
            return self._effects()


def _trouble(report: Report, timeout: float) -> str:
    """Why a child did not do all of its work, in words."""
    match report.ended:
        case "error":
            return f"{report.error}: {report.text}"
        case "late":
            return f"it did not end within {timeout:g} s"
        case _:
            return f"its process ended with {report.code}"


def _function_of(agent: Agent, point: Point) -> str:
    """The name of the function that is the tool of a point."""
    if point.tool is None:
        return ""
    return str(getattr(agent.toolbox[point.tool].function, "__name__", point.tool))


def _existing(workdir: str | os.PathLike[str]) -> Path:
    source = Path(workdir).absolute()
    if not source.is_dir():
        raise InvalidInput(f"{source} is not a directory; name the one that the agent works in")
    return source


def _printed(cell: Cell) -> str:
    """The end of what a child has printed, to be read under an error."""
    lines = (cell.folder / "output").read_text("utf-8", "replace").splitlines()
    return "".join(f"\n    {line}" for line in lines[-12:])
