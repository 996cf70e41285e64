"""Which store is meant: objects for the same place are the same store, and nothing is opened."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from durable_nb import InvalidInput, MemoryCheckpointer, PostgresCheckpointer, SQLiteCheckpointer
from durable_nb.stores.open import default_store, open_store, store_key

ADDRESS = "postgresql://nobody@localhost:1/nothing"


def test_objects_for_one_place_are_one_store() -> None:
    assert store_key(SQLiteCheckpointer("a")) == store_key(SQLiteCheckpointer("./a"))
    assert store_key(PostgresCheckpointer(ADDRESS)) == store_key(PostgresCheckpointer(ADDRESS))


def test_another_file_schema_or_memory_is_another_store() -> None:
    elsewhere = PostgresCheckpointer(ADDRESS, schema="other")
    one, other = MemoryCheckpointer(), MemoryCheckpointer()
    assert store_key(SQLiteCheckpointer("a")) != store_key(SQLiteCheckpointer("b"))
    assert store_key(PostgresCheckpointer(ADDRESS)) != store_key(elsewhere)
    assert store_key(one) != store_key(other)


def test_an_address_without_the_extra_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "durable_nb.stores.postgres", None)
    with pytest.raises(InvalidInput, match=r"durable_nb\[postgres\]"):
        open_store("postgresql://127.0.0.1:1/never-opened-before")


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "~nobody-of-that-name/x"])
def test_a_path_that_no_file_can_have_is_refused_in_a_line(path: str) -> None:
    with pytest.raises(InvalidInput, match="is no path that a store can have here"):
        open_store(path)


def test_where_the_working_directory_was_deleted_the_default_store_is_an_error_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(InvalidInput, match="choose another one"):
        default_store()
