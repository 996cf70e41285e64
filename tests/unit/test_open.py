"""Which store is meant: objects for the same place are the same store, and nothing is opened."""

from __future__ import annotations

from durable_nb import MemoryCheckpointer, PostgresCheckpointer, SQLiteCheckpointer
from durable_nb.stores.open import store_key

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
