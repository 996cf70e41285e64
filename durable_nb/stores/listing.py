"""Lists of runs and of pauses, from what a backend's queries return: one meaning on all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from durable_nb.core.nodes import Pending, moment, pending, run_status
from durable_nb.model.codec import Stored, decode
from durable_nb.model.entries import Run
from durable_nb.model.values import dumps, loads
from durable_nb.stores.protocol import RunRow, RunStatus


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
    return [
        _row(moved.get(run.execution_id, run), run.execution_id not in dead.keys() - moved.keys())
        for run in runs
    ]


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
        )
        for row in rows
    ]


def pending_of(execution_id: str, agent: str, step: Iterable[Stored]) -> Pending:
    """The open pause at the end of a step's rows."""
    rows = [decode(stored, execution_id) for stored in step]
    return pending(Run(execution_id, agent, prompt="", created_at=0, session=""), rows)


def run_columns(run: Run) -> tuple[object, ...]:
    """A run as an insert takes it; `run_from` says in which order it comes back."""
    tags, workdir = dumps(list(run.tags)), run.workdir
    return (
        *(run.execution_id, run.agent, run.prompt, run.created_at, run.session),
        *(run.fingerprint, workdir, tags, run.base),
    )


def run_from(columns: Sequence[Any]) -> Run:
    """The run in the columns of a look-up."""
    id_, agent, prompt, created, session, definition, fingerprint, workdir, tags, base = columns
    return Run(
        execution_id=id_,
        agent=agent,
        prompt=prompt,
        created_at=created,
        session=session,
        definition=definition,
        fingerprint=fingerprint,
        workdir=workdir,
        tags=tuple(loads(tags)),
        base=base,
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
    )
