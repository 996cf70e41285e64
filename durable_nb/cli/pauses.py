"""A run's open pause as a person needs it for deciding: pure."""

from __future__ import annotations

from durable_nb.cli import text
from durable_nb.core.explain import call_text
from durable_nb.core.nodes import Pending, pending
from durable_nb.model.entries import Log, Pause, ToolCall


def open_pause(log: Log) -> Pending | None:
    """The pause that the run waits at, if it does."""
    if not isinstance(log.rows[-1].entry, Pause):
        return None
    calls = (at for at, row in enumerate(log.rows) if isinstance(row.entry, ToolCall))
    return pending(log.run, log.rows[max(calls) :])


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
