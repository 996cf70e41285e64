"""Which entry claims a run that paused or died, or why none may: every refusal that a resume knows
is raised here, before anything is written (DESIGN R2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from durable_nb.core.decide import arguments_of, decide
from durable_nb.core.nodes import moment, node_id
from durable_nb.core.state import State
from durable_nb.model.commands import Stop, Wait
from durable_nb.model.decisions import Resume
from durable_nb.model.entries import Answer, End, Pause, Reentry
from durable_nb.model.errors import AlreadyResumed, InvalidInput, RunPaused
from durable_nb.model.values import digest, freeze, thaw


@dataclass(frozen=True, slots=True)
class Claimant:
    """Who resumes: the computer's user, when (µs), with an agent that is `changed` since."""

    by: str
    at: int
    fingerprint: str = ""
    changed: tuple[str, ...] = ()
    workdir: str | None = None


def reopen(
    execution_id: str,
    state: State,
    who: Claimant,
    *,
    decision: Resume | None = None,
    pause: int | None = None,
    prompt: str | None = None,
) -> Answer | Reentry:
    """The claim to append after `state`.

    Raises `AlreadyResumed` where nothing is left to do or the pause is not open any more,
    `RunPaused` where a decision is missing, `NotStorable` for a decision that cannot be kept, and
    `InvalidInput` for one that does not answer what is asked.
    """
    match decide(state):
        case Stop():
            raise AlreadyResumed(f"run {execution_id!r} is over: {_ending(state)}; nothing was run")
        case Wait(open_pause) if _expired(open_pause, who) and decision is None and prompt is None:
            return _timeout(state, open_pause, who)
        case Wait(open_pause) if decision is None:
            raise RunPaused(
                f"run {execution_id!r} waits for {open_pause.reason!r} (pause {state.number}); "
                f"decide with resume({execution_id!r}, resume_value=Resume(approved=...))"
            )
        case Wait(open_pause) if _expired(open_pause, who):
            raise AlreadyResumed(
                f"pause {state.number} of run {execution_id!r} expired at "
                f"{moment(open_pause.expires_at or 0):%Y-%m-%d %H:%M:%S} UTC and nothing was "
                f"approved; resume({execution_id!r}) goes on with that"
            )
        case Wait(open_pause) if pause in (None, state.number):
            return _answer(state, open_pause, cast(Resume, decision), who)
        case _ if decision is not None:
            asked = "no pause is open" if pause is None else f"pause {pause} is not open"
            raise AlreadyResumed(f"run {execution_id!r}: {asked}; {_since(state)}")
        case _:
            return _reentry(state, who, prompt)


def needed_tools(state: State) -> tuple[str, ...]:
    """The tools that a resume will call before the model is asked again."""
    return tuple(call.tool for call in state.transcript.open_calls())


def _expired(pause: Pause, who: Claimant) -> bool:
    return pause.expires_at is not None and pause.expires_at <= who.at


def _reentry(state: State, who: Claimant, prompt: str | None) -> Reentry:
    return Reentry(
        state.turn,
        state.step.tool if state.step else None,
        of=state.at.number,
        by=who.by,
        prompt=prompt,
        changed=who.changed,
        fingerprint=who.fingerprint,
        workdir=who.workdir,
    )


def _timeout(state: State, pause: Pause, who: Claimant) -> Answer:
    """What an expired pause is answered with: a no, and not a person's."""
    return Answer(
        turn=pause.turn,
        tool=pause.tool,
        pause=state.number,
        approved=False,
        by="timeout",
        reason=f"nobody decided by {moment(pause.expires_at or 0):%Y-%m-%d %H:%M:%S} UTC",
        source="timeout",
        outcome="stop" if pause.asks == "in_doubt" else None,
        changed=who.changed,
        fingerprint=who.fingerprint,
        workdir=who.workdir,
    )


def _answer(state: State, pause: Pause, decision: Resume, who: Claimant) -> Answer:
    _check_kind(pause, decision)
    shown = arguments_of(state)
    edited = None if decision.edited is None else dict(decision.edited)
    return Answer(
        turn=pause.turn,
        tool=pause.tool,
        pause=state.number,
        approved=decision.approved,
        by=_name(decision, who.by),
        reason=decision.reason,
        metadata=thaw(freeze(dict(decision.metadata), "metadata")),
        edited=thaw(freeze(edited, "edited")),
        shown=digest(shown),
        ran=digest({**shown, **(edited or {})}),
        outcome=decision.outcome,
        result=thaw(freeze(decision.result, "result")),
        changed=who.changed,
        fingerprint=who.fingerprint,
        workdir=who.workdir,
    )


def _check_kind(pause: Pause, decision: Resume) -> None:
    if pause.asks == "in_doubt" and decision.outcome is None:
        raise InvalidInput(
            "this pause asks what became of a call in doubt: answer with Resume.happened(result), "
            "Resume.run_again() or Resume.stop()"
        )
    if pause.asks == "approval" and decision.outcome is not None:
        raise InvalidInput("this pause asks for approval: answer with Resume(approved=...)")


def _name(decision: Resume, user: str) -> str:
    if decision.by:
        return decision.by
    approver = decision.metadata.get("approver", user)
    if not isinstance(approver, str) or not approver:
        raise InvalidInput(f"metadata['approver'] names a person in text, not {approver!r}")
    return approver


def _ending(state: State) -> str:
    end = cast(End, state.newest.entry)
    when = f"{moment(state.newest.at):%Y-%m-%d %H:%M:%S} UTC"
    return f"{end.error or end.status} at {when}; {_since(state)}"


def _since(state: State) -> str:
    """Who claimed the run last, and when."""
    when = f"{moment(state.claim.at):%Y-%m-%d %H:%M:%S} UTC"
    match claim := state.claim.entry:
        case Answer(outcome=None):
            verdict = "approved" if claim.approved else "rejected"
            return f"{claim.by} {verdict} pause {claim.pause} at {when}"
        case Answer():
            return f"{claim.by} answered pause {claim.pause} ({claim.outcome}) at {when}"
        case Reentry():
            return f"{claim.by} resumed it at {node_id(claim)} at {when}"
        case _:
            return f"it was started at {when} and nobody has had to resume it"
