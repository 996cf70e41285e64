"""What a store holds as files for other programs: Parquet, a file a table, or a SQLite copy.

The store's file is read as every view reads it, and a writer is not disturbed.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import cast

from durable_nb.model.errors import InvalidInput
from durable_nb.stores import refusals
from durable_nb.stores.export import export as copied
from durable_nb.stores.protocol import Checkpointer, Readable
from durable_nb.views.mirror import VIEWS, Mirror, readable


def export(path: str | os.PathLike[str], *, store: Checkpointer | None = None) -> tuple[Path, ...]:
    """Write what the store holds, as it is at one moment, and return the files.

    A path without a suffix is a folder of Parquet files, one a view: `runs.parquet`, and so on. Any
    other is a copy of a SQLite store, as `durable-nb export` makes it. Nothing that is there is
    overwritten, and an interrupted export leaves nothing. Raises `StoreUnusable` for a place that
    takes no files, `InvalidInput` for a copy of a store that is no file.
    """
    source = readable(store)
    target = Path(path).expanduser().absolute()
    _refuse_no_place(target)
    if target.suffix == ".parquet":
        raise InvalidInput(
            f"{target} would be one file, and there is one a table; name a folder, such as "
            f"{target.with_suffix('')}"
        )
    if target.suffix:
        copied(cast("Checkpointer", source), target)
        return (target,)
    return _parquet(source, target)


def _refuse_no_place(target: Path) -> None:
    try:
        os.lstat(target)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:  # too long, with a NUL in it, below what is no folder
        raise refusals.unusable(
            target, f"cannot be written ({error})", "export to another path"
        ) from error


def _parquet(source: Readable, target: Path) -> tuple[Path, ...]:
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise refusals.unusable(target, "exists already", "export to another path")
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".export-") as folder:
            made = Path(folder, "tables")
            made.mkdir()
            _write(source, made)
            made.rename(target)  # refuses a folder with something in it
    except OSError as error:
        raise refusals.unusable(
            target, f"cannot be written ({error})", "export to another path"
        ) from error
    return tuple(target / f"{view}.parquet" for view in VIEWS)


def _write(source: Readable, folder: Path) -> None:
    """Every view, from a mirror of its own: the one that queries see can reach no file."""
    mirror = Mirror(closed=False)
    mirror.take(source)
    with mirror.cursor() as cursor:
        for view in VIEWS:
            file = str(folder / f"{view}.parquet").replace("'", "''")
            cursor.execute(f"copy (from {view}) to '{file}' (format parquet, compression zstd)")
