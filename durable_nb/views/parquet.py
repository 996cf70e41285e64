"""A DataFrame as a stored value: Parquet by DuckDB, with labels and dtypes beside it (DESIGN R9).

What does not come back equal is refused when it is written, and so is what is too large for a log.
"""

from __future__ import annotations

import tempfile
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from durable_nb.model.errors import NotStorable
from durable_nb.model.values import Extension, Json, freeze, thaw

MAX_BYTES = 16_000_000  # of Parquet, as it is stored


def freeze_frame(frame: pd.DataFrame, path: str) -> Json:
    """The frame's stored form. Raises `NotStorable` if it would come back as another frame, or is
    over 16 MB as Parquet."""
    try:
        form = _form(frame, path)
        back = thaw_frame(form)
        pd.testing.assert_frame_equal(frame, back, check_exact=True, check_freq=False)
    except (AssertionError, ValueError, TypeError, duckdb.Error) as error:
        raise NotStorable(
            f"{path} is a DataFrame that would not come back equal ({_line(error)}); return plain "
            "columns of numbers, text, booleans or times, or a path to a file"
        ) from error
    return form


def thaw_frame(form: Json) -> pd.DataFrame:
    """The frame that was stored."""
    frame = _read(b64decode(form["parquet"]))
    for name, dtype in zip(frame.columns, form["dtypes"], strict=True):
        frame[name] = frame[name].astype(dtype)
    levels = len(form["index"])
    data = frame.iloc[:, levels:]
    data.columns = _labels(form["columns"], form["column_names"])
    names = thaw(form["index"])
    if levels == 1:
        data.index = pd.Index(frame.iloc[:, 0]).rename(names[0])
    else:
        data.index = pd.MultiIndex.from_frame(frame.iloc[:, :levels], names=names)
    return data


def _form(frame: pd.DataFrame, path: str) -> Json:
    index = frame.index.to_frame(index=False)
    flat = pd.concat([index, frame.reset_index(drop=True)], axis=1)
    flat.columns = pd.Index([f"c{at}" for at in range(flat.shape[1])])
    parquet = _written(flat)
    if len(parquet) > MAX_BYTES:
        raise NotStorable(
            f"{path} is a DataFrame of {len(parquet):,} bytes as Parquet, the limit is "
            f"{MAX_BYTES:,}; write it to a file and return the path"
        )
    return {
        "parquet": b64encode(parquet).decode(),
        "dtypes": [str(dtype) for dtype in flat.dtypes],
        "columns": [freeze(label, f"{path} column {label!r}") for label in frame.columns],
        "column_names": freeze(list(frame.columns.names), f"{path} column names"),
        "index": freeze(list(frame.index.names), f"{path} index names"),
    }


def _labels(columns: Json, names: Json) -> Any:
    labels = [thaw(label) for label in columns]
    if len(names) > 1:
        return pd.MultiIndex.from_tuples(labels, names=thaw(names))
    return pd.Index(labels, name=thaw(names)[0], tupleize_cols=False)


def _written(flat: pd.DataFrame) -> bytes:
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as db:
        file = Path(folder, "frame.parquet")
        db.register("flat", flat)
        db.execute(f"copy (select * from flat) to '{file}' (format parquet, compression zstd)")
        return file.read_bytes()


def _read(parquet: bytes) -> pd.DataFrame:
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as db:
        file = Path(folder, "frame.parquet")
        file.write_bytes(parquet)
        return db.execute(f"select * from read_parquet('{file}')").df()


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


EXTENSION = Extension(freeze_frame, thaw_frame)
