"""The views as DataFrames: UTC datetimes, nullable integers, and no more read than is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields
from math import nan
from typing import Any, cast

from pandas import DataFrame, StringDtype

from durable_nb.core.compare import Change, compare, point
from durable_nb.model.entries import Log
from durable_nb.stores import refusals
from durable_nb.stores.protocol import Checkpointer, Readable
from durable_nb.views.drawing import Picture, draw
from durable_nb.views.mirror import mirror_of, readable
from durable_nb.views.shown import is_text

_CHANGE = [field.name for field in fields(Change)]


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
    return mirror_of(source).frame("from pending", _entries=source.waiting_rows())


def sessions(*, store: Checkpointer | None = None) -> DataFrame:
    """A row a conversation, the one with the newest run first: a run and its follow-ups. `newest`
    is the run that a prompt continues, `status` that one's."""
    source = readable(store)
    mirror = mirror_of(source)
    mirror.take_runs(source)
    return mirror.frame("from sessions")


def tool_calls(execution_id: str | None = None, *, store: Checkpointer | None = None) -> DataFrame:
    """A row a tool call that a model asked for: in one run, or in all that the store has.

    `outcome` is `done`, `error`, `refused` (a person said no, or nobody in time), `not run`,
    `paused`, `in flight`, or `in doubt`: it had begun and nothing of a result is on disk.
    `arguments` are as they were asked for, `edited` what replaced some of them, `result` what the
    model reads. `attempts` counts how often the call was begun, by crashes; `duration` is in
    seconds and leaves out what it waited for a person. Raises `UnknownExecution`.
    """
    source = readable(store)
    mirror = mirror_of(source)
    if execution_id is None:
        mirror.take(source)
        return mirror.frame("from tool_calls")
    entries = list(_entries(source, execution_id))
    forked = entries[0][5] == "reentry"  # the arguments are in a run that it goes on from
    if forked or entries[-1][5] not in ("pause", "end"):
        mirror.take_runs(source)
    for ancestor in mirror.ancestors(execution_id) if forked else ():
        entries += source.entry_rows(execution_id=ancestor)
    query = "from tool_calls where execution_id = ?"
    return mirror.frame(query, [execution_id], _entries=entries)


def decisions(execution_id: str | None = None, *, store: Checkpointer | None = None) -> DataFrame:
    """A row a decision on a pause: in one run, or in all that the store has.

    `outcome` is `approved` or `rejected`, and for a call in doubt `happened`, `run_again` or
    `stop`. `shown` and `ran` are digests of the arguments that the person saw and of those that the
    tool ran with; `changed` names what of the agent was not as it had been. `waited` is in seconds.
    Raises `UnknownExecution`.
    """
    source = readable(store)
    mirror = mirror_of(source)
    if execution_id is not None:
        return mirror.frame("from decisions", _entries=_entries(source, execution_id))
    mirror.take(source)
    return mirror.frame("from decisions")


def idempotency(execution_id: str | None = None, *, store: Checkpointer | None = None) -> DataFrame:
    """A row a key of a run: what an `@idempotent` function did there, in one run or in all.

    `status` is `kept` (then `value` is the result, as JSON), `in flight`, or `in doubt`: it had
    begun and left no result. Raises `UnknownExecution`.
    """
    source = readable(store)
    mirror = mirror_of(source)
    if execution_id is None:
        mirror.take_effects(source)
        return mirror.frame("from idempotency")
    effects = list(source.effect_rows(execution_id)) if _is_id(execution_id) else []
    if not effects:
        _entries(source, execution_id)  # a run without any, or none
    if any(kept is None for *_, kept, _value in effects):
        mirror.take_runs(source)
    return mirror.frame("from idempotency", _effects=effects)


def diff(
    execution_id: str, a: int | str, b: int | str, *, store: Checkpointer | None = None
) -> DataFrame:
    """A row a difference between two steps of a run, each by its number or node: first what the
    state holds by key, then the messages by their place. `how` is `added`, `removed` or `changed`.

    Raises `UnknownExecution`, and `InvalidInput` for what is no step of the run.
    """
    log = _loaded(store, execution_id)
    found = compare(point(log, a), point(log, b))
    frame = DataFrame([astuple(change) for change in found], columns=_CHANGE)
    return frame.astype(StringDtype(na_value=nan))


def picture(execution_id: str, *, cost: bool = False, store: Checkpointer | None = None) -> Picture:
    """A run as a picture: when a model, a tool or a person had it, and what each turn used, in
    tokens, or with `cost=True` in US dollars. Raises `UnknownExecution`.
    """
    return draw(_loaded(store, execution_id), cost=cost)


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
    return mirror.frame("from usage", _entries=entries)


def _of_one_run(query: str, execution_id: str, store: Checkpointer | None) -> DataFrame:
    source = readable(store)
    return mirror_of(source).frame(query, _entries=_entries(source, execution_id))


def _loaded(store: Checkpointer | None, execution_id: str) -> Log:
    source = readable(store)
    return cast("Checkpointer", source).load(execution_id)


def _entries(source: Readable, execution_id: str) -> Sequence[Sequence[Any]]:
    entries = list(source.entry_rows(execution_id=execution_id)) if _is_id(execution_id) else []
    refusals.known(execution_id, entries)
    return entries


def _is_id(value: object) -> bool:
    """Whether a run can have it as its id."""
    return is_text(value) and "\0" not in value
