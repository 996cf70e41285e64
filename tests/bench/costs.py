"""`python -m tests.bench.costs`: what the first seconds cost, as the table of the README.

Each figure is the median of fresh processes that have imported IPython before, since a notebook has.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median

ROUNDS = 11

_START = """
import os, time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
started = time.perf_counter()
"""
_STOP = """
print((time.perf_counter() - started) * 1000)
"""
_RUN = """
import durable_nb as nb
def refund(order: str, amount: int) -> str:
    return f"refunded {amount}"
llm = nb.ScriptedModel([nb.call("refund", order="1042", amount=20), "Done."])
bot = nb.Agent("refund-bot", llm, [refund], checkpointer=nb.SQLiteCheckpointer("runs.sqlite3"))
bot.run("Refund order 1042")
"""

WORK: Mapping[str, str] = {
    "`import durable_nb`": "import durable_nb",
    "`%load_ext durable_nb`": "shell.run_line_magic('load_ext', 'durable_nb')",
    "import, then a first run: four rows on disk": _RUN,
}


def measured(rounds: int = ROUNDS) -> dict[str, float]:
    """Milliseconds for each piece of work. The rounds take turns, so that all see the same weather."""
    times: dict[str, list[float]] = {name: [] for name in WORK}
    for _ in range(rounds):
        for name, work in WORK.items():
            times[name].append(_once(work))
    return {name: median(found) for name, found in times.items()}


def table(milliseconds: Mapping[str, float]) -> str:
    """The figures in Markdown, under the name of the machine that gave them."""
    lines = [f"| on {machine()} | ms |", "|---|---|"]
    return "\n".join(lines + [f"| {name} | {ms:.0f} |" for name, ms in milliseconds.items()])


def machine() -> str:
    cores = os.cpu_count()
    return f"{_processor()}, {cores} cores, {platform.system()}, Python {platform.python_version()}"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _once(work: str) -> float:
    code = _START + work + _STOP
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "IPYTHONDIR": folder, "DURABLE_NB_STORE": "runs.sqlite3"}
        command = [sys.executable, "-P", "-c", code]
        done = subprocess.run(
            command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True
        )
    return float(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    print(table(measured()))
