"""A process of a race: its threads answer one pause after another, together with all the others.

Started with `folder store rounds threads`. It says `ready`; for each round it waits for the file
`goN` and leaves a file when it is done. At the end it prints what each answer came to, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from durable_nb import Agent, AlreadyResumed, Resume
from tests.crash.agents import make
from tests.support.stores import STORES


def answer(agent: Agent, number: int) -> str:
    """The status of the run, or the name of whatever was raised."""
    try:
        return agent.resume(f"r{number}", resume_value=Resume(True)).status
    except AlreadyResumed:
        return "AlreadyResumed"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main(folder: Path, kind: str, rounds: int, threads: int) -> None:
    store = STORES[kind](folder)
    agent = make("gated", store, folder)
    outcomes: list[str] = []
    with ThreadPoolExecutor(threads) as pool:
        print("ready", flush=True)
        for number in range(rounds):
            while not (folder / f"go{number}").exists():
                time.sleep(0.001)
            answers = [pool.submit(answer, agent, number) for _ in range(threads)]
            outcomes += [each.result() for each in answers]
            (folder / f"done{number}-{os.getpid()}").touch()
    store.close()
    print(json.dumps(outcomes), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
