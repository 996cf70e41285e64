"""Lists of runs, pauses and effects, from what a backend's queries return: one meaning on all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from durable_nb.core.nodes import Pending, moment, open_pause, pending, run_status
from durable_nb.core.retain import Candidate
from durable_nb.model.codec import Stored, decode
from durable_nb.model.entries import Log, ToolCall
from durable_nb.model.errors import InvalidInput
from durable_nb.model.values import loads
from durable_nb.stores import extensions, refusals
from durable_nb.stores.protocol import EffectRow, RunRow, RunStatus, Session

extensions.register()


class Newest(NamedTuple):
    """A run and its newest entry, as a query returns them. Times are in microseconds."""

    execution_id: str
    session: str
    agent: str
    kind: str
    ending: str | None
    prompt: str
    number: int
    steps: int
    created: int
    updated: int
    tags: str
    workdir: str | None
    parent: str | None
    writer: int


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


def statuses(rows: Iterable[RunRow]) -> list[RunStatus]:
    """The rows for people: UTC datetimes, tags as a tuple."""
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
        for row in rows
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
        status = run_status(run.kind, run.ending, live=True)
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
    return run.kind not in ("pause", "end")


def _row(run: Newest, live: bool) -> RunRow:
    return RunRow(
        run.execution_id,
        run.session,
        run.agent,
        run_status(run.kind, run.ending, live),
        run.prompt,
        run.steps,
        run.created,
        run.updated,
        run.tags,
        run.workdir,
        run.parent,
    )
