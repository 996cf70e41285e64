"""The one line that `%load_ext` and `%durable use` print. Cheap where there is no store yet."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from durable_nb.model.errors import DurableError

if TYPE_CHECKING:
    from durable_nb.stores.protocol import Checkpointer

DEFAULT = (
    ".durable/runs.sqlite3"  # as in stores.open, which is not worth loading for an empty store
)


def banner() -> str:
    """The store in use, how many runs it has, and how many wait. Never raises: what is wrong with
    a store must not keep the magics from loading."""
    place = os.environ.get("DURABLE_NB_STORE") or DEFAULT
    is_file = "://" not in place
    if "durable_nb.stores.open" not in sys.modules and is_file and not Path(place).exists():
        return f"durable_nb: {place} · no runs yet"
    from durable_nb.stores.open import default_store

    try:
        return store_line(default_store())
    except DurableError as error:
        return f"durable_nb: {error}"


def store_line(store: Checkpointer) -> str:
    """Raises `StoreUnusable` and the like for a store that cannot be read."""
    statuses = Counter(run.status for run in store.runs())
    said = [_name(store), f"{statuses.total()} run{'' if statuses.total() == 1 else 's'}"]
    if not statuses:
        said[1] = "no runs yet"
    if statuses["paused"]:
        said.append(f"{statuses['paused']} wait{'s' if statuses['paused'] == 1 else ''} for you")
    if statuses["crashed"]:
        said.append(f"{statuses['crashed']} died in a step")
    if statuses["paused"] or statuses["crashed"]:
        said.append("%durable pending")
    return f"durable_nb: {' · '.join(said)}"


def _name(store: Checkpointer) -> str:
    """The store's path, from here if it is under here."""
    path: Path | None = getattr(store, "path", None)
    if path is None:
        return repr(store)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
