"""A process of its own that drives a run whose tool is an MCP server's: `owner.py FOLDER DO [CRASH]`."""

from __future__ import annotations

import sys
import time
from multiprocessing import get_context
from pathlib import Path

from durable_nb import Agent, SQLiteCheckpointer, call
from tests.foreign.shop import over_stdio
from tests.support.agents import bot
from tests.support.ledger import Ledger


def agent_of(folder: Path, on_crash: str = "rerun") -> Agent:
    """An agent that makes one call, which takes two seconds."""
    shop = over_stdio(Ledger(folder / "effects")).with_metadata(on_crash=on_crash)
    store = SQLiteCheckpointer(folder / "runs.sqlite3")
    return bot(store, [call("slow", seconds=2.0), "done"], shop)


def main() -> None:
    folder, do, *on_crash = sys.argv[1:]
    agent = agent_of(Path(folder), *on_crash)
    if do == "wait":
        print("ready", flush=True)
        time.sleep(60)
    if do == "fork":
        child = get_context("fork").Process(target=agent.run, args=["go"])
        child.start()
        child.join()
        print("its child ended with", child.exitcode)
        return
    result = agent.run("go", execution_id="r1") if do == "run" else agent.resume("r1")
    print(result.status, result.pending_interrupt and result.pending_interrupt["reason"])


if __name__ == "__main__":
    main()
