"""The one line that `%load_ext` and `%durable use` print. Cheap until a store is really used."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from durable_nb.model.errors import DurableError
from durable_nb.stores.glance import Counts, glance
from durable_nb.stores.sqlite_file import DEFAULT

if TYPE_CHECKING:
    from durable_nb.stores.protocol import Checkpointer


def banner() -> str:
    """The store in use, how many runs it has, and how many wait. Never raises: what is wrong with
    a store must not keep the magics from loading."""
    place = os.environ.get("DURABLE_NB_STORE") or str(DEFAULT)
    if "durable_nb.stores.open" not in sys.modules and "://" not in place:
        path = Path(place).expanduser()
        if _is_missing(path):
            return _not_made(path)
        with suppress(sqlite3.Error, OSError):  # the store itself says below what is wrong with it
            return _line(_name(path), glance(path))
    from durable_nb.stores.open import default_store

    store = default_store()
    used: Path | None = getattr(store, "path", None)
    try:
        return _not_made(used) if used is not None and _is_missing(used) else store_line(store)
    except DurableError as error:
        return f"durable_nb: {error}"


def store_line(store: Checkpointer) -> str:
    """Raises `StoreUnusable` and the like for a store that cannot be read."""
    path: Path | None = getattr(store, "path", None)
    if path is not None and _is_missing(path):
        return f"durable_nb: {_name(path)} · will be made by the first run"
    statuses = Counter(run.status for run in store.runs())
    counts = Counts(statuses.total(), statuses["paused"], statuses["crashed"])
    return _line(repr(store) if path is None else _name(path), counts)


def _is_missing(path: Path) -> bool:
    """Whether nothing is there. Of a place that cannot be looked at the store says what is wrong."""
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _not_made(path: Path) -> str:
    kind = "default store" if path.absolute() == DEFAULT.absolute() else "store"
    return f"durable_nb: {kind} {_name(path)} (not made yet)"


def _line(name: str, counts: Counts) -> str:
    runs, paused, crashed = counts
    said = [name, f"{runs} run{'' if runs == 1 else 's'}" if runs else "no runs yet"]
    if paused:
        said.append(f"{paused} wait{'s' if paused == 1 else ''} for you")
    if crashed:
        said.append(f"{crashed} died in a step")
    if paused or crashed:
        said.append("%durable pending")
    return f"durable_nb: {' · '.join(said)}"


def _name(path: Path) -> str:
    """The store's path, from here if it is under here."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
