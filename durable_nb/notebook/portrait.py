"""What a run's card says, as data: pure. `render` draws it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import cast

from durable_nb.core.calls import calls_text, cut_note, model_calls, spent
from durable_nb.core.compare import Change
from durable_nb.core.decide import arguments_of, decide
from durable_nb.core.explain import call_text, explain, rejection, runs_again
from durable_nb.core.nodes import moment, node_id, status_of
from durable_nb.core.state import State, state_of
from durable_nb.model.commands import RunTool
from durable_nb.model.entries import Answer, End, Log, Pause, ToolCall, Turn
from durable_nb.notebook.changed import changed_parts
from durable_nb.notebook.gates import has_expired
from durable_nb.notebook.parts import Block, Commands, Part, Say, Steps, Tone, fields_of
from durable_nb.notebook.timeline import timeline, tool_errors, verdict
from durable_nb.notebook.words import word

NOTEBOOK = "notebook:"  # the tag that says where a run was started


@dataclass(frozen=True, slots=True)
class Portrait:
    tone: Tone
    glyph: str
    headline: str
    execution_id: str
    facts: tuple[str, ...]
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """What a card says that the log does not: what this kernel knows, and how it was asked."""

    notes: tuple[str, ...] = ()
    stored: bool = False
    stopped: bool = False
    error: str | None = None
    notebook: str | None = None
    changed: tuple[Change, ...] = ()
    now: int = 0
    brief: bool = False
    which_agent: str = ""
    on_crash: Callable[[str], str] = runs_again


@dataclass(frozen=True, slots=True)
class Live:
    """A step in flight: which tool works, or None while the model is asked, for how long, and what
    has come of the reply. It stands under the card and is gone when the step is on disk."""

    tool: str | None
    seconds: int
    text: str = ""


def portrait(
    log: Log, look: Look, inside: tuple[Part, ...] | None = None, state: State | None = None
) -> Portrait:
    """The card of a run as one read of its log saw it. `inside` is what it opens to: its steps,
    behind a fold, if that is left out."""
    state = state or state_of(log)
    drawn = _DRAW[status_of(log, state)](log, state, look)
    said: list[Part] = [Say(note) for note in look.notes]
    if look.error is not None:
        said.insert(0, Block(look.error, ""))
    opens = (Steps(tuple(timeline(log))),) if inside is None else inside
    bill = "" if look.stored else spent(state.usage)
    facts = (*drawn.facts, *filter(None, [bill]), *_errors(log))
    changed = changed_parts(look.changed, _SINCE.get(status_of(log, state), ""))
    return replace(drawn, facts=facts, parts=(*said, *drawn.parts, *changed, *opens))


_SINCE = {"paused": "it paused", "crashed": "its last step", "failed": "it failed"}


def unreadable(execution_id: str, error: str) -> Portrait:
    """The card of a run that cannot be read any more."""
    return Portrait("red", "✗", "cannot be read", execution_id, (), (Block(error, ""),))


def prompt_of(log: Log) -> str:
    """What the run was started with."""
    openings = (row.entry for row in (*log.own[:1], log.rows[0]) if isinstance(row.entry, Turn))
    said = next(openings).messages
    return next(message.content for message in reversed(said) if message.role == "user")


def went_on(log: Log, state: State, on_crash: Callable[[str], str]) -> str:
    """What a resume of a dead or failed run has just begun to do."""
    how = "had failed" if state.status == "failed" else "had died"
    did = _did(state, on_crash)
    return f"It {how} at {node_id(state.at.entry)}, so this cell went on from there: {did}."


def _did(state: State, on_crash: Callable[[str], str]) -> str:
    match decide(state):
        case RunTool(step, arguments) if on_crash(step.tool) != "rerun":
            return f"{call_text(step.tool, arguments)} is in doubt, and was not run again"
    match state.at.entry:
        case Turn(turn):
            return f"the model was asked again for turn {turn}, and no tool was run again"
        case ToolCall(tool=tool, arguments=arguments):
            return f"{call_text(tool, arguments)} was run again with its saved arguments; the model was not asked for it again"
        case Answer(tool=tool, by=by, approved=approved):
            verdict = "approval" if approved else "rejection"
            return f"{tool} was entered again with {by}'s recorded {verdict}"
        case _:
            return "nothing was left to do"


def _paused(log: Log, state: State, look: Look) -> Portrait:
    pause = cast("Pause", state.at.entry)
    facts = [log.run.agent, f"pause {state.number}"]
    if not look.brief:
        facts.append(f"since {_when(state.newest.at)} at {node_id(pause)}")
    context = fields_of(pause.reason, pause.context)
    if has_expired(pause, look.now):
        return _expired(
            log, look, pause, (*facts, f"expired {_when(pause.expires_at or 0)}"), context
        )
    if pause.expires_at is not None:
        facts.append(f"until {_when(pause.expires_at)}")
    asked = (
        _in_doubt(log, state, look) if pause.asks == "in_doubt" else _gate(log, state, pause, look)
    )
    parts = (context, *asked)
    return Portrait("amber", "●", "waiting for you", log.run.execution_id, tuple(facts), parts)


def _expired(log: Log, look: Look, pause: Pause, facts: tuple[str, ...], context: Part) -> Portrait:
    """A pause that nobody can answer any more: its answer is a no, written by whoever resumes."""
    no = "ends the run" if pause.asks == "in_doubt" else f"tells {pause.tool} no"
    say = Say(f"Nobody decided in time, so nothing was approved. Resume {no}, by timeout.")
    parts = (context, say, _resume(log, look))
    return Portrait("amber", "●", "expired", log.run.execution_id, facts, parts)


def _gate(log: Log, state: State, pause: Pause, look: Look) -> tuple[Part, ...]:
    run = f"{word(log.run.execution_id)} --pause {state.number}{look.which_agent}"
    typed = (
        (f"%durable approve {run}", "to approve by typing"),
        (f"%durable reject {run} --note 'why'", "to reject"),
    )
    more = "" if look.brief else f" {rejection(pause)}"
    return _explained(state, look, more), Commands(typed)


def _in_doubt(log: Log, state: State, look: Look) -> tuple[Part, ...]:
    run = f"{word(log.run.execution_id)} --pause {state.number}{look.which_agent}"
    answer = f"%durable answer {run}"
    typed = (
        (f"{answer} --happened JSON", "it happened, and returned this"),
        (f"{answer} --run-again", "it did not happen"),
        (f"{answer} --stop", "nobody knows: end the run"),
    )
    return _explained(state, look), Commands(typed)


def _completed(log: Log, state: State, look: Look) -> Portrait:
    end = cast("End", state.at.entry)
    shown = f"h = %durable show {word(log.run.execution_id)}   then   print(h.output)"
    cut = tuple(Say(note) for call in model_calls(log)[-1:] for note in cut_note(call))
    parts: tuple[Part, ...] = (Block(end.output or "", shown), *cut)
    if not look.stored:
        facts = (log.run.agent, *_tally(log))
        return Portrait("green", "✓", "completed", log.run.execution_id, facts, parts)
    facts = (
        log.run.agent,
        f"finished {_when(state.newest.at)}",
        *_origin(log, look),
        *_deciders(log),
    )
    headline = "from store, 0 model calls"
    return Portrait("slate", "✓", headline, log.run.execution_id, facts, parts)


def _cancelled(log: Log, state: State, look: Look) -> Portrait:
    end = cast("End", state.newest.entry)
    facts = (log.run.agent, f"{end.error or 'cancelled'} {_when(state.newest.at)}")
    parts = (Say("It was cancelled, so there is nothing to go on with. --new starts another run."),)
    return Portrait("slate", "■", "cancelled", log.run.execution_id, facts, parts)


def _failed(log: Log, state: State, look: Look) -> Portrait:
    end = cast("End", state.newest.entry)
    facts = (log.run.agent, f"failed {_when(state.newest.at)} at {node_id(state.at.entry)}")
    said = () if look.error else (Block(end.error or "", ""),)
    parts = (*said, _explained(state, look), _resume(log, look))
    return Portrait("red", "✗", "failed", log.run.execution_id, facts, parts)


def _crashed(log: Log, state: State, look: Look) -> Portrait:
    headline = "stopped by you" if look.stopped else "died mid-step"
    when = "" if look.brief else f", {_when(state.newest.at)}"
    facts = (log.run.agent, f"newest row {node_id(state.newest.entry)}{when}")
    parts = (_explained(state, look), _resume(log, look))
    return Portrait("red", "↯", headline, log.run.execution_id, facts, parts)


def _running(log: Log, state: State, look: Look) -> Portrait:
    facts = (log.run.agent, f"at {node_id(state.newest.entry)}")
    return Portrait("blue", "▸", "running", log.run.execution_id, facts)


_DRAW = {
    "paused": _paused,
    "completed": _completed,
    "cancelled": _cancelled,
    "failed": _failed,
    "crashed": _crashed,
    "running": _running,
}


def _explained(state: State, look: Look, more: str = "") -> Say:
    """What a click will do, with the call that it makes set apart."""
    call = call_text(state.step.tool, arguments_of(state)) if state.step else ""
    return Say(explain(state, look.on_crash) + more, code=call)


def _resume(log: Log, look: Look) -> Commands:
    typed = f"%durable resume {word(log.run.execution_id)}{look.which_agent}"
    return Commands(((typed, "or run its cell again"),))


def _tally(log: Log) -> Iterable[str]:
    yield calls_text(model_calls(log))
    if tools := sum(isinstance(row.entry, ToolCall) for row in log.own):
        yield _count(tools, "tool call")
    yield from _deciders(log)


def _errors(log: Log) -> list[str]:
    errors = len(tool_errors(log))
    return [_count(errors, "tool error")] if errors else []


def _deciders(log: Log) -> list[str]:
    answers = [row.entry for row in log.own if isinstance(row.entry, Answer)]
    said = (f"{verdict(each)}{', with edits' if each.edited else ''}" for each in answers)
    return list(dict.fromkeys(said))


def _origin(log: Log, look: Look) -> list[str]:
    """Where the run was started, if that is another notebook than this one."""
    names = [tag.removeprefix(NOTEBOOK) for tag in log.run.tags if tag.startswith(NOTEBOOK)]
    return [f"from {name}" for name in names if name != look.notebook]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _when(at: int) -> str:
    return f"{moment(at):%Y-%m-%d %H:%M} UTC"
