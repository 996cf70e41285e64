"""The views as DataFrames: UTC datetimes, nullable integers, and no more read than is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pandas import DataFrame

from durable_nb.stores import refusals
from durable_nb.stores.protocol import Checkpointer, Readable
from durable_nb.views.mirror import mirror_of, readable
from durable_nb.views.shown import is_text


def runs(*, store: Checkpointer | None = None) -> DataFrame:
    """A row a run, newest first; `steps` counts its entries, `tags` are a JSON list.

    `store` is the default one if it is left out, here as in every view.
    """
    source = readable(store)
    mirror = mirror_of(source)
    mirror.take_runs(source)
    return mirror.frame("from runs")


def steps(execution_id: str, *, store: Checkpointer | None = None) -> DataFrame:
    """A row a step of one run, oldest first. Raises `UnknownExecution`."""
    return _of_one_run("from steps order by number", execution_id, store)


def messages(execution_id: str, *, store: Checkpointer | None = None) -> DataFrame:
    """A row a message of one run, in the order the model is sent them; `number` is the entry that
    brought it, `tool_calls` are JSON. Raises `UnknownExecution`."""
    return _of_one_run("from messages order by number, position", execution_id, store)


def pending(*, store: Checkpointer | None = None) -> DataFrame:
    """A row a pause that waits for a decision, oldest first; `context` is JSON, as it was frozen."""
    source = readable(store)
    return mirror_of(source).frame("from pending", source.waiting_rows())


def usage(execution_id: str | None = None, *, store: Checkpointer | None = None) -> DataFrame:
    """A row a time that the model was asked: of one run, or of all that the store has.

    `outcome` is `answered`, `failed` (the run's end says why), `lost` (nothing of the reply is on
    disk: its process died) or `in flight`; `attempt` counts how often a turn was asked. What is not
    known is null. A run's tokens add up to its result's `usage`; a fork has its own calls alone.
    Raises `UnknownExecution`.
    """
    source = readable(store)
    mirror = mirror_of(source)
    if execution_id is None:
        mirror.take(source)
        return mirror.frame("from usage")
    entries = _entries(source, execution_id)
    if entries[-1][5] in ("turn", "reentry"):
        mirror.take_runs(source)  # it says whether the newest call is lost, or in flight
    return mirror.frame("from usage", entries)


def _of_one_run(query: str, execution_id: str, store: Checkpointer | None) -> DataFrame:
    source = readable(store)
    return mirror_of(source).frame(query, _entries(source, execution_id))


def _entries(source: Readable, execution_id: str) -> Sequence[Sequence[Any]]:
    entries = list(source.entry_rows(execution_id=execution_id)) if is_text(execution_id) else []
    refusals.known(execution_id, entries)
    return entries
