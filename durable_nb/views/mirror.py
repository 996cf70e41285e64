"""A store's rows in an in-memory DuckDB, brought up to date by taking what is new.

Rows of a log never change, so entries are taken by `seq`; the list of runs is replaced whole. A
query sees nothing but these tables and the frames it is given: no file, no extension, no setting.
DuckDB is not let near the store's own file: opening it in the process that writes it loses commits.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.resources import files
from itertools import islice
from typing import Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import duckdb
from pandas import DataFrame

from durable_nb.model.errors import InvalidInput, StoreCorrupt
from durable_nb.stores.open import default_store
from durable_nb.stores.protocol import Checkpointer, Readable
from durable_nb.views.shown import shown
from durable_nb.views.typed import typed

VIEWS = (
    *("runs", "sessions", "steps", "messages", "tool_calls"),
    *("pending", "decisions", "idempotency", "usage"),
)
PART = 2_000  # rows that DuckDB is handed at a time: few are quicker, as Python counts what lives

T = TypeVar("T")
Rows: TypeAlias = Iterable[Sequence[Any]]

_ANCESTORS = """
with recursive line as (
  select parent, 1 as far from _runs where execution_id = ?
  union all
  select _runs.parent, far + 1 from line join _runs on _runs.execution_id = line.parent
)
select parent from line where parent is not null order by far
"""

_OFFLINE = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
_CLOSED = "set enable_external_access = false; set lock_configuration = true"


class Mirror:
    """The tables and views of one store. Its methods may be called from any thread.

    One that is not `closed` may write files, and is for no query but the package's own.
    """

    def __init__(self, *, closed: bool = True) -> None:
        self._db = duckdb.connect(":memory:", config={**_OFFLINE})
        self._db.execute(_text("tables"))
        for view in VIEWS:
            self._db.execute(f"create view {view} as {_text(view)}")
        self._db.execute(f"set global TimeZone = 'UTC'; {_CLOSED if closed else ''}")
        self._taking = threading.Lock()
        self._runs_at: object = None
        self._entries_at: object = None
        self._effects_at: object = None
        self._settled = self._removals = 0

    def take(self, store: Readable) -> None:
        """Take all that is new; everything again if a run that was taken has been deleted."""
        with self._taking:
            self._take_entries(store)
            self._take_effects(store)
            self._take_runs(store)

    def take_runs(self, store: Readable) -> None:
        """Make the list of runs what it is now, and read no entry."""
        with self._taking:
            self._take_runs(store)

    def take_effects(self, store: Readable) -> None:
        """Take what `@idempotent` functions did and the list of runs, and read no entry."""
        with self._taking:
            self._take_effects(store)
            self._take_runs(store)

    def _take_runs(self, store: Readable) -> None:
        """Replace the list if the store has changed. As it is taken last, a run is never older than
        its steps."""
        stamp = store.stamp()
        if stamp == self._runs_at:
            return
        with self._whole():
            self._db.execute("delete from _runs")
            _append(self._db, "_runs", store.run_rows(), as_shown=list)
        self._runs_at = stamp

    def _take_entries(self, store: Readable) -> None:
        """Add the entries that are new if the store has changed, and again those that were taken
        before all of their place were there; all of them if runs were removed, whose place new
        ones may have."""
        stamp = store.stamp()
        if stamp == self._entries_at:
            return
        removals, settled = store.removals(), store.settled()
        since = self._settled if removals == self._removals else 0
        with self._whole():
            self._db.execute("delete from _entries where place >= ?", [since])
            _append(self._db, "_entries", store.entry_rows(since=since))
        self._entries_at, self._removals, self._settled = stamp, removals, settled

    def _take_effects(self, store: Readable) -> None:
        """Replace what `@idempotent` functions did if the store has changed."""
        stamp = store.stamp()
        if stamp == self._effects_at:
            return
        with self._whole():
            self._db.execute("delete from _effects")
            _append(self._db, "_effects", store.effect_rows())
        self._effects_at = stamp

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """What is taken is taken whole, or not at all."""
        self._db.begin()
        try:
            yield
            self._db.commit()
        except BaseException:
            self._db.rollback()
            raise

    @contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection for one thread and one query; what it makes is gone with it."""
        with self._taking:
            cursor = self._db.cursor()
        try:
            cursor.begin()
            yield cursor
        finally:
            cursor.close()

    def frame(self, query: str, values: Sequence[object] = (), **rows: Rows) -> DataFrame:
        """A query's answer, over everything that was taken or, of the tables `_entries` and
        `_effects`, over these `rows` alone: then a table of this one cursor hides the larger one
        from the views. Raises `StoreCorrupt` where a row that it needs is damaged."""
        with self.cursor() as cursor:
            for table, few in rows.items():
                cursor.execute(f"create temp table {table} as from main.{table} limit 0")
                _append(cursor, f"temp.{table}", few)
            try:
                return asked(cursor, lambda: typed(cursor.execute(query, values)))
            except duckdb.InvalidInputException as error:  # it reads nothing but the store's JSON
                raise StoreCorrupt(
                    "a row of the store is damaged; durable-nb doctor says which. The view of a run "
                    "that is not, by its id, can be read"
                ) from error

    def ancestors(self, execution_id: str) -> Sequence[str]:
        """The runs that a run goes on from, the nearest first, as the list of runs has them."""
        with self.cursor() as cursor:
            return [id_ for (id_,) in cursor.execute(_ANCESTORS, [execution_id]).fetchall()]


def asked(cursor: duckdb.DuckDBPyConnection, question: Callable[[], T]) -> T:
    """What a question to a cursor gives. It is asked on a thread of its own, as DuckDB hears of no
    interrupt while the thread that asked works on the answer itself."""
    with ThreadPoolExecutor(1, "durable_nb query") as other:
        asking = other.submit(question)
        try:
            return asking.result()
        except KeyboardInterrupt:
            cursor.interrupt()
            raise


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


def _append(
    db: duckdb.DuckDBPyConnection,
    table: str,
    rows: Rows,
    as_shown: Callable[[list[Sequence[Any]]], Sequence[Sequence[Any]]] = shown,
) -> None:
    later = iter(rows)
    with db.appender(table) as appender:
        while part := list(islice(later, PART)):
            appender.append_rows(as_shown(part))


_making = threading.Lock()
_mirrors: WeakKeyDictionary[Readable, Mirror] = WeakKeyDictionary()
_inherited: list[object] = []  # a parent's mirrors: their threads do not exist in a forked child


def _after_fork_in_child() -> None:
    global _making, _mirrors
    _inherited.append(_mirrors)
    _making, _mirrors = threading.Lock(), WeakKeyDictionary()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
