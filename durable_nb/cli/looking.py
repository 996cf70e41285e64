"""Subcommands that look: runs, show, sessions, pending. Nothing here imports an agent."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from durable_nb.cli import options, screen, shapes, text
from durable_nb.cli.pauses import pause_text, ways_to_decide
from durable_nb.core.calls import ModelCall, call_notes, calls_text, came_of, model_calls, spent
from durable_nb.core.explain import call_text, explain
from durable_nb.core.nodes import Checkpoint, checkpoints, shown_statuses, status_of
from durable_nb.core.state import State, state_of
from durable_nb.model.entries import Answer, End, Entry, Log, Pause, Reentry, ToolCall
from durable_nb.stores.waiting import what_waits

if TYPE_CHECKING:
    from durable_nb.stores.protocol import EffectRow, RunStatus, Session

T = TypeVar("T")

_FAILED = 1
_PROMPT = 60  # characters of a prompt in a list


def add_runs(commands: options.Commands) -> None:
    options.add(commands, "runs", _runs, does="list all runs, newest first", prints=shapes.RUNS)


def add_show(commands: options.Commands) -> None:
    does = "show a run: its steps, what it waits for, and what comes next"
    show = options.add(commands, "show", _show, does=does, prints=shapes.SHOW)
    show.add_argument("id", metavar="ID", help="the run's execution_id")


def add_sessions(commands: options.Commands) -> None:
    does = "list the conversations, the one with the newest run first"
    sessions = options.add(commands, "sessions", _sessions, does=does, prints=shapes.SESSIONS)
    sessions.add_argument("--limit", type=options.count, metavar="N", help="how many; else all")
    sessions.add_argument("--offset", type=options.count, default=0, metavar="N", help="skip N")


def add_pending(commands: options.Commands) -> None:
    does = "list what waits for a person, with the commands that decide"
    options.add(commands, "pending", _pending, does=does, prints=shapes.PENDING)


def _runs(chosen: argparse.Namespace) -> int:
    store = options.store_of(chosen)
    return _list(chosen, store.runs(), _runs_table, f"no runs in {store!r}")


def _sessions(chosen: argparse.Namespace) -> int:
    store = options.store_of(chosen)
    sessions = store.sessions(limit=chosen.limit, offset=chosen.offset)
    nothing = f"no sessions in {store!r}" if chosen.offset == 0 else "no more sessions"
    return _list(chosen, sessions, _sessions_table, nothing)


def _list(
    chosen: argparse.Namespace,
    found: Sequence[T],
    table: Callable[[Sequence[T]], str],
    nothing: str,
) -> int:
    """Print what was found in the form that is wanted, or say that there is nothing."""
    if chosen.json:
        screen.show_json([shapes.record(each) for each in found])
    elif found:
        screen.show(table(found))
    else:
        screen.say(nothing)
    return 0


def _runs_table(runs: Sequence[RunStatus]) -> str:
    head = ("run", "agent", "status", "steps", "updated", "prompt")
    rows = [(r.execution_id, r.agent, r.status, r.steps, *_latest(r)) for r in runs]
    return text.table(head, rows)


def _sessions_table(sessions: Sequence[Session]) -> str:
    head = ("session", "newest", "status", "agent", "runs", "updated", "prompt")
    rows = [(s.session, s.newest, s.status, s.agent, s.runs, *_latest(s)) for s in sessions]
    return text.table(head, rows)


def _latest(item: RunStatus | Session) -> tuple[str, str]:
    return text.local(item.updated_at), text.line(item.prompt, _PROMPT)


def _pending(chosen: argparse.Namespace) -> int:
    store = options.store_of(chosen)
    waiting, damaged = what_waits(store)
    for broken in damaged:
        screen.say(f"StoreCorrupt: {broken.error}")
    if chosen.json:
        screen.show_json([shapes.record(each) for each in waiting])
        return _FAILED if damaged else 0
    for each in waiting:
        sentence = explain(state_of(store.load(each.execution_id)))
        screen.show(pause_text(each, sentence))
        screen.show("".join(f"  {way}\n" for way in ways_to_decide(each, chosen)))
    if not (waiting or damaged):
        screen.say(f"nothing waits for a person in {store!r}")
    return _FAILED if damaged else 0


def _show(chosen: argparse.Namespace) -> int:
    store = options.store_of(chosen)
    log, effects = store.load(chosen.id), store.effects(chosen.id)
    state = state_of(log)
    if chosen.json:
        screen.show_json(shapes.run_of(log, state, effects))
    else:
        screen.show("\n\n".join(_run_text(log, state, effects)))
    return 0


def _run_text(log: Log, state: State, effects: Sequence[EffectRow]) -> Iterator[str]:
    run, rows, calls = log.run, checkpoints(log), model_calls(log)
    known = {
        "run": run.execution_id,
        "status": status_of(log, state),
        "agent": run.agent,
        "prompt": text.line(run.prompt, 500),
        "started": text.local(rows[0].created_at),
        "session": run.session if run.session != run.execution_id else None,
        "goes on": f"{run.parent} after entry {run.base}" if run.parent else None,
        "workdir": state.workdir,
        "tags": ", ".join(run.tags),
        "asked": calls_text(calls),
        "spent": spent(state.usage),
    }
    yield text.facts({name: value for name, value in known.items() if value})
    asked = {call.row: call for call in calls if call.row != state.number}
    steps = (
        _step(row, status, asked.get(row.number))
        for row, status in zip(rows, shown_statuses(log), strict=True)
    )
    yield text.table(("no", "node", "step", "status", "at", "detail"), steps)
    if effects:
        yield text.table(("@idempotent", "tries", "result"), map(_effect, effects))
    newest = state.newest.entry
    if isinstance(newest, End) and newest.output is not None:
        yield newest.output
    if isinstance(newest, Pause):
        yield f"context of {newest.reason}\n{text.frozen(newest.context)}"
    yield explain(state)


def _step(row: Checkpoint, status: str, call: ModelCall | None) -> tuple[object, ...]:
    moment, said = text.local(row.created_at), text.line(_detail(row.entry), 200)
    about = (said, came_of(call), *call_notes(call)) if call else (said,)
    detail = text.line("  ".join(filter(None, about)), 500)
    return row.number, row.node_id, row.step_type, status, moment, detail


def _detail(entry: Entry) -> str:
    """What a step's line says of the step."""
    match entry:
        case ToolCall():
            return call_text(entry.tool, entry.arguments)
        case Pause():
            return entry.reason
        case Answer():
            return _verdict(entry)
        case Reentry():
            return f"{entry.why}: entry {entry.of} again, by {entry.by}"
        case End():
            return entry.error or ""
        case _:
            return ""


def _verdict(answer: Answer) -> str:
    verdict = answer.outcome or ("approved" if answer.approved else "rejected")
    said = f"{verdict} by {answer.by}"
    if answer.edited:
        said += f", with {', '.join(f'{name}={value!r}' for name, value in answer.edited.items())}"
    return said if answer.reason is None else f"{said}: {answer.reason}"


def _effect(effect: EffectRow) -> tuple[object, ...]:
    kept = "none: in doubt or in flight" if effect.kept_at is None else "kept"
    return effect.function, effect.attempts, kept
