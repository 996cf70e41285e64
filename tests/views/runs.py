"""A store with a run of every status, and a store that counts what is read of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from durable_nb import Agent, Checkpointer, Resume, ScriptedModel, call, interrupt
from durable_nb.model.messages import Message, Reply, Usage

STATUS = {
    "approved": "completed",
    "rejected": "completed",
    "waits": "paused",
    "broken": "failed",
    "dead": "crashed",
    "small": "completed",
}


def refund(order: str, amount: int) -> str:
    """Pay an order back; more than 10 needs a manager."""
    if order == "interrupted":
        raise KeyboardInterrupt
    if amount > 10:
        decision = interrupt("manager_approval", {"order": order, "amount": amount})
        return "refunded" if decision.approved else "refused"
    return "refunded"


def bot(store: Checkpointer, *script: object) -> Agent:
    llm = ScriptedModel(list(script))
    return Agent(name="refund-bot", llm=llm, tools=[refund], checkpointer=store)


def a_run_of_every_status(store: Checkpointer) -> None:
    """The runs of `STATUS`, oldest first."""
    large, small = (call("refund", order="1042", amount=amount) for amount in (20, 5))
    dead = call("refund", order="interrupted", amount=5)
    counted = Reply(Message("assistant", "Done."), Usage(7, 3))
    agent = bot(store, large, counted)
    for execution_id, approved in (("approved", True), ("rejected", False)):
        agent.run("Refund order 1042", execution_id=execution_id, tags=("demo",))
        decision = Resume(approved=approved, by="ann", reason="as agreed")
        agent.resume(execution_id, resume_value=decision)
    agent.run("Refund order 1042", execution_id="waits")
    with suppress(OSError):
        bot(store, OSError("the provider answers 503")).run("Hello", execution_id="broken")
    with suppress(KeyboardInterrupt):
        bot(store, dead).run("Refund it", execution_id="dead")
    bot(store, small, "Done.").run("Refund order 7", execution_id="small")


class Counting:
    """A store that counts the rows which explorers take of it."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.entries = self.lists = 0

    def stamp(self) -> object:
        return self._store.stamp()

    def removals(self) -> int:
        return self._store.removals()

    def entry_rows(
        self, *, since: int = 0, execution_id: str | None = None
    ) -> Iterator[tuple[Any, ...]]:
        for row in self._store.entry_rows(since=since, execution_id=execution_id):
            self.entries += 1
            yield row

    def settled(self) -> int:
        return self._store.settled()

    def effect_rows(self, execution_id: str | None = None) -> Iterable[tuple[Any, ...]]:
        return self._store.effect_rows(execution_id)

    def waiting_rows(self) -> Iterator[tuple[Any, ...]]:
        for row in self._store.waiting_rows():
            self.entries += 1
            yield row

    def run_rows(self) -> Iterable[tuple[Any, ...]]:
        self.lists += 1
        return self._store.run_rows()
