"""What is exported is the store at one moment, readable by other programs, and never overwrites."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd
import pytest

from durable_nb import (
    Checkpointer,
    InvalidInput,
    MemoryCheckpointer,
    SQLiteCheckpointer,
    StoreUnusable,
    views,
)
from durable_nb.views.mirror import VIEWS
from durable_nb.views.typed import typed
from tests.views.runs import a_run_of_every_status, bot


def read(path: Path) -> pd.DataFrame:
    with duckdb.connect() as db:
        db.execute("set TimeZone = 'UTC'")
        return typed(db.execute("select * from read_parquet(?) order by all", [str(path)]))


def test_a_folder_gets_a_parquet_file_a_view_with_its_rows_and_types(
    store: Checkpointer, tmp_path: Path
) -> None:
    a_run_of_every_status(store)
    bot(store, "naïve 名前 \0").run("it's $odd", execution_id="o'dd")
    written = views.export(tmp_path / "it's out", store=store)
    assert [path.name for path in written] == [f"{view}.parquet" for view in VIEWS]
    assert sorted((tmp_path / "it's out").iterdir()) == sorted(written)
    for view, path in zip(VIEWS, written, strict=True):
        table = views.sql(f"from {view} order by all", store=store)
        pd.testing.assert_frame_equal(read(path), table)


def test_an_empty_store_gives_empty_files_with_columns(store: Checkpointer, tmp_path: Path) -> None:
    target = tmp_path / "tables"
    target.mkdir()
    for path in views.export(target, store=store):
        assert read(path).empty
        assert len(read(path).columns)


@pytest.mark.parametrize("name", ["tables", "copy.sqlite3"])
def test_what_is_there_is_not_overwritten(tmp_path: Path, name: str) -> None:
    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
    a_run_of_every_status(store)
    views.export(tmp_path / name, store=store)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(StoreUnusable, match="exists already"):
        views.export(tmp_path / name, store=store)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_path_with_a_suffix_is_a_copy_that_works_as_a_store(tmp_path: Path) -> None:
    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
    a_run_of_every_status(store)
    (path,) = views.export(tmp_path / "copy.sqlite3", store=store)
    copy = SQLiteCheckpointer(path)
    pd.testing.assert_frame_equal(views.runs(store=copy), views.runs(store=store))
    copy.close()


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("out.parquet", InvalidInput, "name a folder, such as .*out$"),
        ("copy.sqlite3", InvalidInput, "is not a file"),
        ("missing/folder/tables", StoreUnusable, "cannot be written"),
        ("x" * 300, StoreUnusable, "cannot be written"),
        ("a\0b", StoreUnusable, "cannot be written"),
        ("a\0b.sqlite3", StoreUnusable, "cannot be written"),
        ("\ud800", StoreUnusable, "cannot be written"),
    ],
)
def test_what_cannot_be_exported_leaves_nothing(
    tmp_path: Path, name: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        views.export(tmp_path / name, store=MemoryCheckpointer())
    assert list(tmp_path.iterdir()) == []
