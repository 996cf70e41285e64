"""SQL over a store: DuckDB's dialect, the views as tables, an answer as a DataFrame."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import duckdb
from pandas import DataFrame

from durable_nb.model.errors import InvalidInput
from durable_nb.stores.protocol import Checkpointer
from durable_nb.views.mirror import VIEWS, asked, mirror_of, readable
from durable_nb.views.shown import is_text
from durable_nb.views.typed import typed

NO_FRAMES: Mapping[str, DataFrame] = MappingProxyType({})
NO_VALUES: Mapping[str, object] = MappingProxyType({})


def sql(
    query: str, *, store: Checkpointer | None = None, frames: Mapping[str, DataFrame] = NO_FRAMES
) -> DataFrame:
    """What the last statement of `query` answers; a statement without an answer gives an empty
    frame. Its tables are the views by their names (runs, steps, tool_calls, ...) as the store is
    now, and `frames` by theirs.

    Nothing that a query does outlasts it, and none can reach the store, a file or the network.
    Raises `InvalidInput` saying what is wrong with the query.
    """
    return answer(query, NO_VALUES, store=store, frames=frames)


def answer(
    query: str,
    values: Mapping[str, object],
    *,
    store: Checkpointer | None = None,
    frames: Mapping[str, DataFrame] = NO_FRAMES,
) -> DataFrame:
    """What `sql` gives, with `values` where the query says `$name`."""
    source = readable(store)
    mirror = mirror_of(source)
    mirror.take(source)
    with mirror.cursor() as cursor:
        try:
            last = _statements(cursor, query)[-1]
            for name, frame in frames.items():
                cursor.register(name, _checked(name, frame))
            return asked(cursor, lambda: _answer(cursor, query, values, last))
        except duckdb.Error as error:
            raise InvalidInput(_complaint(error)) from error


def _answer(
    cursor: duckdb.DuckDBPyConnection,
    query: str,
    values: Mapping[str, object],
    last: duckdb.Statement,
) -> DataFrame:
    given = cursor.execute(query, values) if values else cursor.execute(query)
    return typed(given) if _answers(last) else DataFrame()


def named_values(query: str) -> frozenset[str]:
    """The names of the values that a query leaves open. Raises `InvalidInput` for what is no SQL."""
    with duckdb.connect(":memory:") as parser:
        try:
            found = _statements(parser, query)
        except duckdb.Error as error:
            raise InvalidInput(_complaint(error)) from error
    return frozenset(name for statement in found for name in statement.named_parameters)


def _statements(cursor: duckdb.DuckDBPyConnection, query: object) -> Sequence[duckdb.Statement]:
    found = cursor.extract_statements(query) if is_text(query) else []
    if not found:
        raise InvalidInput(f"a query is SQL, such as 'from runs'; this one is {query!r}")
    if any(statement.type == duckdb.StatementType.TRANSACTION for statement in found):
        raise InvalidInput(
            "a query is a transaction of its own, and nothing in it is kept; drop its "
            "BEGIN, COMMIT or ROLLBACK"
        )
    return found


def _answers(statement: duckdb.Statement) -> bool:
    """Whether there is more to show than that it was done; a PIVOT is several statements."""
    silent = duckdb.ExpectedResultType.NOTHING in statement.expected_result_type
    return not silent or statement.type == duckdb.StatementType.MULTI


def _checked(name: str, frame: object) -> DataFrame:
    if not is_text(name):
        raise InvalidInput(f"a frame's name is text, not {name!r}")
    if not isinstance(frame, DataFrame):
        raise InvalidInput(
            f"{name!r} is a {type(frame).__name__}, and only a DataFrame can be queried; make it "
            "one with pandas.DataFrame(...)"
        )
    return frame


def _complaint(error: Exception) -> str:
    """One line: what is wrong, where in the query, and what to do."""
    text = str(error)
    if isinstance(error, duckdb.PermissionException):
        return (
            "a query reaches the store's tables and the frames it is given, but no file, extension "
            "or other database; load the data with pandas and name the DataFrame with --with"
        )
    if missing := re.search(r"Table with name (.+) does not exist!", text):
        return (
            f"no table {missing[1]!r}: there are {', '.join(VIEWS)}. If it is a DataFrame, name it: "
            f"%%durable_sql --with {missing[1]}, or sql(..., frames={{...}})"
        )
    if re.search(r"only (delete from|update) base table|is not an table", text):
        return (
            "the tables are mirrors of the store, and a query changes nothing in it; to end or "
            "forget runs type %durable cancel ID, or %durable prune"
        )
    said = re.sub(r"^[\w ]+ Error: ", "", text.partition("\n\nLINE ")[0])
    where = re.search(r"^LINE (\d+): (.*)$", text, re.MULTILINE)
    at = f" (line {where[1]}: {where[2].strip()})" if where else ""
    return " ".join(said.split()) + at
