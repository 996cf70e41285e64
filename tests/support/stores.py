"""The stores that the suites run over, and a store whose owner dies at its n-th write."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal

from durable_nb import Checkpointer, MemoryCheckpointer, SQLiteCheckpointer
from durable_nb.stores.protocol import Lease
from tests.support.postgres import postgres


@cache
def _memory(folder: Path) -> MemoryCheckpointer:
    """The runs of a folder's test: opened again, they are still there."""
    return MemoryCheckpointer()


STORES: dict[str, Callable[[Path], Checkpointer]] = {
    "memory": _memory,
    "sqlite-full": lambda folder: SQLiteCheckpointer(folder / "runs.sqlite3"),
    "sqlite-normal": lambda folder: SQLiteCheckpointer(
        folder / "runs.sqlite3", synchronous="NORMAL"
    ),
    "postgres": postgres,
}

When = Literal["before", "after"]


class Died(BaseException):
    """This process is dead, as far as its run is concerned."""


class Dying:
    """A store that dies at write number `at`, before or after that write is on disk.

    Writes are entries (`create`, `claim`, `append`) and marks of effects (`begin`, `keep`). Once
    dead it writes nothing more. `death` says what it died at.
    """

    def __init__(
        self, store: Checkpointer, at: int, when: When, die: Callable[[], object] | None = None
    ) -> None:
        self._store, self._at, self._when = store, at, when
        self._die = die
        self._writes = 0
        self.death: str | None = None

    def create(self, *args: Any, **kwargs: Any) -> Lease:
        return self._write("create", args, kwargs)

    def claim(self, *args: Any, **kwargs: Any) -> Any:
        return self._write("claim", args, kwargs)

    def append(self, *args: Any, **kwargs: Any) -> Any:
        return self._write("append", args, kwargs)

    def begin(self, *args: Any, **kwargs: Any) -> None:
        self._write("begin", args, kwargs)

    def keep(self, *args: Any, **kwargs: Any) -> None:
        self._write("keep", args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def _write(self, name: str, args: Any, kwargs: Any) -> Any:
        self._writes += 1
        fatal = self._writes == self._at
        if self.death or (fatal and self._when == "before"):
            self._stop(name)
        written = getattr(self._store, name)(*args, **kwargs)
        if fatal:
            self._let_go(written)
            self._stop(name)
        return written

    def _stop(self, name: str) -> None:
        self.death = self.death or name
        if self._die is not None:
            self._die()
        raise Died(f"{self._when} {name}")

    def _let_go(self, written: Any) -> None:
        """A dead process holds no lock."""
        lease = written[0] if isinstance(written, tuple) else written
        if isinstance(lease, Lease):
            self._store.release(lease)
