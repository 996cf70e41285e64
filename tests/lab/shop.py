"""A refund agent that any process can build again, and whose every effect is a line in a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from durable_nb import (
    Agent,
    Checkpointer,
    Message,
    Reply,
    ScriptedModel,
    SQLiteCheckpointer,
    call,
    idempotent,
)
from tests.support.ledger import Ledger


class NotingModel:
    """A scripted model that notes each request, in the file that all its processes share."""

    name = "noting"

    def __init__(self, script: ScriptedModel, notes: Path) -> None:
        self.script, self.notes = script, notes

    def complete(self, messages: Sequence[Message], tools: Sequence[object]) -> Reply:
        note(self.notes, "asked")
        return self.script.complete(messages, tools)


def note(path: Path, line: str) -> None:
    """One call that is the whole effect, for tools that die after their first call."""
    Ledger(path).add(line)


def noted(path: Path) -> list[str]:
    return Ledger(path).lines


def store_in(folder: Path) -> SQLiteCheckpointer:
    return SQLiteCheckpointer(folder / "runs.sqlite3")


def bot(folder: Path, *, remembered: bool = True, store: Checkpointer | None = None) -> Agent:
    """Refunds order 1042 once. `remembered`: the charge is `@idempotent`."""

    def charge(order: str, amount: int) -> str:
        note(folder / "charges", f"{order} {amount}")
        return "charged"

    once = idempotent(charge) if remembered else charge

    def refund(order: str, amount: int) -> str:
        """Pay an order back."""
        said = once(order, amount)
        return f"{said} {amount}"

    script = ScriptedModel([call("refund", order="1042", amount=20), "Refunded."])
    llm = NotingModel(script, folder / "asked")
    return Agent("refund-bot", llm, [refund], checkpointer=store or store_in(folder))
