"""The agents that children drive and parents resume: made anew in each process from a task."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

from durable_nb import Agent, Checkpointer, call, idempotent, interrupt
from tests.support.agents import bot
from tests.support.ledger import Ledger

SCRIPT = [call("refund", order="1042", amount=5000), "Refund for order 1042 is on its way."]


def make(name: str, store: Checkpointer, folder: Path) -> Agent:
    """The agent `name` over a store; its effects go to the folder's ledger."""
    return AGENTS[name](store, folder)


def small(store: Checkpointer, folder: Path) -> Agent:
    """Charges once, without asking."""
    return bot(store, SCRIPT, _refund(Ledger(folder / "effects"), gates=[]))


def gated(store: Checkpointer, folder: Path) -> Agent:
    """Asks a manager before it charges."""
    return bot(store, SCRIPT, _refund(Ledger(folder / "effects"), gates=["manager"]))


def twice_gated(store: Checkpointer, folder: Path) -> Agent:
    """Asks a manager, then the VP."""
    return bot(store, SCRIPT, _refund(Ledger(folder / "effects"), gates=["manager", "vp"]))


def charging_first(store: Checkpointer, folder: Path) -> Agent:
    """Logs and charges, and then asks whether that was right: only the charge is remembered."""
    effects = Ledger(folder / "effects")

    @idempotent
    def charge(order: str) -> str:
        effects.add(f"charge {order}")
        return order

    def refund(order: str, amount: int) -> str:
        effects.add("logged")
        charge(order)
        return "kept" if interrupt("right?", {"order": order}).approved else "to be given back"

    return bot(store, SCRIPT, refund)


def gated_and_noting(store: Checkpointer, folder: Path) -> Agent:
    """Asks for a refund, which waits for a manager, and for a note in one reply."""
    effects = Ledger(folder / "effects")

    def note(name: str) -> str:
        effects.add(f"note {name}")
        return f"noted {name}"

    script = [[SCRIPT[0], call("note", name="a")], "done"]
    return bot(store, script, _refund(effects, gates=["manager"]), note)


def slow_gated(store: Checkpointer, folder: Path) -> Agent:
    """Is held inside of its tool before it asks a manager."""
    effects = Ledger(folder / "effects")
    ask = _refund(effects, gates=["manager"])

    def refund(order: str, amount: int) -> str:
        effects.add("entered")
        hold(folder)
        return ask(order, amount)

    return bot(store, SCRIPT, refund)


def batch(store: Checkpointer, folder: Path) -> Agent:
    """Three notes in one reply; the second waits for the folder's file `go` when there is `hold`."""
    effects = Ledger(folder / "effects")

    def note(name: str) -> str:
        effects.add(f"note {name}")
        if name == "b":
            hold(folder)
        return f"noted {name}"

    return bot(store, [[call("note", name=name) for name in "abc"], "done"], note)


def held(store: Checkpointer, folder: Path) -> Agent:
    """Stays inside of its tool, then charges."""
    effects = Ledger(folder / "effects")

    @idempotent
    def charge(order: str) -> str:
        effects.add(f"charge {order}")
        return order

    def refund(order: str, amount: int) -> str:
        effects.add("entered")
        hold(folder)
        return charge(order)

    return bot(store, SCRIPT, refund)


def asking(store: Checkpointer, folder: Path) -> Agent:
    """Its model stays inside of each request."""
    effects = Ledger(folder / "effects")

    def script(messages: Any) -> Any:
        effects.add("asked")
        hold(folder)
        return SCRIPT[0] if len(messages) == 1 else SCRIPT[1]

    return bot(store, script, _refund(effects, gates=[]))


def forking(store: Checkpointer, folder: Path) -> Agent:
    """Leaves processes behind that outlive it, by every means there is, and stays inside."""

    def refund(order: str, amount: int) -> str:
        survivors = Ledger(folder / "survivors")
        told, tell = os.pipe()
        if (pid := os.fork()) == 0:
            os.write(tell, b"forked")  # it runs, so what a fork closes is closed
            signal.pause()
        os.read(told, 6)
        survivors.add(pid)
        survivors.add(subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]).pid)
        Ledger(folder / "effects").add("entered")
        hold(folder)
        return "ok"

    return bot(store, SCRIPT, refund)


def using_a_forked_child(store: Checkpointer, folder: Path) -> Agent:
    """Its tool forks a child that reads and writes the same store, then goes on itself."""
    effects = Ledger(folder / "effects")

    def refund(order: str, amount: int) -> str:
        if (pid := os.fork()) == 0:
            inner = bot(store, ["from the child"]).run("go", execution_id="childs")
            effects.add(f"{inner.output} {sorted(run.status for run in store.runs())}")
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        return f"child ended with {status}"

    return bot(store, SCRIPT, refund)


def hold(folder: Path) -> None:
    """Stay here until the folder has a file `go`, if it has a file `hold`, and not without the test
    that put it there."""
    test = parent_process()
    while (folder / "hold").exists() and not (folder / "go").exists():
        if test is not None and not test.is_alive():
            os._exit(1)
        time.sleep(0.002)


def _refund(effects: Ledger, *, gates: list[str]) -> Callable[[str, int], str]:
    @idempotent
    def charge(order: str, amount: int) -> dict[str, bool]:
        effects.add(f"charge {order} {amount}")
        return {"ok": True}

    def refund(order: str, amount: int) -> str:
        for gate in gates:
            if not interrupt(gate, {"order": order, "amount": amount}).approved:
                return "no refund"
        charge(order, amount)
        return f"refunded {amount}"

    return refund


AGENTS: dict[str, Callable[[Checkpointer, Path], Agent]] = {
    each.__name__: each
    for each in (
        small,
        gated,
        twice_gated,
        charging_first,
        gated_and_noting,
        slow_gated,
        batch,
        held,
        asking,
        forking,
        using_a_forked_child,
    )
}
