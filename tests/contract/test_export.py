"""A copy of a SQLite store is whole, and never in anybody's way."""

from __future__ import annotations

from pathlib import Path

import pytest

from durable_nb import InvalidInput, MemoryCheckpointer, SQLiteCheckpointer, StoreUnusable
from durable_nb.stores.export import export
from tests.contract.suite import paused, started, statuses


def test_a_copy_holds_what_the_store_held(tmp_path: Path) -> None:
    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
    paused(store, "r1", 1)
    lease = started(store, "r2", 2)
    target = tmp_path / "copy.sqlite3"
    assert export(store, target) == target.stat().st_size > 0
    copy = SQLiteCheckpointer(target)
    assert statuses(copy) == {"r1": "paused", "r2": "crashed"}  # nobody drives the copy
    assert copy.load("r1").rows == store.load("r1").rows
    store.release(lease)
    copy.close()
    store.close()


def test_a_place_that_takes_no_copy_is_refused(tmp_path: Path) -> None:
    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
    paused(store)
    taken = tmp_path / "taken"
    taken.write_text("mine")
    with pytest.raises(StoreUnusable, match="exists already"):
        export(store, taken)
    assert taken.read_text() == "mine"
    with pytest.raises(StoreUnusable, match="cannot be written"):
        export(store, tmp_path / "no" / "where")
    with pytest.raises(InvalidInput, match="not a file"):
        export(MemoryCheckpointer(), tmp_path / "copy")
    assert sorted(each.name for each in tmp_path.glob("*copy*")) == []
    store.close()
