"""Numbered, forward-only migrations of a SQLite store, each in a transaction of its own.

`application_id` tells a store from other SQLite files, `user_version` counts what has been done.
"""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Iterator
from functools import partial
from importlib.resources import files
from pathlib import Path

from durable_nb.stores import refusals
from durable_nb.stores.mounts import network_file_system

APPLICATION_ID = 0x64_6E_62_31  # "dnb1"
MIGRATIONS = ("sqlite_0001_runs.sql", "sqlite_0002_outbox.sql")

_MARKS = """
select a.application_id, v.user_version, (select count(*) from sqlite_schema)
from pragma_application_id as a, pragma_user_version as v
"""  # in one statement, and so of one moment: another process may be making the store meanwhile


def migrate(db: sqlite3.Connection, path: object) -> None:
    """Bring the file up to date, whoever else is doing the same."""
    while (version := check(db, path)) < len(MIGRATIONS):
        db.execute("begin immediate")
        try:
            if check(db, path) == version:
                for statement in _statements(MIGRATIONS[version]):
                    db.execute(statement)
                db.execute(f"pragma application_id = {APPLICATION_ID}")
                db.execute(f"pragma user_version = {version + 1}")
            db.execute("commit")
        except BaseException:
            db.execute("rollback")
            raise


def for_writing(db: sqlite3.Connection, path: Path, synchronous: str) -> None:
    """Make a connection to a file one that can write a log: ours, up to date, and in WAL mode
    unless the file is on a network."""
    check(db, path)
    db.text_factory = partial(str, encoding="utf-8", errors="replace")  # damage: the checksum tells
    db.execute(f"pragma journal_mode = {_journal_mode(path)}").fetchall()
    db.execute(f"pragma synchronous = {synchronous}")
    migrate(db, path)


def _journal_mode(path: Path) -> str:
    kind = network_file_system(path)
    if kind is None:
        return "wal"
    warnings.warn(
        f"the store {path} is on a network file system ({kind}): it works without SQLite's "
        "write-ahead log, slower, and only as well as the locks there do. Put it on a local disk, "
        "or use PostgreSQL",
        RuntimeWarning,
        stacklevel=2,
    )
    return "delete"


def check(db: sqlite3.Connection, path: object) -> int:
    """How many migrations the file has had.

    Raises `StoreUnusable` for another program's file and for one of a newer version; reads only.
    """
    application, version, tables = db.execute(_MARKS).fetchone()
    if application != APPLICATION_ID and (tables or version or application):
        raise refusals.unusable(
            path, "is another program's SQLite file", "choose another path; it was left as it is"
        )
    if version > len(MIGRATIONS):
        raise refusals.newer(path, version, len(MIGRATIONS))
    return int(version)


def _statements(name: str) -> Iterator[str]:
    script = files("durable_nb.stores").joinpath("sql", name).read_text(encoding="utf-8")
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
