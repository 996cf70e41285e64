"""A pause as a person needs it for deciding: pure."""

from __future__ import annotations

from durable_nb.cli import text
from durable_nb.core.explain import call_text
from durable_nb.core.nodes import Pending


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


def ways_to_decide(pause: Pending, agent: str = "MODULE:NAME") -> list[str]:
    """The commands that answer the pause."""
    rest = (pause.execution_id, "--pause", str(pause.number), "--agent", agent)
    if pause.asks == "in_doubt":
        return [f"{text.command('answer', *rest)} --happened JSON | --run-again | --stop"]
    return [text.command("approve", *rest, "--yes"), text.command("reject", *rest)]
