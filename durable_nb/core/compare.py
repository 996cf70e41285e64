"""What differs between two steps of a run, or of two runs: pure.

A step is looked at as the state that its row leaves behind. What is compared is that state by key,
and the transcript message by message, each at its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import unified_diff
from itertools import islice, zip_longest
from typing import Literal, TypeAlias

from durable_nb.core.decide import arguments_of
from durable_nb.core.nodes import node_id, row_at, status_of
from durable_nb.core.state import State, fold, state_of
from durable_nb.core.text import readable
from durable_nb.model.entries import Answer, End, Log, Pause
from durable_nb.model.errors import InvalidInput
from durable_nb.model.messages import Message, Usage

How: TypeAlias = Literal["added", "removed", "changed"]

AROUND = 2  # unchanged lines beside those of a text that changed
MOST = 2_000  # lines of a text that are compared
LONG = 200  # characters of a line that is compared as one

_ENDS = re.compile(r"(?<=[.!?;,]) ")


@dataclass(frozen=True, slots=True)
class Point:
    """A run as it was once its row `number` was on disk."""

    execution_id: str
    agent: str
    number: int
    node_id: str
    status: str
    state: State


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is not the same: `arguments.amount`, or `message 3 (tool)`. `before` or
    `after` is None where there is nothing of that name."""

    key: str
    how: How
    before: str | None
    after: str | None


def point(log: Log, at: int | str) -> Point:
    """The run at an entry's number, or at a node: its first `Turn`, `ToolCall` or `End`.

    Raises `InvalidInput` for what is no entry of the run or of those it goes on from.
    """
    row = row_at(log.rows, at)
    if row is None:
        raise InvalidInput(
            f"run {log.run.execution_id!r} has no entry {at!r}; there are numbers from 1 to "
            f"{log.rows[-1].number}, and nodes such as {node_id(log.rows[-1].entry)}"
        )
    upto = replace(log, rows=tuple(each for each in log.rows if each.number <= row.number))
    state = state_of(upto) if upto.own else fold(upto.rows)
    status = status_of(log, state) if row is log.rows[-1] else _past(state)
    return Point(log.run.execution_id, log.run.agent, row.number, node_id(row.entry), status, state)


def compare(before: Point, after: Point) -> tuple[Change, ...]:
    """What differs from one point to the other: keys of the state first, then messages."""
    return (*_by_key(before, after), *_by_message(before.state, after.state))


def line_changes(change: Change, around: int = AROUND) -> list[str]:
    """The lines of a change, each with a sign before it: `+`, `-`, or a blank for one that is the
    same. `…` stands where such lines are left out."""
    before, after = _lines(change.before), _lines(change.after)
    if change.how != "changed":
        return [f"- {line}" for line in before] + [f"+ {line}" for line in after]
    compared = islice(unified_diff(before[:MOST], after[:MOST], n=around, lineterm=""), 2, None)
    lines = [
        "…" if line.startswith("@@") else f"{line[0]} {line[1:]}"
        for line in compared
        if not line.startswith("@@ -1,")  # nothing is left out before the first line
    ]
    return lines or [f"… they differ after {MOST:,} lines"]


def message_text(message: Message) -> str:
    """A message as a person reads it: what was said, and what was asked for."""
    calls = (_call_lines(call.tool, call.arguments) for call in message.tool_calls)
    return "\n".join(filter(None, (message.content, *calls)))


def _past(state: State) -> str:
    return "running" if state.status == "open" else state.status


def _by_key(before: Point, after: Point) -> Iterator[Change]:
    old, new = dict(_keys(before)), dict(_keys(after))
    for key in dict.fromkeys((*new, *old)):
        if (change := _change(key, old.get(key), new.get(key))) is not None:
            yield change


def _by_message(before: State, after: State) -> Iterator[Change]:
    """Messages that read differently: what is only for a provider is not compared."""
    pairs = zip_longest(before.transcript, after.transcript)
    for place, (old, new) in enumerate(pairs, start=1):
        if old == new:
            continue
        roles = dict.fromkeys(each.role for each in (old, new) if each is not None)
        change = _change(f"message {place} ({' → '.join(roles)})", _said(old), _said(new))
        if change is not None:
            yield change


def _change(key: str, before: str | None, after: str | None) -> Change | None:
    if before == after:
        return None
    how: How = "added" if before is None else "removed" if after is None else "changed"
    return Change(key, how, before, after)


def _keys(at: Point) -> Iterator[tuple[str, str]]:
    """Everything of a state but its messages, as names and texts."""
    state = at.state
    yield from (("agent", at.agent), ("status", at.status), ("node", at.node_id))
    yield "turn", str(state.turn)
    yield from _in_step(state)
    match state.newest.entry:
        case Pause(reason=reason, context=context):
            yield "waits for", reason
            yield from _flat("context", context)
        case End(error=str(error)):
            yield "error", error
        case _:
            pass
    yield from _spent(state.usage)
    yield from _kept(state)


def _in_step(state: State) -> Iterator[tuple[str, str]]:
    if state.step is not None:
        yield "tool", state.step.tool
        yield from _flat("arguments", arguments_of(state))
    for answered in state.answers:
        yield f"decision on pause {answered.answer.pause}", decision_text(answered.answer)


def _kept(state: State) -> Iterator[tuple[str, str]]:
    if state.prompt is not None:
        yield "prompt that waits", state.prompt
    if state.workdir is not None:
        yield "workdir", state.workdir
    if state.start:
        yield "oldest message sent", str(state.start + 1)


def _spent(usage: Usage) -> Iterator[tuple[str, str]]:
    for name in ("input_tokens", "output_tokens", "cached_tokens"):
        if count := getattr(usage, name):
            yield f"usage.{name}", f"{count:,}"
    if usage.cost is not None:
        yield "usage.cost", f"${usage.cost:.6f}"


def decision_text(answer: Answer) -> str:
    """`approved by alice, with amount=90: in stock`."""
    verdict = answer.outcome or ("approved" if answer.approved else "rejected")
    edits = ", ".join(f"{name}={readable(new)}" for name, new in (answer.edited or {}).items())
    said = f"{verdict} by {answer.by}" + (f", with {edits}" if edits else "")
    return f"{said}: {answer.reason}" if answer.reason else said


def _flat(name: str, value: object) -> Iterator[tuple[str, str]]:
    """A value by the paths of what it holds; lists are taken whole."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}", inner)
    else:
        yield name, readable(value)


def _call_lines(tool: str, arguments: Mapping[str, object] | str) -> str:
    if isinstance(arguments, str):
        return f"{tool}({arguments})"
    inside = [f"{name}={readable(value)}" for name, value in arguments.items()]
    one_line = f"{tool}({', '.join(inside)})"
    if len(one_line) <= 100 and "\n" not in one_line:
        return one_line
    return "\n".join((f"{tool}(", *(f"  {each}," for each in inside), ")"))


def _said(message: Message | None) -> str | None:
    return None if message is None else message_text(message)


def _lines(text: str | None) -> list[str]:
    """A text's lines; long ones are parted where a sentence or an item of theirs ends."""
    if text is None:
        return []
    return [
        piece
        for line in text.split("\n")
        for piece in (_ENDS.split(line) if len(line) > LONG else [line])
    ]
