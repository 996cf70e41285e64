"""Which store: a path as a store, and the default one of this process."""

from __future__ import annotations

import os
from pathlib import Path

from durable_nb.model.errors import InvalidInput
from durable_nb.stores.protocol import Checkpointer
from durable_nb.stores.sqlite import SQLiteCheckpointer

DEFAULT = Path(".durable", "runs.sqlite3")

_opened: dict[Path, SQLiteCheckpointer] = {}
_chosen: Checkpointer | None = None


def open_store(target: str | os.PathLike[str]) -> Checkpointer:
    """The store at a path; the same object for the same path. Opens nothing yet."""
    text = os.fspath(target)
    if not text:
        raise InvalidInput("a store is named by a path; this one is empty")
    path = Path(text).expanduser().absolute()
    if path not in _opened:
        _opened[path] = SQLiteCheckpointer(path)
    return _opened[path]


def default_store() -> Checkpointer:
    """The store that was chosen with `use_store`, else `DURABLE_NB_STORE`, else the file
    `.durable/runs.sqlite3` under the working directory."""
    if _chosen is not None:
        return _chosen
    return open_store(os.environ.get("DURABLE_NB_STORE") or DEFAULT)


def use_store(store: Checkpointer | None) -> None:
    """Make `store` this process's default; None goes back to where it was."""
    global _chosen
    _chosen = store
