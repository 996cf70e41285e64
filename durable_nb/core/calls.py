"""Every time that a run asked its model, and what became of it: pure.

The model is asked at each `Turn`, and again at each `Reentry` of one. The row after says what came
of it: it brings the reply with its cost, or it is another claim, or an end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Literal, TypeAlias

from durable_nb.model.entries import End, Log, Reentry, Row, ToolCall, Turn
from durable_nb.model.messages import Asked, Message, Usage

CallOutcome: TypeAlias = Literal["answered", "failed", "lost", "in flight"]

_NOT_ASKED = ("TurnLimit: ", "BudgetExceeded: ")  # a run's end in place of asking the model


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One time that the model was asked.

    `row` is the number of the row that it was asked at, `number` that of the `Turn` it answers, and
    `attempt` counts from 1 how often this run asked it. What is `lost` left nothing of its reply on
    disk: its process died, or it was cancelled meanwhile. `kept` is what the reply is stored with
    beside its words, where a provider gave it.
    """

    row: int
    number: int
    attempt: int
    outcome: CallOutcome
    usage: Usage = Usage()
    asked: Asked = Asked()
    kept: Mapping[str, object] = field(default_factory=dict)


def model_calls(log: Log) -> list[ModelCall]:
    """A run's own calls of its model, oldest first: a fork has none of its parent's."""
    own, attempts, calls = log.own, Counter[int](), []
    for row, after in zip_longest(own, own[1:]):
        number = _asks(row)
        if number is None or _refused(after):
            continue
        attempts[number] += 1
        outcome = _outcome(after, log.live)
        calls.append(ModelCall(row.number, number, attempts[number], outcome, *_reply(after)))
    return calls


def calls_text(calls: Sequence[ModelCall]) -> str:
    """`4 model calls, 1 lost`."""
    wasted = Counter(call.outcome for call in calls if call.outcome in ("lost", "failed"))
    noun = "model call" if len(calls) == 1 else "model calls"
    return ", ".join((f"{len(calls)} {noun}", *(f"{n} {how}" for how, n in wasted.items())))


def came_of(call: ModelCall) -> str:
    """What a step's line says of its call: what it cost, or that it was in vain. Tokens that the
    provider did not tell are `≈1,204 tokens`."""
    if call.outcome == "lost":
        return "↯ asked in vain: no reply is on disk"
    return ("≈" if call.kept.get("usage") == "estimated" else "") + spent(call.usage)


def call_notes(call: ModelCall) -> Iterable[str]:
    """Lines under that one: what went wrong before the reply came, what was not sent, and why the
    reply ends before its end."""
    if retries := call.asked.retries:
        yield f"↻ asked {len(retries) + 1} times: {', then '.join(retries)}"
    if trim := call.asked.trim:
        left_out = f"{trim.dropped:,} older message{'' if trim.dropped == 1 else 's'} left out"
        yield f"▾ {trim.before:,} tokens of history, {trim.after:,} sent: {left_out}"
    yield from cut_note(call)


def cut_note(call: ModelCall) -> Iterable[str]:
    """That a reply ends before its end, and why: a limit, or a filter."""
    if reason := call.kept.get("finish_reason"):  # stored where it is no usual one
        yield f"✂ the answer was cut: {reason}"


def spent(usage: Usage) -> str:
    """`1,204 tokens, $0.0031`, as far as they are known."""
    known = []
    if usage.total_tokens:
        known.append(f"{usage.total_tokens:,} token{'' if usage.total_tokens == 1 else 's'}")
    if usage.cost is not None:
        known.append(dollars(usage.cost))
    return ", ".join(known)


def dollars(cost: float) -> str:
    """An amount of US dollars, to the cent, or to two digits below that: `$0.0031`."""
    return f"${cost:,.2f}" if cost == 0 or abs(cost) >= 1 else f"${_digits(cost)}"


def _digits(cost: float) -> str:
    places = 2
    while places < 12 and abs(cost) * 10**places < 10:
        places += 1
    return f"{cost:.{places}f}"


def _asks(row: Row) -> int | None:
    """The `Turn` that the model is asked for at this row."""
    match row.entry:
        case Turn():
            return row.number
        case Reentry(tool=None, of=number):
            return number
        case _:
            return None


def _refused(after: Row | None) -> bool:
    end = after.entry if after else None
    return isinstance(end, End) and (end.error or "").startswith(_NOT_ASKED)


def _reply(after: Row | None) -> tuple[Usage, Asked, Mapping[str, object]]:
    match after:
        case Row(entry=Turn() | ToolCall() | End() as entry):
            return entry.usage, entry.asked, _kept(entry.messages)
        case _:
            return Usage(), Asked(), {}


def _kept(messages: Iterable[Message]) -> Mapping[str, object]:
    """What the reply among the messages is stored with, beside its words."""
    replies = (each for each in messages if each.role == "assistant")
    kept = next((each.extra.get("provider") for each in replies), None)
    return kept if isinstance(kept, Mapping) else {}


def _outcome(after: Row | None, live: bool) -> CallOutcome:
    match after:
        case None:
            return "in flight" if live else "lost"
        case Row(entry=Turn() | ToolCall() | End(status="completed")):
            return "answered"
        case Row(entry=End(status="failed")):
            return "failed"
        case _:
            return "lost"
