"""A store's rows in an in-memory DuckDB, brought up to date by taking what is new.

Rows of a log never change, so entries are taken by `seq`; the list of runs is replaced whole. A
query sees nothing but these tables and the frames it is given: no file, no extension, no setting.
DuckDB is not let near the store's own file: opening it in the process that writes it loses commits.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

import duckdb
from pandas import DataFrame

from durable_nb.model.errors import InvalidInput
from durable_nb.stores.open import default_store
from durable_nb.stores.protocol import Checkpointer, Readable
from durable_nb.views.shown import shown
from durable_nb.views.typed import typed

VIEWS = ("runs", "steps", "messages", "pending", "usage")
PART = 100_000  # rows that DuckDB is handed at a time: it holds them twice meanwhile

_OFFLINE = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
_CLOSED = "set enable_external_access = false; set lock_configuration = true"


class Mirror:
    """The tables and views of one store. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._db = duckdb.connect(":memory:", config={**_OFFLINE})
        self._db.execute(_text("tables"))
        for view in VIEWS:
            self._db.execute(f"create view {view} as {_text(view)}")
        self._db.execute(f"set global TimeZone = 'UTC'; {_CLOSED}")
        self._taking = threading.Lock()
        self._runs_at: object = None
        self._entries_at: object = None
        self._seq = self._removals = 0

    def take(self, store: Readable) -> None:
        """Take all that is new; everything again if a run that was taken has been deleted."""
        with self._taking:
            self._take_entries(store)
            self._take_runs(store)

    def take_runs(self, store: Readable) -> None:
        """Make the list of runs what it is now, and read no entry."""
        with self._taking:
            self._take_runs(store)

    def _take_runs(self, store: Readable) -> None:
        """Replace the list if the store has changed. As it is taken after the entries, a run is
        never older than its steps."""
        stamp = store.stamp()
        if stamp == self._runs_at:
            return
        rows = store.run_rows()
        self._db.begin()
        try:
            self._db.execute("delete from _runs")
            _append(self._db, "_runs", rows)
            self._db.commit()
        except BaseException:
            self._db.rollback()
            raise
        self._runs_at = stamp

    def _take_entries(self, store: Readable) -> None:
        """Add the entries that are new if the store has changed; all of them if runs were removed,
        whose place new ones may have."""
        stamp = store.stamp()
        if stamp == self._entries_at:
            return
        if (removals := store.removals()) != self._removals:
            self._db.execute("truncate _entries")
            self._seq, self._removals = 0, removals
        rows = iter(store.entry_rows(after=self._seq))
        while part := list(islice(rows, PART)):
            _append(self._db, "_entries", shown(part))
            self._seq = part[-1][0]
        self._entries_at = stamp

    @contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection for one thread and one query; what it makes is gone with it."""
        with self._taking:
            cursor = self._db.cursor()
        try:
            cursor.begin()
            yield cursor
        except (RuntimeError, duckdb.InterruptException) as error:
            if "interrupted" in str(error).lower():  # what DuckDB makes of a KeyboardInterrupt
                raise KeyboardInterrupt from error
            raise
        finally:
            cursor.close()

    def frame(self, query: str, entries: Iterable[Sequence[Any]] | None = None) -> DataFrame:
        """A query's answer, over everything that was taken or over `entries` alone: then a table
        of this one cursor hides the larger one from the views."""
        with self.cursor() as cursor:
            if entries is not None:
                cursor.execute("create temp table _entries as from main._entries limit 0")
                _append(cursor, "temp._entries", shown(entries))
            return typed(cursor.execute(query))


def readable(store: Checkpointer | None) -> Readable:
    """The store to explore. Raises `InvalidInput` for what is none."""
    source = default_store() if store is None else store
    if not isinstance(source, Readable):
        raise InvalidInput(
            f"{source!r} cannot be explored; store= takes a store, such as "
            "SQLiteCheckpointer('runs.sqlite3'), or None for the default one"
        )
    return source


def mirror_of(store: Readable) -> Mirror:
    """The mirror of a store: one, for as long as the store object lives."""
    with _making:
        if store not in _mirrors:
            _mirrors[store] = Mirror()
        return _mirrors[store]


def _text(name: str) -> str:
    return files("durable_nb.views").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")


def _append(db: duckdb.DuckDBPyConnection, table: str, rows: Iterable[Sequence[Any]]) -> None:
    with db.appender(table) as appender:
        appender.append_rows(rows)


_making = threading.Lock()
_mirrors: WeakKeyDictionary[Readable, Mirror] = WeakKeyDictionary()
_inherited: list[object] = []  # a parent's mirrors: their threads do not exist in a forked child


def _after_fork_in_child() -> None:
    global _making, _mirrors
    _inherited.append(_mirrors)
    _making, _mirrors = threading.Lock(), WeakKeyDictionary()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
