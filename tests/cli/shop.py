"""Agents that a command line can name. Each effect is a line in `effects`, where the command runs."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from durable_nb import Agent, ScriptedModel, SQLiteCheckpointer, call, idempotent, interrupt, tool
from tests.support.ledger import Ledger

print("the shop opens")  # as a module of a user's may: it is no data


def _note(line: object) -> None:
    Ledger(Path("effects")).add(line)


@idempotent
def charge(order: str, amount: int) -> str:
    _note(f"{order} {amount}")
    return f"paid {amount}"


def refund(order: str, amount: int) -> str:
    """Pay an order back, if a person agrees."""
    print("the refund looks at", order)
    decision = interrupt("manager_approval", {"order": order, "amount": amount})
    return charge(order, amount) if decision.approved else f"not paid: {decision.reason}"


def crawl(order: str) -> str:
    """Begin, wait for a file named `go`, and be done."""
    _note(f"begun {order}")
    while not Path("go").exists():
        time.sleep(0.01)
    return charge(order, 7)


@tool(on_crash="ask")
def post(letter: str) -> str:
    """Send a letter, and lose the process the first time."""
    _note(letter)
    if not Path("died").exists():
        Path("died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return f"posted {letter}"


def odd(name: str) -> str:
    """Ask about what JSON and terminals take badly."""
    context = {
        "nan": float("nan"),
        "bytes": b"\xff",
        "text": "\x1b[31m[/red]\x07\x9b2J\u202e",
        "lone": "\ud800",
        3: (1, {2}),
    }
    interrupt("really\x1b]0;owned\x07?", context)
    return "done"


def hurry() -> str:
    """Ask a person who has an hour."""
    return str(interrupt("soon?", None, expires_in=3600).approved)


class Offline:
    """A model whose provider does not answer until there is a file named `online`."""

    name = "offline"

    def complete(self, messages: object, tools: object) -> object:
        if not Path("online").exists():
            raise ConnectionError("503\nService \x1b[31mUnavailable")
        return ScriptedModel(["back again"]).complete([], [])


def _agent(name: str, *script: object, tools: tuple[object, ...] = ()) -> Agent:
    return Agent(name, ScriptedModel(list(script)), tools)


_REFUND = call("refund", order="1042", amount=20)

bot = _agent("refund-bot", _REFUND, "Refunded. [/red] \x1b[31m", "And more.", tools=(refund,))
toolless = _agent("refund-bot", _REFUND, "Refunded.")
slow = _agent("slow", call("crawl", order="1042"), "Arrived.", tools=(crawl,))
postman = _agent("postman", call("post", letter="dear all"), "Posted.", tools=(post,))
strange = _agent("strange\x1b[2J", call("odd", name="x"), "Odd \ud800\0\x1b[31m.", tools=(odd,))
hasty = _agent("hasty", call("hurry"), "Done.", tools=(hurry,))
greeter = _agent("greeter", "hello\nworld", "again")
offline = Agent("offline", Offline())
elsewhere = Agent("elsewhere", ScriptedModel(["hi"]), checkpointer=SQLiteCheckpointer("mine.db"))
number = 3


class Counter:
    bots = greeter
