"""What one step of a run opens to: everything that its row holds, and what came of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from durable_nb.core.calls import ModelCall, spent
from durable_nb.core.compare import message_text
from durable_nb.core.nodes import agent_path, moment
from durable_nb.core.text import readable
from durable_nb.model.entries import (
    Answer,
    End,
    Entry,
    Log,
    Pause,
    Reentry,
    Row,
    ToolCall,
)
from durable_nb.model.messages import Message, Usage
from durable_nb.notebook.parts import Block, Commands, Fields, Part, Say, fields_of
from durable_nb.notebook.words import head, word

BRIEF = 1_500  # characters of one text, unless the step is opened
SAID = 20  # messages of one entry


def details(
    log: Log,
    row: Row,
    *,
    reply: Message | None,
    result: Message | None,
    call: ModelCall | None,
    opened: bool,
) -> tuple[Part, ...]:
    """All there is to a step; long texts are cut short unless it is `opened`. `reply` is what the
    model said at it, `result` what it was told of the tool's call."""
    parts = [_facts(log, row, call), *_of_entry(row.entry), *_brought(row.entry)]
    run = word(log.run.execution_id)
    whole = f"h = %durable show {run}   then   h.messages"
    if reply is not None:
        parts += [Say("the model replied"), Block(message_text(reply), whole)]
    if result is not None:
        parts += [Say("the model was told"), Block(result.content, whole)]
    short = parts if opened else [_short(each) for each in parts]
    if short != parts:
        short.append(Commands(((f"%durable show {run} --step {row.number}", "more of it"),)))
    return tuple(short)


def _short(part: Part) -> Part:
    match part:
        case Block(text=text):
            return Block(head(text, BRIEF), "")
        case Fields(title=title, values=values):
            cut = tuple((name, head(value, BRIEF)) for name, value in values)
            return Fields(title, cut)
        case _:
            return part


def _facts(log: Log, row: Row, call: ModelCall | None) -> Fields:
    known = {
        "written": f"{moment(row.at):%Y-%m-%d %H:%M:%S} UTC",
        "by": agent_path(log.run.agent, row.entry),
        "model": call.asked.model if call else "",
        "tokens": _tokens(call.usage) if call else "",
        "asked": f"time {call.attempt} for this turn" if call and call.attempt > 1 else "",
    }
    return Fields("", tuple((name, value) for name, value in known.items() if value))


def _tokens(usage: Usage) -> str:
    if not usage.total_tokens:
        return ""
    kept = f", {usage.cached_tokens:,} of them kept by the provider" if usage.cached_tokens else ""
    return f"{usage.input_tokens:,} in{kept}, {usage.output_tokens:,} out; {spent(usage)}"


def _of_entry(entry: Entry) -> Iterator[Part]:
    match entry:
        case ToolCall(tool=tool, arguments=arguments, call_id=call_id):
            yield fields_of(f"{tool}, call {call_id}", arguments)
        case Pause():
            yield from _asked(entry)
        case Answer():
            yield from _decided(entry)
        case Reentry():
            yield from _reentered(entry)
        case End(error=str(error)):
            yield Block(error, "")
        case _:
            return


def _asked(pause: Pause) -> Iterator[Part]:
    yield fields_of(pause.reason, pause.context)
    more = {
        "frozen": f"digest {pause.digest}" if pause.digest else "",
        "expires": ""
        if pause.expires_at is None
        else f"{moment(pause.expires_at):%Y-%m-%d %H:%M:%S} UTC",
        "a rejection": "does not run the tool again" if pause.on_reject == "skip" else "",
        "in doubt": "the tool's call" if pause.asks == "in_doubt" and pause.key is None else "",
        "in doubt, @idempotent": pause.key or "",
    }
    yield Fields("", tuple((name, value) for name, value in more.items() if value))


def _decided(answer: Answer) -> Iterator[Part]:
    verdict = answer.outcome or ("approved" if answer.approved else "rejected")
    how = "because nobody had decided in time" if answer.source == "timeout" else "by a person"
    known = {
        "decision": f"{verdict}, pause {answer.pause}",
        "who": f"{answer.by}, {how}",
        "note": answer.reason or "",
        "arguments": _digests(answer),
        "changed since the pause": ", ".join(answer.changed),
        "workdir": answer.workdir or "",
    }
    yield Fields("", tuple((name, value) for name, value in known.items() if value))
    if answer.edited:
        yield fields_of("edited arguments", answer.edited)
    if answer.outcome == "happened":
        yield fields_of("it had returned", {"result": answer.result})
    if answer.metadata:
        yield fields_of("metadata", answer.metadata)


def _digests(answer: Answer) -> str:
    if not answer.shown:
        return ""
    if answer.shown == answer.ran:
        return f"those that were shown (digest {answer.shown})"
    return f"shown: digest {answer.shown}; ran: digest {answer.ran}"


def _reentered(entry: Reentry) -> Iterator[Part]:
    how = "a fork of" if entry.why == "fork" else "went on from"
    known = {
        "why": f"{how} entry {entry.of}",
        "who": entry.by,
        "said": entry.prompt or "",
        "changed in the code": ", ".join(entry.changed),
        "workdir": entry.workdir or "",
    }
    yield Fields("", tuple((name, value) for name, value in known.items() if value))
    if entry.edited:
        yield fields_of("edited arguments", entry.edited)


def _brought(entry: Entry) -> Iterator[Part]:
    """What was said before the step and stands in no earlier entry, but for replies: they are with
    the step at which the model was asked."""
    messages = [each for each in getattr(entry, "messages", ()) if each.role != "assistant"]
    rows = tuple((each.role, readable(each.content)) for each in messages[:SAID])
    if rows:
        more = len(messages) - len(rows)
        yield Fields("new to the model", (*rows, *([("", f"… and {more} more")] if more else [])))
