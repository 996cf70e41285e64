"""Saved queries: `.sql` files, each with a name, a line that says what it answers, and values to
fill in. Some come with the package; a user's own stand in `queries` beside the store.

The lines that a file opens with are comments: what it answers, and what a value is if nobody says,
as in `-- $limit = 20`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from itertools import takewhile
from pathlib import Path

from pandas import DataFrame

from durable_nb.core.near import did_you_mean
from durable_nb.model.errors import InvalidInput
from durable_nb.model.values import Json, loads
from durable_nb.stores.protocol import Checkpointer
from durable_nb.stores.sqlite_file import DEFAULT
from durable_nb.views.mirror import readable
from durable_nb.views.statements import answer, named_values

_DEFAULT = re.compile(r"\$(\w+) = (.+)")
_COLUMNS = ("name", "about", "values", "path")


@dataclass(frozen=True, slots=True)
class Saved:
    """A query and what its first lines say of it."""

    name: str
    text: str
    path: str

    @property
    def about(self) -> str:
        return " ".join(line for line in self._comments() if not _DEFAULT.match(line))

    @property
    def defaults(self) -> Mapping[str, Json]:
        found = (_DEFAULT.match(line) for line in self._comments())
        return {match[1]: _value(self.path, match[2]) for match in found if match}

    def _comments(self) -> Iterator[str]:
        opening = takewhile(lambda line: line.startswith("--"), self.text.splitlines())
        return (line.removeprefix("--").strip() for line in opening)


def queries(
    folder: str | os.PathLike[str] | None = None, *, store: Checkpointer | None = None
) -> DataFrame:
    """The saved queries that there are: name, what each answers, which values it takes, where it
    is. A user's own come first, and hide ours of the same name.

    `folder` is `queries` beside the store if it is left out.
    """
    rows = [_line(each) for each in _all(folder, store).values()]
    return DataFrame(rows, columns=_COLUMNS, dtype="str")


def query(
    name: str,
    /,
    *,
    store: Checkpointer | None = None,
    folder: str | os.PathLike[str] | None = None,
    **values: object,
) -> DataFrame:
    """What a saved query answers: one of `queries()` by its name, or a `.sql` file by its path.

    `values` fill in what it leaves open. Raises `InvalidInput` for a query that is not there, a
    value that is missing or not asked for, and for SQL that is wrong.
    """
    saved = _found(name, folder, store)
    known = named_values(saved.text)
    if unknown := sorted(values.keys() - known):
        raise InvalidInput(f"{saved.name} takes no value {unknown[0]!r}; {_takes(known)}")
    given = {**{key: each for key, each in saved.defaults.items() if key in known}, **values}
    if missing := sorted(known - given.keys()):
        raise InvalidInput(f"{saved.name} needs a value for {missing[0]!r}: {missing[0]}=...")
    return answer(saved.text, given, store=store)


def _line(saved: Saved) -> tuple[str, str, str, str]:
    """A query as it is listed; one that is wrong says so, and hides no other."""
    try:
        values = ", ".join(sorted(named_values(saved.text)))
    except InvalidInput as error:
        return saved.name, f"it is wrong: {error}", "", saved.path
    return saved.name, saved.about, values, saved.path


def _found(name: object, folder: object, store: Checkpointer | None) -> Saved:
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"a saved query has a name, as queries() lists them, not {name!r}")
    if name.endswith(".sql"):
        return _read(Path(name).expanduser(), store)
    known = _all(folder, store)
    if name not in known:
        meant = did_you_mean(name, known)
        raise InvalidInput(f"no saved query {name!r}{meant}; there are {', '.join(known)}")
    return known[name]


def _all(folder: object, store: Checkpointer | None) -> Mapping[str, Saved]:
    place = Path(str(folder)).expanduser() if folder is not None else _beside(store)
    own = [_read(path, store) for path in sorted(place.glob("*.sql"))]
    ours = sorted(
        files("durable_nb.views").joinpath("queries").iterdir(), key=lambda each: each.name
    )
    names = {each.name: each for each in own}
    for each in ours:
        name = each.name.removesuffix(".sql")
        names.setdefault(name, Saved(name, each.read_text(encoding="utf-8"), str(each)))
    return names


def _beside(store: Checkpointer | None) -> Path:
    """The folder of a user's own queries."""
    path = getattr(readable(store), "path", None)
    return Path(path or DEFAULT).with_name("queries")


def _read(path: Path, store: Checkpointer | None) -> Saved:
    """A query's file. A store's file is never read like this: commits would be lost."""
    used = getattr(readable(store), "path", None)
    try:
        if used is not None and used.exists() and path.samefile(used):
            raise InvalidInput(f"{path} is the store itself, and no query; name a .sql file")
        return Saved(path.stem, path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the query {path} cannot be read ({error}); check the path") from error


def _value(path: str, text: str) -> Json:
    try:
        return loads(text)
    except ValueError as error:
        raise InvalidInput(
            f"{path}: the default {text!r} is not JSON; write a number or a text in double quotes"
        ) from error


def _takes(known: frozenset[str]) -> str:
    return f"it takes {', '.join(sorted(known))}" if known else "it takes none"
