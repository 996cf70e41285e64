"""What a store says when it refuses: one wording, whichever backend says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from durable_nb.model.errors import (
    ExecutionExists,
    InvalidInput,
    RunIsLive,
    StaleLog,
    StoreBusy,
    StoreUnusable,
    UnknownExecution,
)

T = TypeVar("T")


def known(execution_id: str, found: Sequence[T]) -> T:
    """The one row that a look-up found. Raises `UnknownExecution` if it found none."""
    if not found:
        raise unknown(execution_id)
    return found[0]


def unknown(execution_id: str) -> UnknownExecution:
    return UnknownExecution(
        f"no run {_short(execution_id)} in this store; list what is there with views.runs()"
    )


def exists(execution_id: str) -> ExecutionExists:
    return ExecutionExists(
        f"run {_short(execution_id)} has rows already, and a run is never repeated; "
        "go on with resume(...), or choose another execution_id"
    )


def differs(execution_id: str, how: str) -> ExecutionExists:
    return ExecutionExists(
        f"run {_short(execution_id)} is here with other rows: {how}. Nothing was taken in; of two "
        "machines that went on with one run, keep the one you want, and remove the other's with "
        "store.delete_execution(...)"
    )


def driven_here(execution_id: str) -> RunIsLive:
    return RunIsLive(
        f"run {_short(execution_id)} went on elsewhere, and is driven by a living process here; "
        "nothing was taken in. Let that one end, or stop it and restore the run again"
    )


def stale(execution_id: str, number: int) -> StaleLog:
    return StaleLog(
        f"run {_short(execution_id)} has entries after {number} by another process, which drives "
        "it now; nothing was written here. Look at it with store.list(...)"
    )


def live(execution_id: str) -> RunIsLive:
    return RunIsLive(
        f"run {_short(execution_id)} is driven by a living process or thread; nothing was done. "
        "Wait for it, or pass take_over=True if you know that its owner is stopped"
    )


def beaten(execution_id: str) -> RunIsLive:
    return RunIsLive(
        f"run {_short(execution_id)} was resumed by somebody else at the same time, and has "
        "stopped since; nothing was done here. Look at it, then resume it again"
    )


def busy(path: object, seconds: float) -> StoreBusy:
    return StoreBusy(
        f"another process held the store {path} locked for {seconds:.0f} s; nothing was written. "
        "Find who holds it, then try again"
    )


def lost_log(path: object) -> StoreUnusable:
    return StoreUnusable(
        f"the store's write-ahead log {path} was deleted or replaced while in use; what was "
        "committed since may be lost. Restart the kernel to open the store anew, and let nothing "
        "but durable_nb read or remove the files of a store that is in use"
    )


def closed(store: object) -> StoreUnusable:
    return StoreUnusable(f"{store} is closed; make a new one to go on")


def unusable(path: object, why: str, then: str) -> StoreUnusable:
    return StoreUnusable(f"the store {path} {why}; {then}")


def newer(path: object, version: int, known: int) -> StoreUnusable:
    return unusable(
        path,
        f"was written by a newer durable_nb (version {version}, this one knows {known})",
        "upgrade durable_nb; the store was left as it is",
    )


def memory_stays_here() -> InvalidInput:
    return InvalidInput(
        "a MemoryCheckpointer cannot be handed to another process: its runs live in this one; "
        "use SQLiteCheckpointer(path)"
    )


def _short(execution_id: object) -> str:
    text = repr(execution_id)
    return text if len(text) <= 120 else f"{text[:117]}…"
