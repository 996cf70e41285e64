"""`python -m tests.bench.lab`: what 40 kills cost beyond the agent's own time."""

from __future__ import annotations

import os
import resource
import time

from durable_nb import Agent, MemoryCheckpointer, ScriptedModel, call, idempotent, lab


@idempotent
def charge(order: str) -> str:
    with open("ledger", "a") as ledger:
        ledger.write(f"order {order}\n")
    return "charged"


def refund(order: str) -> str:
    """Pay an order back."""
    return charge(order)


def measured() -> tuple[int, float, float]:
    """Kills, seconds by the clock, and seconds of all processors."""
    script = [*(call("refund", order=str(order)) for order in range(6)), "Done."]
    agent = Agent("bot", ScriptedModel(script), [refund], checkpointer=MemoryCheckpointer())
    lab.crash_matrix(agent, "Go", dry_run=True)  # imports what a notebook has
    before, started = _spent(), time.perf_counter()
    matrix = lab.crash_matrix(agent, "Go").assert_exact()
    return len(matrix), time.perf_counter() - started, _spent() - before


def _spent() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


if __name__ == "__main__":
    kills, clock, work = measured()
    print(f"{kills} kills, {kills} resumes: {clock:.1f} s, of which {work:.1f} s of work")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} while it was measured")
