"""Which entry claims a run that paused or died, or why none may: every refusal that a resume knows
is raised here, before anything is written (DESIGN R2)."""

from __future__ import annotations

from typing import cast

from durable_nb.core.decide import arguments_of, decide
from durable_nb.core.nodes import moment, node_id
from durable_nb.core.state import State
from durable_nb.model.commands import Stop, Wait
from durable_nb.model.decisions import Resume
from durable_nb.model.entries import Answer, End, Pause, Reentry
from durable_nb.model.errors import AlreadyResumed, InvalidInput, RunPaused
from durable_nb.model.values import digest, freeze, thaw


def reopen(
    execution_id: str, state: State, *, decision: Resume | None, pause: int | None, by: str
) -> Answer | Reentry:
    """The claim to append after `state`. `by` is this computer's user.

    Raises `AlreadyResumed` where nothing is left to do or the pause is not open any more,
    `RunPaused` where a decision is missing, `NotStorable` for a decision that cannot be kept.
    """
    match decide(state):
        case Stop():
            raise AlreadyResumed(f"run {execution_id!r} is over: {_ending(state)}; nothing was run")
        case Wait(open_pause) if decision is None:
            raise RunPaused(
                f"run {execution_id!r} waits for {open_pause.reason!r} (pause {state.number}); "
                f"decide with resume({execution_id!r}, resume_value=Resume(approved=...))"
            )
        case Wait(open_pause) if pause in (None, state.number):
            return _answer(state, open_pause, cast("Resume", decision), by)
        case _ if decision is not None:
            asked = "no pause is open" if pause is None else f"pause {pause} is not open"
            raise AlreadyResumed(f"run {execution_id!r}: {asked}; {_since(state)}")
        case _:
            step = state.step
            return Reentry(state.turn, step.tool if step else None, of=state.at.number, by=by)


def needed_tools(state: State) -> tuple[str, ...]:
    """The tools that a resume will call before the model is asked again."""
    return tuple(call.tool for call in state.transcript.open_calls())


def _answer(state: State, pause: Pause, decision: Resume, by: str) -> Answer:
    shown = arguments_of(state)
    edited = None if decision.edited is None else dict(decision.edited)
    return Answer(
        turn=pause.turn,
        tool=pause.tool,
        pause=state.number,
        approved=decision.approved,
        by=_who(decision, by),
        reason=decision.reason,
        metadata=thaw(freeze(dict(decision.metadata), "metadata")),
        edited=thaw(freeze(edited, "edited")),
        shown=digest(shown),
        ran=digest({**shown, **(edited or {})}),
    )


def _who(decision: Resume, by: str) -> str:
    if decision.by is not None:
        return decision.by
    approver = decision.metadata.get("approver", by)
    if not isinstance(approver, str) or not approver:
        raise InvalidInput(f"metadata['approver'] names a person in text, not {approver!r}")
    return approver


def _ending(state: State) -> str:
    end = cast("End", state.newest.entry)
    return f"{end.status} at {moment(state.newest.at):%Y-%m-%d %H:%M:%S} UTC; {_since(state)}"


def _since(state: State) -> str:
    """Who claimed the run last, and when."""
    when = f"{moment(state.claim.at):%Y-%m-%d %H:%M:%S} UTC"
    match claim := state.claim.entry:
        case Answer():
            verdict = "approved" if claim.approved else "rejected"
            return f"{claim.by} {verdict} pause {claim.pause} at {when}"
        case Reentry():
            return f"{claim.by} resumed it at {node_id(claim)} at {when}"
        case _:
            return f"it was started at {when} and nobody has had to resume it"
