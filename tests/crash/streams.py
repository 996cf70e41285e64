"""A run whose model is a provider's real client: what children drive, and what it has to come to.

It charges three orders in three turns. The server streams and fails at random; a child dies at an
entry, and another one goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from durable_nb import Agent, Checkpointer, MemoryCheckpointer, SQLiteCheckpointer, call, idempotent
from durable_nb.core.state import fold
from durable_nb.model.messages import Message, Usage
from tests.crash.child import die
from tests.llm.wire import PROVIDERS, hurry, lead
from tests.support.ledger import Ledger
from tests.support.provider_server import ProviderServer, Said, asks
from tests.support.stores import Dying

When = Literal["before", "after"]

SCRIPT = [
    asks(call("charge", order="a"), text="The first.", thinking="Three to charge."),
    asks(call("charge", order="b"), call("charge", order="c"), thinking="Two more."),
    Said("All three are charged.", usage=Usage(100, 20, 40)),
]
ENTRIES = ("turn:0", "charge a", "turn:1", "charge b", "charge c", "turn:2", "run_end")
TURNS = 3

# Which reply is on no disk when the process dies before that entry: it is asked for again.
LOST = {"charge a": 0, "charge b": 1, "run_end": 2}

SAID = [
    ("user", "Charge a, b and c", []),
    ("assistant", "The first.", ["a"]),
    ("tool", "charged a", []),
    ("assistant", "", ["b", "c"]),
    ("tool", "charged b", []),
    ("tool", "charged c", []),
    ("assistant", "All three are charged.", []),
]


class Task(NamedTuple):
    """What a child does: `at` is the entry of its own at which it dies, from 1."""

    name: str
    url: str
    folder: Path
    at: int = 0
    when: When = "after"
    turns: int = TURNS


class AtEntries(Dying):
    """A store whose owner dies at an entry. Marks of effects do not count."""

    def begin(self, *args: Any, **kwargs: Any) -> None:
        self._store.begin(*args, **kwargs)

    def keep(self, *args: Any, **kwargs: Any) -> None:
        self._store.keep(*args, **kwargs)


def drive(task: Task) -> None:
    """Begin the run of the folder's store or go on with it, until it ends or this process does."""
    lead(task.name, task.url)
    hurry()
    store: Any = SQLiteCheckpointer(task.folder / "runs.sqlite3")
    if task.at:
        store = AtEntries(store, task.at, task.when, die)
    agent = charging(task.name, task.url, store, task.folder, turns=task.turns)
    if store.runs():
        agent.resume("r1")
    else:
        agent.run("Charge a, b and c", execution_id="r1")


def charging(name: str, url: str, store: Checkpointer, folder: Path, *, turns: int) -> Agent:
    """The agent that charges, each order on the folder's ledger."""

    @idempotent
    def charge_once(order: str) -> str:
        Ledger(folder / "effects").add(order)
        return f"charged {order}"

    def charge(order: str) -> str:
        return charge_once(order)

    return PROVIDERS[name].agent(url, store, charge, max_turns=turns)


def messages(store: Checkpointer) -> list[Message]:
    """The transcript of the run."""
    return list(fold(store.load("r1").rows).transcript)


def said(transcript: Sequence[Message]) -> list[tuple[str, str, list[object]]]:
    """A transcript, as `SAID` has the plan's."""
    return [
        (each.role, each.content, [dict(call.arguments)["order"] for call in each.tool_calls])  # type: ignore[call-overload]
        for each in transcript
    ]


def words(transcript: Sequence[Message], url: str) -> str:
    """All of a transcript, ids, thinking and signatures included, but for the server's address."""
    return repr(transcript).replace(url, "URL")


@cache
def undisturbed(name: str, folder: Path) -> str:
    """The words of a run that nothing befell."""
    store = MemoryCheckpointer()
    with ProviderServer(SCRIPT) as server:
        lead(name, server.url)
        agent = charging(name, server.url, store, folder, turns=TURNS)
        agent.run("Charge a, b and c", execution_id="r1")
        return words(messages(store), server.url)
