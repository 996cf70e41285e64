"""A pause as a person needs it for deciding: pure."""

from __future__ import annotations

import argparse

from durable_nb.cli import options, text
from durable_nb.core.explain import call_text
from durable_nb.core.nodes import Pending, open_pause, pauses
from durable_nb.model.entries import Log
from durable_nb.model.errors import InvalidInput


def pause_text(pause: Pending, sentence: str) -> str:
    """What is asked, of what, and what a yes does."""
    shown = {
        "run": pause.execution_id,
        "pause": pause.number,
        "asks": pause.reason,
        "agent": pause.agent,
        "call": call_text(pause.tool, pause.arguments),
        "since": text.local(pause.created_at),
    }
    if pause.expires_at is not None:
        shown["expires"] = text.local(pause.expires_at)
    context = text.frozen(pause.context).replace("\n", "\n  ")
    return f"{text.facts(shown)}\ncontext\n  {context}\n{sentence}"


def check_pause(log: Log, pause: int | None, chosen: argparse.Namespace) -> None:
    """Refuse a pause that the run never had, with the one that is open."""
    if pause is None or pause in pauses(log):
        return
    waits = open_pause(log)
    instead = f"pause {waits.number} ({waits.reason}) is open: " if waits else "none is open"
    typed = ways_to_decide(waits, chosen)[0] if waits else ""
    raise InvalidInput(f"run {log.run.execution_id!r} has no pause {pause}; {instead}{typed}")


def ways_to_decide(pause: Pending, chosen: argparse.Namespace) -> list[str]:
    """The commands that answer the pause where this one was typed."""
    number, agent = str(pause.number), options.agent_of(chosen)
    rest = (pause.execution_id, "--pause", number, "--agent", agent, *options.place_of(chosen))
    if pause.asks == "in_doubt":
        return [f"{text.command('answer', *rest)} --happened JSON | --run-again | --stop"]
    return [text.command("approve", *rest, "--yes"), text.command("reject", *rest)]
