"""What a project says of itself: the table `[tool.durable_nb]` of the nearest pyproject.toml.

It is looked for from the working directory upwards, and read again when it has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from durable_nb.model.errors import InvalidInput

FILE = "pyproject.toml"
TABLE = "tool.durable_nb"


class Project(NamedTuple):
    """A pyproject.toml and what its table says."""

    path: Path
    said: Mapping[str, Any]

    def where(self, key: str) -> str:
        """How an error names a value of the table."""
        return f"{key} in [{TABLE}] of {self.path}"


def project() -> Project | None:
    """The nearest pyproject.toml, if there is one. Raises `InvalidInput` for one whose table cannot
    be read."""
    global _read
    try:
        here = Path.cwd()
    except OSError:  # it was deleted, and no project is around it
        return None
    for folder in (here, *here.parents):
        path = folder / FILE
        try:
            found = path.stat()
        except OSError:
            continue
        stamp = path, found.st_mtime_ns, found.st_size
        if _read is None or _read[0] != stamp:
            _read = stamp, Project(path, _table(path))
        return _read[1]
    return None


def project_store() -> str | None:
    """The store that the project names: an address, or a path from where its pyproject.toml is."""
    found = project()
    if found is None or "store" not in found.said:
        return None
    store = found.said["store"]
    if not isinstance(store, str) or not store:
        raise InvalidInput(
            f"{found.where('store')} is {store!r}; write a path or a postgresql:// address"
        )
    try:
        return store if "://" in store else str(found.path.parent / Path(store).expanduser())
    except RuntimeError as error:
        raise InvalidInput(f"{found.where('store')} is {store!r}: {error}; change it") from error


def _table(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        if "durable_nb" not in text:  # most projects do not: nothing is parsed for them
            return {}
        import tomllib  # only here, since loading it takes longer than all else

        tools = tomllib.loads(text).get("tool", {})
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} cannot be read ({error}); mend it") from error
    table = tools.get("durable_nb", {}) if isinstance(tools, dict) else {}
    if not isinstance(table, dict):
        raise InvalidInput(f"durable_nb in [tool] of {path} is {table!r}; make it a table")
    return table


_read: tuple[tuple[Path, int, int], Project] | None = None
