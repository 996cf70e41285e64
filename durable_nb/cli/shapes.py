"""What `--json` prints: one shape a command, of which each `KEYS` is the documentation.

Times are ISO 8601 in UTC. Text and values stand for themselves; what JSON cannot say exactly
(NaN, bytes, a date, a lone surrogate) is an object with one key that starts with `$`, as in the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from durable_nb.core.calls import model_calls
from durable_nb.core.explain import explain
from durable_nb.core.nodes import Checkpoint, Pending, checkpoints, status_of
from durable_nb.core.state import State
from durable_nb.model.codec import encode
from durable_nb.model.entries import End, Log
from durable_nb.model.values import Json, freeze, loads

if TYPE_CHECKING:
    from durable_nb.runtime.result import RunResult
    from durable_nb.stores.protocol import EffectRow

RUNS = (
    "a list of {execution_id, agent, status, session, prompt, steps, created_at, updated_at, "
    "tags, workdir, parent}, newest first"
)
SESSIONS = (
    "a list of {session, newest, status, agent, prompt, runs, created_at, updated_at}, newest first"
)
PENDING = (
    "a list of {execution_id, number, reason, context, node_id, agent_path, agent, tool, "
    "arguments, created_at, asks, expires_at}, oldest first"
)
SHOW = (
    "{execution_id, agent, status, session, prompt, created_at, tags, workdir, parent, next, "
    "output, usage: {input_tokens, output_tokens, cached_tokens, cost: in US dollars, or null where "
    "it is not known}, calls: a list of {row, number, attempt, outcome, usage, asked: {model, "
    "retries, trim}}, steps: a list of {number, node_id, node_index, "
    "step_type, status, agent_path, created_at, entry}, effects: a list of {function, key, "
    "attempts, begun_at, kept_at}}"
)
RESULT = (
    "{execution_id, status, output, usage: {input_tokens, output_tokens, cached_tokens, cost}, "
    "pending_interrupt: null or {reason, context, node_id, agent_path, number}}"
)
PREVIEW = "{would, next, changed, pending: as in `pending --json`}, where a flag is missing"
CANCEL = "{execution_id, status}"
PRUNE = "{removed: a list of execution_ids, dry_run}"
EXPORT = "{path, bytes}"
DOCTOR = (
    "{store, version, runs, entries, faults, driven: a list of {execution_id, number, owner}, "
    "in_doubt: a list of {execution_id, number, call, begun_at}, wal_bytes}"
)


def record(item: Any) -> dict[str, Json]:
    """A dataclass of a store's, by its fields."""
    return {each.name: _json(getattr(item, each.name)) for each in fields(item)}


def run_of(log: Log, state: State, effects: Sequence[EffectRow]) -> Json:
    """All of one run."""
    run, newest = log.run, state.newest
    return {
        "execution_id": freeze(run.execution_id),
        "agent": freeze(run.agent),
        "status": status_of(log, state),
        "session": freeze(run.session),
        "prompt": freeze(run.prompt),
        "created_at": _utc(checkpoints(log)[0].created_at),
        "tags": [freeze(tag) for tag in run.tags],
        "workdir": freeze(state.workdir),
        "parent": freeze(run.parent),
        "next": freeze(explain(state)),
        "output": freeze(newest.entry.output if isinstance(newest.entry, End) else None),
        "usage": _json(state.usage),
        "calls": [record(each) for each in model_calls(log)],
        "steps": [
            _step(row, loads(encode(stored).body))
            for row, stored in zip(checkpoints(log), log.own, strict=True)
        ],
        "effects": [record(each) for each in effects],
    }


def result_of(result: RunResult) -> Json:
    """How far a run went."""
    waits = result.pending_interrupt
    return {
        "execution_id": freeze(result.execution_id),
        "status": result.status,
        "output": freeze(result.output),
        "usage": _json(result.usage),
        "pending_interrupt": None if waits is None else freeze(dict(waits)),
    }


def preview_of(would: str, sentence: str, changed: Sequence[str], pending: Pending) -> Json:
    """What a decision would do, before it is one."""
    return {
        "would": would,
        "next": freeze(sentence),
        "changed": [freeze(each) for each in changed],
        "pending": record(pending),
    }


def _step(row: Checkpoint, body: Json) -> Json:
    shown = ("number", "node_id", "node_index", "step_type", "status", "agent_path", "created_at")
    return {**{name: _json(getattr(row, name)) for name in shown}, "entry": body}


def _json(value: object) -> Json:
    match value:
        case datetime():
            return _utc(value)
        case tuple():
            return [_json(each) for each in value]
        case _ if hasattr(value, "__dataclass_fields__"):
            return record(value)
        case _:
            return freeze(value)


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
