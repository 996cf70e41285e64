"""Which store: a path or an address as a store, and the default one of this process, with its
outbox."""

from __future__ import annotations

import os
from pathlib import Path

from durable_nb.model.errors import InvalidInput
from durable_nb.stores.project import project_store
from durable_nb.stores.protocol import Checkpointer
from durable_nb.stores.replicated import Outbox, ReplicatedCheckpointer
from durable_nb.stores.sqlite import SQLiteCheckpointer
from durable_nb.stores.sqlite_file import DEFAULT

_opened: dict[str, Checkpointer] = {}
_chosen: Checkpointer | None = None


def open_store(target: str | os.PathLike[str]) -> Checkpointer:
    """The store at a path or a `postgresql://` address: the same object for the same target.

    Opens nothing yet. Raises `InvalidInput` for a path that no file can have.
    """
    text = os.fspath(target)
    if not text:
        raise InvalidInput("a store is named by a path or an address; this one is empty")
    if not text.startswith(("postgres://", "postgresql://")):
        text = _absolute(text)
    if text not in _opened:
        _opened[text] = _made(text)
    return _opened[text]


def _absolute(path: str) -> str:
    try:
        found = Path(path).expanduser().absolute()
        if b"\0" in os.fsencode(found):
            raise ValueError("a path holds no NUL")
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidInput(
            f"{path!r} is no path that a store can have here ({error}); choose another one"
        ) from error
    return str(found)


def _made(target: str) -> Checkpointer:
    if not target.startswith("postgres"):
        return SQLiteCheckpointer(target)
    try:
        from durable_nb.stores.postgres import PostgresCheckpointer
    except ImportError as error:
        raise InvalidInput(
            "a PostgreSQL store needs the extra durable_nb[postgres]; install it first"
        ) from error
    return PostgresCheckpointer(target)


def store_key(store: Checkpointer) -> object:
    """Equal for two objects that are the same store."""
    place = getattr(store, "path", None) or getattr(store, "dsn", None)
    return (place, getattr(store, "schema", None)) if place else id(store)


def default_store() -> Checkpointer:
    """The store that was chosen with `use_store`, else `DURABLE_NB_STORE`, else `store` in the
    project's `[tool.durable_nb]`, else `.durable/runs.sqlite3` under the working directory."""
    return _chosen if _chosen is not None else open_store(default_place())


def default_place() -> str:
    """The path or address of the store that is used where none was chosen."""
    return os.environ.get("DURABLE_NB_STORE") or project_store() or str(DEFAULT)


def outbox_of(store: Checkpointer | None) -> Outbox:
    """The outbox of a store, or of the default one. Raises `InvalidInput` if it has none."""
    source = default_store() if store is None else store
    if not isinstance(source, ReplicatedCheckpointer):
        raise InvalidInput(
            f"{source!r} has no outbox, so its runs stay here; use SQLiteCheckpointer(path) or "
            "PostgresCheckpointer(address)"
        )
    return source.outbox


def use_store(store: Checkpointer | None) -> None:
    """Make `store` this process's default; None goes back to where it was."""
    global _chosen
    _chosen = store
