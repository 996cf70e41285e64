"""What Tab offers in the body of `%%durable_sql`: tables, and columns of those that are named."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

from durable_nb.notebook.typed import parse
from durable_nb.notebook.typed.grammar import SQL

_TABLES_FOLLOW = re.compile(r"\b(?:from|join)\s+\w*$", re.IGNORECASE)


def of_query(text: str, typed: str, names: Mapping[str, Any]) -> tuple[str, Sequence[str]]:
    """The word at the cursor, and what could stand there: tables, and columns of the tables that
    the query names, or of all if it names none yet."""
    fragment = (re.search(r"[\w.]*$", typed) or [""])[0]
    tables = {**tables_of_views(), **_with(text.split("\n")[0], names)}
    table, dot, _ = fragment.rpartition(".")
    if dot:
        return fragment, _beginning(fragment, [f"{table}.{c}" for c in tables.get(table, ())])
    if _TABLES_FOLLOW.search(typed):
        return fragment, _beginning(fragment, tables)
    query = text.split("\n", 1)[1]
    named = [name for name in tables if re.search(rf"\b{re.escape(name)}\b", query)]
    columns = (column for name in named or tables for column in tables[name])
    return fragment, _beginning(fragment, dict.fromkeys((*columns, *tables)))


def _with(line: str, names: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """The columns of the DataFrames that the query is given."""
    parsed = parse.sql_line(line.removeprefix(SQL.name))
    frames = frames_of(names)
    return {
        each: [name for name in map(str, frames[each].columns) if name.isidentifier()]
        for each in parsed.frames
        if each in frames
    }


@lru_cache(maxsize=1)
def tables_of_views() -> Mapping[str, Sequence[str]]:
    """The columns of each view, read off its `.sql` file: DuckDB would have to be loaded first."""
    folder = files("durable_nb").joinpath("views", "sql")
    texts = {
        each.name.removesuffix(".sql"): each.read_text(encoding="utf-8")
        for each in folder.iterdir()
        if each.name.endswith(".sql") and each.name != "tables.sql"
    }
    return {name: _columns(text) for name, text in sorted(texts.items())}


def _columns(view: str) -> Sequence[str]:
    """The names of what a view's last `select` at the left margin selects, quoted where SQL wants
    them so."""
    selected = re.split(r"^select\b", view, flags=re.MULTILINE)[-1]
    selected = re.split(r"^from\b", selected, flags=re.MULTILINE)[0]
    named = (re.search(r"\w+$|\"\w+\"$", each) for each in _at_commas(selected))
    return [name[0] for name in named if name]


def _at_commas(selected: str) -> Iterator[str]:
    """The text between commas that stand in no parentheses, without comments and strings."""
    plain = re.sub(r"--.*|'[^']*'", "", selected)
    depth, part = 0, ""
    for character in plain:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            yield part.rstrip()
            part = ""
        else:
            part += character
    yield part.rstrip()


def _beginning(typed: str, texts: Iterable[str]) -> Sequence[str]:
    return [each for each in texts if each.strip('"').startswith(typed)]


def frames_of(names: Mapping[str, Any]) -> dict[str, Any]:
    pandas = sys.modules.get("pandas")
    if pandas is None:  # nobody can have made one
        return {}
    return {
        name: value
        for name, value in list(names.items())
        if isinstance(value, pandas.DataFrame) and not name.startswith("_")
    }
