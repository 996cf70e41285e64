"""The line that `%load_ext` and `%durable use` print. Cheap until a store is really used."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from durable_nb.model.errors import DurableError
from durable_nb.stores.glance import Counts, glance
from durable_nb.stores.project import project_store
from durable_nb.stores.sqlite_file import DEFAULT

if TYPE_CHECKING:
    from durable_nb.stores.protocol import Checkpointer


class Told(NamedTuple):
    """The line, and whether any run waits for a person or died."""

    line: str
    waits: bool = False


def banner() -> Told:
    """The store in use, how many runs it has, and how many wait. Never raises: what is wrong with
    a store must not keep the magics from loading."""
    try:
        return _banner()
    except DurableError as error:
        return Told(f"durable_nb: {error}")


def _banner() -> Told:
    place = os.environ.get("DURABLE_NB_STORE") or project_store() or str(DEFAULT)
    if "durable_nb.stores.open" not in sys.modules and "://" not in place:
        path = Path(place).expanduser()
        if _is_missing(path):
            return Told(_not_made(path))
        with suppress(sqlite3.Error, OSError):  # the store itself says below what is wrong with it
            return _told(_name(path), glance(path))
    from durable_nb.stores.open import default_store

    store = default_store()
    used: Path | None = getattr(store, "path", None)
    return Told(_not_made(used)) if used is not None and _is_missing(used) else _of_store(store)


def store_line(store: Checkpointer) -> str:
    """Raises `StoreUnusable` and the like for a store that cannot be read."""
    path: Path | None = getattr(store, "path", None)
    if path is not None and _is_missing(path):
        return f"durable_nb: {_name(path)} · will be made by the first run"
    return _of_store(store).line


def store_name(store: Checkpointer) -> str:
    """Its path, or what else it says of itself."""
    path: Path | None = getattr(store, "path", None)
    return repr(store) if path is None else _name(path)


def _of_store(store: Checkpointer) -> Told:
    statuses = Counter(run.status for run in store.runs())
    counts = Counts(statuses.total(), statuses["paused"], statuses["crashed"])
    return _told(store_name(store), counts)


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


def _told(name: str, counts: Counts) -> Told:
    runs, paused, crashed = counts
    said = [name, f"{runs} run{'' if runs == 1 else 's'}" if runs else "no runs yet"]
    if paused:
        said.append(f"{paused} wait{'s' if paused == 1 else ''} for you")
    if crashed:
        said.append(f"{crashed} died in a step")
    if paused or crashed:
        said.append("%durable pending")
    return Told(f"durable_nb: {' · '.join(said)}", waits=bool(paused or crashed))


def _name(path: Path) -> str:
    """The store's path, from here if it is under here."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
