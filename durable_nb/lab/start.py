"""What a child of a race does: it waits until all are ready, and resumes in each of its threads."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from durable_nb.lab.handover import Say, unpack
from durable_nb.model.decisions import Resume
from durable_nb.model.errors import DurableError
from durable_nb.runtime.result import RunResult


@dataclass(frozen=True, slots=True)
class Start:
    """One process's work: to be ready, wait until all are, and resume in each of its threads."""

    packed: bytes
    execution_id: str
    decision: Resume | None
    ready: Path
    processes: int
    threads: int

    def __call__(self, say: Say) -> list[tuple[bool, str, str]]:
        agent, store = unpack(self.packed)
        agent._checkpointer = store
        store.get_last(self.execution_id)  # what is imported and opened once is, before the start
        line = threading.Barrier(self.threads, action=self._wait_for_all)

        def resume() -> RunResult:
            line.wait()
            result: RunResult = agent.resume(self.execution_id, resume_value=self.decision)
            return result

        with ThreadPoolExecutor(self.threads) as pool:
            futures = [pool.submit(resume) for _ in range(self.threads)]
        return [_got(future) for future in futures]

    def _wait_for_all(self) -> None:
        self.ready.touch()
        while len(list(self.ready.parent.iterdir())) < self.processes:
            time.sleep(0.001)


def _got(future: Future[RunResult]) -> tuple[bool, str, str]:
    """Whether it drove the run, and what came of it. What is not our refusal escaped the run."""
    error = future.exception()
    if error is not None:
        return not isinstance(error, DurableError), type(error).__name__, str(error)
    result = future.result()
    return True, result.status, result.output or ""
