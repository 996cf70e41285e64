"""The inside of a SQLite store for a doctor: a connection that cannot write, text as it comes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from durable_nb.model.codec import Stored
from durable_nb.stores import refusals
from durable_nb.stores.inside import Begun, Inside
from durable_nb.stores.lock_owners import owners_of
from durable_nb.stores.migrate import check
from durable_nb.stores.sqlite_file import SQLiteFile

_PART = 20_000  # rows of one short transaction

_ROWS = f"""
select e.seq, coalesce(r.id, '(no run)'), e.number, e.frame, e.kind, e.turn, e.tool, e.at,
  e.writer, e.checksum, e.body
from entries as e left join runs as r on r.key = e.run where e.seq > ? order by e.seq limit {_PART}
"""  # a run's numbers and its seqs grow together

_BEGUN = """
select r.id, c.number, c.function, c.begun
from idempotency_cache as c join runs as r on r.key = c.run where c.kept is null
order by c.begun
"""


@contextmanager
def inside_sqlite(path: Path) -> Iterator[Inside]:
    """The store's inside, while its file is open.

    Raises `StoreUnusable` for a file that is not there, or is no store.
    """
    with closing(reading(path)) as file:
        ((version,),) = file.read("pragma user_version")
        yield Inside(
            version=version,
            faults=_faults(file),
            rows=_rows(file),
            begun=[Begun(*row) for row in file.read(_BEGUN)],
            owners=owners_of(path),
            wal_bytes=_size(path.with_name(path.name + "-wal")),
        )


def reading(path: Path) -> SQLiteFile:
    """The file on a connection that cannot write. Raises `StoreUnusable` if it is not there."""
    if not path.exists():
        raise refusals.unusable(path, "does not exist", "the first run makes it; check the path")

    def prepare(db: sqlite3.Connection) -> None:
        check(db, path)
        db.text_factory = lambda raw: raw.decode("utf-8", "replace")  # damaged text is shown too

    return SQLiteFile(path, prepare, mode="ro")


def _faults(file: SQLiteFile) -> list[str]:
    said = [text for (text,) in file.read("pragma integrity_check")]
    orphans = file.read("select count(*) from pragma_foreign_key_check")[0][0]
    found = [f"SQLite: {text}" for text in said if text != "ok"]
    return found + [f"SQLite: {orphans} rows belong to no run"] * bool(orphans)


def _rows(file: SQLiteFile) -> Iterator[tuple[str, Stored]]:
    after = 0
    while part := file.read(_ROWS, [after]):
        for seq, execution_id, *columns in part:
            yield execution_id, Stored(*columns)
            after = seq


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
