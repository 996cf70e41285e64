"""What Tab offers in a line of ours and in the body of `%%durable_sql`.

It reads the grammar, the names of the notebook and a bounded part of the store. It is never slow,
raises nothing and makes nothing: where something cannot be read, nothing is offered.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from glob import escape, glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from durable_nb.model.errors import DurableError, InvalidInput
from durable_nb.notebook import agents
from durable_nb.notebook.typed import parse
from durable_nb.notebook.typed.grammar import COMMANDS, CRASH, RUN, SQL, Argument, Kind, Line
from durable_nb.notebook.typed.tables import frames_of, of_query
from durable_nb.notebook.words import word
from durable_nb.stores.open import default_store

if TYPE_CHECKING:
    from durable_nb.stores.protocol import Checkpointer

MOST = 50  # names that are offered
STEPS = 1000  # rows of a run that are looked at
PATIENCE = 0.04  # s that a store that is not a file is waited for; the next Tab has what it said

_OURS = re.compile(
    r"\s*(?:[\w, ]+=\s*)?(?P<magic>%%durable_sql|%%durable|%%crash|%durable)\s(?P<line>.*)"
)


class Offer(NamedTuple):
    """What could stand in the place of `fragment`, the end of what is typed, best first."""

    fragment: str
    texts: Sequence[str]


def offer(text: str, cursor_line: int, column: int, names: Mapping[str, Any]) -> Offer | None:
    """What to offer at that place of a cell; None where it is not for us to say."""
    lines = text.split("\n")
    typed = lines[cursor_line][:column]
    body_of = _OURS.match(f"{lines[0]} ") if cursor_line else None
    try:
        if body_of is not None and body_of["magic"].startswith("%%"):
            return Offer(*of_query(text, typed, names)) if body_of["magic"] == SQL.name else None
        found = _OURS.fullmatch(typed)
        return None if found is None else _of_line(found["magic"], found["line"], names)
    except (DurableError, sqlite3.Error, OSError, ValueError):
        return None  # an unreadable store, a quote that is still open: nothing to offer


def _of_line(magic: str, typed: str, names: Mapping[str, Any]) -> Offer:
    before, fragment = _split(typed)
    line = {RUN.name: RUN, SQL.name: SQL, CRASH.name: CRASH}.get(magic)
    if line is None:
        if not before:
            return Offer(fragment, _beginning(fragment, [each.name for each in COMMANDS]))
        line = next((each for each in COMMANDS if each.name == before[0]), None)
        before = before[1:]
    return Offer(fragment, _words(line, before, fragment, names) if line else ())


def _words(
    line: Line, before: Sequence[str], fragment: str, names: Mapping[str, Any]
) -> Sequence[str]:
    """What comes next in a line: a value, the next place, or an option that is not there yet."""
    options = {each.name: each for each in line.arguments if each.is_option}
    last = options.get(before[-1]) if before else None
    places = _places(before, options)
    typed = fragment.lstrip("'\"")
    if last is not None and _takes(last):
        return _values(last, typed, places, names)
    if not fragment.startswith("-"):
        wanted = [each for each in line.arguments if not each.is_option][len(places) :]
        if wanted:
            return _values(wanted[0], typed, places, names)
    return _beginning(fragment, [each.name for each in _free(options, before)])


def _free(options: Mapping[str, Argument], before: Sequence[str]) -> Iterator[Argument]:
    """The options that can still come."""
    typed = [options[each] for each in before if each in options]
    chosen = any(each.one_of for each in typed)
    for each in options.values():
        if each.many or not (each in typed or (each.one_of and chosen)):
            yield each


def _places(before: Sequence[str], options: Mapping[str, Argument]) -> list[str]:
    """The words that are neither options nor what follows one."""
    found: list[str] = []
    value = False
    for each in before:
        if not value and each not in options:
            found.append(each)
        value = not value and each in options and _takes(options[each])
    return found


def _takes(argument: Argument) -> bool:
    return bool(argument.takes or argument.choices)


def _values(
    argument: Argument, typed: str, places: Sequence[str], names: Mapping[str, Any]
) -> Sequence[str]:
    if argument.choices:
        return _beginning(typed, argument.choices)
    known = _KNOWN.get(argument.kind)
    run = places[0] if places else ""
    return [word(each) for each in known(typed, run, names)][:MOST] if known else ()


def _agents(typed: str, run: str, names: Mapping[str, Any]) -> Sequence[str]:
    here = agents.defined(names)
    return _beginning(typed, dict.fromkeys((*here, *(each.name for each in here.values()))))


def _variables(typed: str, run: str, names: Mapping[str, Any]) -> Sequence[str]:
    return _beginning(typed, agents.defined(names))


def _runs(typed: str, run: str, names: Mapping[str, Any]) -> Sequence[str]:
    store = default_store()
    path = _file_of(store)
    if path is not None:
        from durable_nb.stores import glance

        return glance.names(path, typed, MOST)
    return _beginning(typed, _patiently(store, "", lambda: _recent(store)))


def _recent(store: Checkpointer) -> list[str]:
    conversations = store.sessions(limit=MOST)
    return list(dict.fromkeys(id_ for each in conversations for id_ in (each.newest, each.session)))


def _nodes(typed: str, run: str, names: Mapping[str, Any]) -> Sequence[str]:
    """The nodes of a run at which it can be forked, the newest first."""
    nodes = (
        f"turn:{turn}/tool:{tool}" if tool else f"turn:{turn}"
        for _, kind, turn, tool in _steps(run)
        if kind != "end"
    )
    return _beginning(typed, dict.fromkeys(nodes))


def _pauses(typed: str, run: str, names: Mapping[str, Any]) -> Sequence[str]:
    """The pause that the run waits at."""
    newest = _steps(run)[:1]
    return _beginning(typed, [str(number) for number, kind, *_ in newest if kind == "pause"])


def _steps(run: str) -> Sequence[tuple[int, str, int, str | None]]:
    store = default_store()
    path = _file_of(store)
    if path is not None:
        from durable_nb.stores import glance

        return glance.steps(path, run, STEPS)
    return _patiently(store, run, lambda: _loaded(store, run))


def _loaded(store: Checkpointer, run: str) -> list[tuple[int, str, int, str | None]]:
    kinds = {"run_end": "end", "hitl_pause": "pause"}
    return [
        (row.number, kinds.get(row.step_type, ""), row.node_index, getattr(row.entry, "tool", None))
        for row in reversed(store.list(run))
    ]


def _stores(typed: str, run: str, names: Mapping[str, Any]) -> Sequence[str]:
    """Variables that hold a store or an agent, then paths."""
    holders = [
        name
        for name, value in list(names.items())
        if not name.startswith("_") and agents.store_of(value) is not None
    ]
    return (*_beginning(typed, holders), *_paths(typed, run, names))


def _paths(typed: str, run: str, names: Mapping[str, Any]) -> Sequence[str]:
    """Directories, which end in a slash, and files of that beginning."""
    if "://" in typed:
        return ()
    start = os.path.expanduser(typed)
    found = sorted(glob(f"{escape(start)}*"))[:MOST]
    return [typed + each[len(start) :] + "/" * os.path.isdir(each) for each in found]


def _frames(typed: str, run: str, names: Mapping[str, Any]) -> Sequence[str]:
    """The DataFrames here; of `a,b` the last is typed."""
    said, comma, last = typed.rpartition(",")
    return [said + comma + each for each in _beginning(last, frames_of(names))]


def _commands(typed: str, run: str, names: Mapping[str, Any]) -> Sequence[str]:
    return _beginning(typed, [each.name for each in COMMANDS])


_KNOWN: Mapping[Kind, Callable[[str, str, Mapping[str, Any]], Sequence[str]]] = {
    "agent": _agents,
    "agent variable": _variables,
    "run": _runs,
    "place": _nodes,
    "pause": _pauses,
    "store": _stores,
    "path": _paths,
    "frame": _frames,
    "command": _commands,
}


def _split(typed: str) -> tuple[Sequence[str], str]:
    """The words before the cursor, and the one at it, as it is typed."""
    quote, start = "", 0
    for at, character in enumerate(typed):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character.isspace():
            start = at + 1
    return parse.words(typed[:start]), typed[start:]


def _beginning(typed: str, texts: Iterable[str]) -> Sequence[str]:
    return [each for each in texts if each.startswith(typed)]


def _file_of(store: Checkpointer) -> Path | None:
    """The file of a store that is one. Raises `InvalidInput` where it has not been made."""
    path: Path | None = getattr(store, "path", None)
    if path is not None and not path.is_file():
        raise InvalidInput(f"{path} is not there yet")
    return path


def _patiently(store: Checkpointer, about: str, ask: Callable[[], list[Any]]) -> list[Any]:
    """What a store answers from elsewhere if it does so at once, else what it answered last."""
    key = id(store), about
    asking = _asking.get(key)
    if asking is None or not asking.is_alive():
        asking = _asking[key] = threading.Thread(
            target=_ask, args=(key, ask), name="durable_nb Tab", daemon=True
        )
        asking.start()
    asking.join(PATIENCE)
    return _answered.get(key, [])


def _ask(key: tuple[int, str], ask: Callable[[], list[Any]]) -> None:
    try:
        _answered[key] = ask()
    except DurableError:
        _answered.pop(key, None)


_asking: dict[tuple[int, str], threading.Thread] = {}
_answered: dict[tuple[int, str], list[Any]] = {}
