"""DuckDB's answers as DataFrames that have the same types whether they are full, empty or null."""

from __future__ import annotations

from math import nan

import duckdb
from pandas import BooleanDtype, DataFrame, Int64Dtype, Series, StringDtype
from pandas.api.extensions import ExtensionDtype

_TEXT, _INTEGER = StringDtype(na_value=nan), Int64Dtype()
_DTYPES: dict[str, ExtensionDtype] = {
    **dict.fromkeys(("VARCHAR", "JSON"), _TEXT),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), _INTEGER),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER"), _INTEGER),
    "BOOLEAN": BooleanDtype(),
}
_EXACT = 2**53  # DuckDB hands its 128-bit integers, which sums are, over as floats


def typed(answer: duckdb.DuckDBPyConnection) -> DataFrame:
    """The rows of an answer: integers and booleans nullable, text pandas' own, datetimes as DuckDB has them."""
    kinds = [str(column[1]) for column in answer.description or ()]
    frame: DataFrame = answer.df()
    for place, kind in enumerate(kinds):
        column = frame.iloc[:, place]
        dtype = _INTEGER if kind == "HUGEINT" and _is_exact(column) else _DTYPES.get(kind)
        if dtype is not None and column.dtype != dtype:
            frame.isetitem(place, column.astype(dtype).array)
    return frame


def _is_exact(numbers: Series[float]) -> bool:
    return bool((numbers.abs().dropna() <= _EXACT).all())
