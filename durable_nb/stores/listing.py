"""Lists of runs, pauses and effects, from what a backend's queries return: one meaning on all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from durable_nb.core.nodes import Pending, moment, open_pause, pending
from durable_nb.core.retain import Candidate
from durable_nb.model.codec import Stored, decode
from durable_nb.model.entries import Log, ToolCall
from durable_nb.model.errors import InvalidInput
from durable_nb.model.values import loads
from durable_nb.stores import extensions, refusals
from durable_nb.stores.protocol import EffectRow, RunRow, RunStatus, Session

extensions.register()


class Newest(NamedTuple):
    """A run as its newest entry has it: the columns of a `RunRow`, and that entry's number and
    writer. An unfinished run has no `status`: it depends on whether somebody drives the run."""

    execution_id: str
    session: str
    agent: str
    status: str | None
    prompt: str
    steps: int
    created: int
    updated: int
    tags: str
    workdir: str | None
    parent: str | None
    number: int
    writer: int


def run_rows(
    found: Sequence[tuple[Any, ...]],
    held: Callable[[], Collection[int]],
    again: Callable[[Sequence[str]], Sequence[Newest]],
) -> Sequence[tuple[Any, ...]]:
    """What a query `found`, in the order of a `RunRow`, with a status for those runs that have
    none: of many runs few are unfinished, and only these are looked at one by one."""
    unfinished = [row[0] for row in found if row[3] is None]
    if not unfinished:
        return found
    settled = {row.execution_id: row for row in with_status(again(unfinished), held, again)}
    rows = (row if row[3] is not None else settled.get(row[0]) for row in found)
    return [row for row in rows if row is not None]  # what is gone meanwhile is left out


def with_status(
    runs: Sequence[Newest],
    held: Callable[[], Collection[int]],
    again: Callable[[Sequence[str]], Iterable[Newest]],
) -> list[RunRow]:
    """The runs with their status. One that looks crashed is asked for `again`: if it has moved
    since it was read, somebody drove it then."""
    driven = held()
    dead = {run.execution_id: run for run in runs if _unfinished(run) and run.writer not in driven}
    moved = {
        run.execution_id: run
        for run in (again(list(dead)) if dead else ())
        if run.number != dead[run.execution_id].number
    }
    crashed = dead.keys() - moved.keys()
    return [_row(moved.get(run.execution_id, run), run.execution_id not in crashed) for run in runs]


def statuses(rows: Iterable[tuple[Any, ...]]) -> list[RunStatus]:
    """The rows, in the order of a `RunRow`, for people: UTC datetimes, tags as a tuple."""
    return [
        RunStatus(
            execution_id=row.execution_id,
            agent=row.agent,
            status=row.status,
            session=row.session,
            prompt=row.prompt,
            steps=row.steps,
            created_at=moment(row.created),
            updated_at=moment(row.updated),
            tags=tuple(loads(row.tags)),
            workdir=row.workdir,
            parent=row.parent,
        )
        for row in map(RunRow._make, rows)
    ]


def pending_of(
    execution_id: str, agent: str, step: Iterable[Stored], load: Callable[[str], Log]
) -> Pending | None:
    """The open pause at the end of a step's rows. A fork's step began in its parent: its rows are
    in the whole history, which `load` finds; by then somebody may have answered."""
    rows = [decode(stored, execution_id) for stored in step]
    if isinstance(rows[0].entry, ToolCall):
        return pending(execution_id, agent, rows)
    return open_pause(load(execution_id))


def candidates(runs: Iterable[Newest]) -> Iterable[Candidate]:
    """The runs as pruning sees them."""
    for run in runs:
        status = run.status or "running"
        yield Candidate(run.execution_id, run.parent, status, loads(run.tags), run.updated)


def effect_row(function: str, key: str, attempts: int, begun: int, kept: int | None) -> EffectRow:
    """A line of what a run's `@idempotent` functions did, from its columns."""
    return EffectRow(function, key, attempts, moment(begun), None if kept is None else moment(kept))


def refuse_removal(execution_id: str, runs: Iterable[Newest], held: Collection[int]) -> None:
    """Raise `RunIsLive` or `InvalidInput` if the run cannot be forgotten."""
    for run in runs:
        if run.parent == execution_id:
            raise InvalidInput(
                f"run {execution_id!r} is needed by {run.execution_id!r}, which goes on from it; "
                "delete that one first"
            )
        if run.execution_id == execution_id and _unfinished(run) and run.writer in held:
            raise refusals.live(execution_id)


def session_of(session: str, runs: int, created: int, prompt: str, newest: RunRow) -> Session:
    """A conversation: how many runs it has, when and with what it began, and its newest run."""
    return Session(
        session=session,
        newest=newest.execution_id,
        status=newest.status,
        agent=newest.agent,
        prompt=prompt,
        runs=runs,
        created_at=moment(created),
        updated_at=moment(newest.updated),
    )


def _unfinished(run: Newest) -> bool:
    return run.status is None


def _row(run: Newest, live: bool) -> RunRow:
    status = run.status or ("running" if live else "crashed")
    return RunRow._make(run[: len(RunRow._fields)])._replace(status=status)
