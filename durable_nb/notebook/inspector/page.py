"""What the inspector's card opens to, and a comparison, as data: pure. `render` draws it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from durable_nb.core.branch import branch
from durable_nb.core.changes import changes
from durable_nb.core.compare import Change, Point, line_changes
from durable_nb.core.decide import arguments_of
from durable_nb.core.explain import call_text
from durable_nb.core.state import fold
from durable_nb.model.entries import Log, Pause, ToolCall
from durable_nb.model.values import loads, thaw
from durable_nb.notebook.inspector.steps import Page, timeline_of
from durable_nb.notebook.parts import Block, Commands, Fold, Lines, Part, Say, Table, fields_of
from durable_nb.notebook.portrait import Portrait
from durable_nb.notebook.words import head, word

if TYPE_CHECKING:
    from durable_nb.stores.protocol import Branch, EffectRow

Place: TypeAlias = tuple[str, int]  # a run, and the number of one of its steps

EFFECTS = 20  # that a card shows
RELATED = 20  # runs
CHANGES = 60  # that a comparison shows
SHORT = 80  # characters of a value in a table
NOTE = 200  # of a prompt beside a title


@dataclass(frozen=True, slots=True)
class Family:
    """The runs that a run is related to, as its store says."""

    session: tuple[str, ...] = ()
    branches: tuple[Branch, ...] = ()

    @property
    def forks(self) -> tuple[Branch, ...]:
        return tuple(each for each in self.branches if each.execution_id not in self.session)


def inside(
    log: Log, page: Page, run_status: str, effects: Sequence[EffectRow], family: Family
) -> tuple[Part, ...]:
    """All parts below the outcome of a run."""
    return (
        timeline_of(log, page, run_status),
        *_cache(log, effects),
        *_related(log, family),
        _made_of(log),
        Commands(tuple(_typed(log, page))),
    )


def fork_says(log: Log, number: int) -> str:
    """What a fork at that step does first, and whether effects may happen again."""
    point = branch(log.run.execution_id, log.rows, at=number, prompt=None, edit=None, by="")
    state = fold(row for row in log.rows if row.number <= point.base)
    again = "What it does may happen a second time: a new run remembers nothing of this one."
    if state.step is None:
        later = any(isinstance(row.entry, ToolCall) and row.number > point.base for row in log.rows)
        asks = f"A fork here asks the model again for turn {state.turn}."
        return f"{asks} Effects of the steps after it may happen again." if later else asks
    call = call_text(state.step.tool, arguments_of(state))
    if isinstance(state.at.entry, Pause):
        return f"A fork here waits for a decision of its own; approved, it runs {call}. {again}"
    return f"A fork here runs {call} again. {again}"


def difference(before: Point, after: Point, found: Sequence[Change]) -> Portrait:
    """A comparison as a card."""
    same = before.execution_id == after.execution_id
    other = "" if same else f" of {after.execution_id}"
    facts = (
        f"step {before.number}, {before.node_id}",
        f"with step {after.number}, {after.node_id}{other}",
        f"{len(found)} difference{'' if len(found) == 1 else 's'}",
    )
    parts = tuple(_differences(before, after, found))
    return Portrait("slate", "≠" if found else "=", "compared", before.execution_id, facts, parts)


def diff_command(before: Place, after: Place) -> str:
    """What to type to compare two steps."""
    run, other = before[0], after[0]
    beside = "" if run == other else f" --with {word(other)}"
    return f"%durable diff {word(run)} {before[1]} {after[1]}{beside}"


def _differences(before: Point, after: Point, found: Sequence[Change]) -> Iterator[Part]:
    if not found:
        yield Say("Nothing of the state and no message differs.")
    shown = found[:CHANGES]
    short = [each for each in shown if _is_short(each)]
    if short:
        head_row = ("", f"step {before.number}", f"step {after.number}")
        rows = [(each.key, each.before or "–", each.after or "–") for each in short]
        yield Table("state", head_row, tuple(rows))
    for each in shown:
        if not _is_short(each):
            yield Lines(f"{each.key}, {each.how}", tuple(line_changes(each)))
    if len(found) > CHANGES:
        yield Say(f"… and {len(found) - CHANGES} more differences.")
    steps = f"{before.number}, {after.number}"
    if after.execution_id != before.execution_id:
        steps += f", other={after.execution_id!r}"
    frame = f"h = %durable show {word(before.execution_id)}   then   h.diff({steps})"
    again = diff_command(_place(before), _place(after))
    yield Commands(((again, "again"), (frame, "all of it, as a DataFrame")))


def _place(at: Point) -> Place:
    return at.execution_id, at.number


def _is_short(change: Change) -> bool:
    texts = (change.before or "", change.after or "")
    return not change.key.startswith("message ") and all(
        len(each) <= SHORT and "\n" not in each for each in texts
    )


def _cache(log: Log, effects: Sequence[EffectRow]) -> Iterator[Table]:
    """What `@idempotent` remembers, what is in doubt first."""
    if not effects:
        return
    doubtful = [each for each in effects if each.kept_at is None]
    rows = [*doubtful, *(each for each in reversed(effects) if each.kept_at is not None)]
    state = "in flight" if log.live else "in doubt: begun, no result"
    title = f"@idempotent remembers {len(effects) - len(doubtful)}"
    if doubtful:
        title += f", {len(doubtful)} {state.partition(':')[0]}"
    if len(rows) > EFFECTS:
        title += f"; {EFFECTS} of {len(rows)} are shown, durable_nb.views.idempotency() has all"
    head_row = ("function", "key", "tries", "begun", "result")
    yield Table(title, head_row, tuple(_effect(each, state) for each in rows[:EFFECTS]))


def _effect(each: EffectRow, unkept: str) -> tuple[str, ...]:
    """A line of it; `unkept` is what to say of one without a result."""
    result = unkept if each.kept_at is None else f"kept {_when(each.kept_at)}"
    key, tries = head(each.key, SHORT), str(each.attempts)
    return each.function, key, tries, _when(each.begun_at), result


def _when(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def _related(log: Log, family: Family) -> Iterator[Part]:
    """Where the run comes from and what went on from it, as commands that show it."""
    run, lines = log.run, []
    if run.parent is not None:
        how = "goes on from" if run.parent in family.session else "is a fork of"
        lines.append((_show(run.parent), f"this run {how} it, after entry {run.base}"))
    forks = [
        (_show(each.execution_id), f"fork, after entry {each.number}") for each in family.forks
    ]
    others = [each for each in family.session if each not in (run.execution_id, run.parent)]
    lines += forks + [(_show(each), "of the same conversation") for each in others]
    if lines:
        count = f"{len(lines)} related run{'' if len(lines) == 1 else 's'}"
        cut = [("", f"… and {len(lines) - RELATED} more")] if len(lines) > RELATED else []
        brief = ", ".join(f"{typed} ({does})" for typed, does in lines[:RELATED])
        yield Fold(count, (Commands((*lines[:RELATED], *cut)),), brief)


def _show(execution_id: str) -> str:
    return f"%durable show {word(execution_id)}"


def _made_of(log: Log) -> Fold:
    """The agent that drove the run last, and what of it is not as it was when the run began."""
    made = thaw(loads(log.definition))
    tools = made.get("tools", {})
    model, prompt = made.get("model", ""), made.get("system_prompt")
    known = {
        "agent": log.run.agent,
        "model": str(model),
        "settings": made.get("settings"),
        "tools": ", ".join(tools) or None,
        "changed since it began": ", ".join(changes(log.run.definition, log.definition)) or None,
    }
    parts: list[Part] = [fields_of("", {name: each for name, each in known.items() if each})]
    if prompt:
        parts += [Say("system prompt"), Block(str(prompt), "")]
    parts += [Fold(f"tool {name}", (Block(str(source), ""),)) for name, source in tools.items()]
    brief = f"model {model}; {len(tools)} tool{'' if len(tools) == 1 else 's'}"
    names = f": {', '.join(tools)}" if tools else ""
    return Fold("made of", tuple(parts), head(brief + names, NOTE))


def _typed(log: Log, page: Page) -> Iterator[tuple[str, str]]:
    """What to type for what the buttons below do."""
    run, first, last = word(log.run.execution_id), page.rows[0].number, page.rows[-1].number
    yield f"%durable show {run} --step {last}", "all there is to a step"
    yield f"%durable diff {run} {first} {last}", "what changed between two steps"
    yield f"%durable fork {run} --at {first}", "a new run from a step on"
