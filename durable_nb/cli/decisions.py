"""Subcommands that decide: approve, reject, answer. None does so without the number of its pause.

Approving takes `--yes` beside it. Without a flag that it needs a decision is shown, not taken.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from functools import partial
from typing import cast

from durable_nb.cli import agents, options, screen, shapes, text
from durable_nb.cli.driving import agent_for, drive
from durable_nb.cli.pauses import check_pause, pause_text
from durable_nb.core.changes import changes
from durable_nb.core.explain import explain, rejection
from durable_nb.core.nodes import open_pause
from durable_nb.core.reopen import Claimant, reopen
from durable_nb.core.state import state_of
from durable_nb.model.decisions import Resume
from durable_nb.model.entries import Log, Pause
from durable_nb.model.errors import AlreadyResumed
from durable_nb.stores.upkeep import now

_USAGE = 2
_PRINTS = f"{shapes.RESULT}; or {shapes.PREVIEW}"


def add_approve(commands: options.Commands) -> None:
    does = "approve what a run waits for, and drive it on; without --yes, show what that would do"
    approve = _add(commands, "approve", _approve, does)
    approve.add_argument("--yes", action="store_true", help="approve; else it is only shown")
    options.add_person(approve)
    approve.add_argument(
        "--set",
        action="append",
        default=[],
        type=options.named_json,
        metavar="NAME=JSON",
        dest="edits",
        help="run the tool with another argument",
    )


def add_reject(commands: options.Commands) -> None:
    does = "reject what a run waits for, and drive it on"
    options.add_person(_add(commands, "reject", _reject, does))


def add_answer(commands: options.Commands) -> None:
    does = "say what became of a call in doubt, and drive its run on"
    answer = _add(commands, "answer", _answer, does)
    options.add_person(answer, note=False)
    outcome = answer.add_mutually_exclusive_group()
    outcome.add_argument(
        "--happened",
        type=options.json_value,
        default=argparse.SUPPRESS,
        metavar="JSON",
        help="it took effect, and this is what it returned",
    )
    outcome.add_argument("--run-again", action="store_true", help="it did not: run it, this once")
    outcome.add_argument("--stop", action="store_true", help="nobody knows: cancel the run")


def _add(
    commands: options.Commands, name: str, run: options.Command, does: str
) -> argparse.ArgumentParser:
    parser = options.add(commands, name, run, does=does, prints=_PRINTS)
    parser.add_argument("id", metavar="ID", help="the run's execution_id")
    parser.add_argument("--pause", type=options.count, metavar="N", help="the number that is shown")
    options.add_agent(parser)
    return parser


def _approve(chosen: argparse.Namespace) -> int:
    edited = dict(chosen.edits) or None
    decision = Resume(approved=True, by=chosen.by, reason=chosen.note, edited=edited)
    return _decide(chosen, "approve", decision, sure=chosen.yes)


def _reject(chosen: argparse.Namespace) -> int:
    decision = Resume(approved=False, by=chosen.by, reason=chosen.note)
    return _decide(chosen, "reject", decision)


def _answer(chosen: argparse.Namespace) -> int:
    if "happened" in chosen:
        decision, would = Resume.happened(chosen.happened, by=chosen.by), "answer --happened"
    elif chosen.run_again:
        decision, would = Resume.run_again(by=chosen.by), "answer --run-again"
    elif chosen.stop:
        decision, would = Resume.stop(by=chosen.by), "answer --stop"
    else:
        return _preview(chosen, "answer", None)
    return _decide(chosen, would, decision)


def _decide(chosen: argparse.Namespace, would: str, decision: Resume, *, sure: bool = True) -> int:
    if chosen.pause is None or not sure:
        return _preview(chosen, would, decision)
    agent = agent_for(chosen, chosen.id)
    log = agent.checkpointer.load(chosen.id)
    check_pause(log, chosen.pause, chosen)
    changed = changes(log.definition, agent.definition().text)
    if changed:
        screen.say(f"changed since the pause: {', '.join(changed)}")
    step = partial(agent.resume, chosen.id, resume_value=decision, pause=chosen.pause)
    return drive(chosen, agent, chosen.id, step)


def _preview(chosen: argparse.Namespace, would: str, decision: Resume | None) -> int:
    """Show what a decision would do, and the command that decides. Nothing is changed.

    Raises what the decision itself would be refused with.
    """
    agent = None if chosen.agent is None else agents.find(chosen.agent, chosen.store)
    store = options.store_of(chosen) if agent is None else agent.checkpointer
    log = store.load(chosen.id)
    check_pause(log, chosen.pause, chosen)
    definition = log.definition if agent is None else agent.definition().text
    _show(chosen, log, would, decision, changes(log.definition, definition))
    screen.say(f"nothing was decided; to {would.split()[0]}:")
    screen.say(f"  {_complete(chosen, would, log.rows[-1].number)}")
    return _USAGE


def _complete(chosen: argparse.Namespace, would: str, pause: int) -> str:
    """The command that decides: all that was typed, and all that it lacked."""
    name, *outcome = would.split()
    words = [name, chosen.id, "--pause", str(pause), "--agent", options.agent_of(chosen)]
    words += [*outcome, *options.place_of(chosen), *["--json"] * chosen.json]
    if "happened" in chosen:
        words.insert(words.index("--happened") + 1, json.dumps(chosen.happened))
    for flag in ("by", "note"):
        if (value := getattr(chosen, flag, None)) is not None:
            words += [f"--{flag}", value]
    for edited, value in getattr(chosen, "edits", ()):
        words += ["--set", f"{edited}={json.dumps(value)}"]
    words += ["--yes"] * (name == "approve")
    undecided = " --happened JSON | --run-again | --stop" if would == "answer" else ""
    return text.command(*words) + undecided


def _show(
    chosen: argparse.Namespace,
    log: Log,
    would: str,
    decision: Resume | None,
    changed: Sequence[str],
) -> None:
    state, pause = state_of(log), open_pause(log)
    if decision is not None:
        who = Claimant(by=decision.by or "you", at=now())
        reopen(chosen.id, state, who, decision=decision, pause=chosen.pause)
    if pause is None:
        raise AlreadyResumed(f"run {chosen.id!r} has no open pause: there is nothing to answer")
    sentence = rejection(cast("Pause", state.at.entry)) if would == "reject" else explain(state)
    if chosen.json:
        screen.show_json(shapes.preview_of(would, sentence, changed, pause))
        return
    screen.show(pause_text(pause, sentence))
    if decision is not None and decision.edited:
        screen.show(f"with\n  {text.frozen(decision.edited)}")
    if changed:
        screen.show(f"changed since the pause: {', '.join(changed)}")
