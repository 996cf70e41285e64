"""A consistent copy of a SQLite store, while runs go on in it."""

from __future__ import annotations

import os
import tempfile
from contextlib import closing
from pathlib import Path

from durable_nb.model.errors import InvalidInput
from durable_nb.stores import refusals
from durable_nb.stores.protocol import Checkpointer
from durable_nb.stores.sqlite import SQLiteCheckpointer
from durable_nb.stores.sqlite_inside import reading


def export(store: Checkpointer, target: Path) -> int:
    """Copy the store to `target`, as it is at one moment, and return the copy's size in bytes.

    A file that is there is never overwritten, and an interrupted copy leaves none. Raises
    `InvalidInput` for a store without a file, `StoreUnusable` for a place that takes no copy.
    """
    if not isinstance(store, SQLiteCheckpointer):
        raise InvalidInput(
            f"{store!r} is not a file; copy it with its server's own tool, such as pg_dump"
        )
    if os.path.lexists(target):
        raise refusals.unusable(target, "exists already", "export to another path")
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".export-") as folder:
            copy = Path(folder, "copy.sqlite3")
            with closing(reading(store.path)) as file:
                file.read("vacuum into ?", [str(copy)])
            os.link(copy, target)  # refuses a file that came to be there in the meantime
            return target.stat().st_size
    except OSError as error:
        raise refusals.unusable(
            target, f"cannot be written ({error})", "export to another path"
        ) from error
