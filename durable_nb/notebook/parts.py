"""What cards are made of, as data. `render` draws it, as HTML and as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from durable_nb.core.text import readable

Tone: TypeAlias = Literal["amber", "green", "slate", "blue", "red"]


@dataclass(frozen=True, slots=True)
class Say:
    """A sentence of ours, which may quote what others wrote. `code` is a piece of it."""

    text: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Fields:
    """The frozen context of a pause, under its reason."""

    title: str
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Block:
    """What a model or an exception said. `all_of_it` is what to type to see it whole."""

    text: str
    all_of_it: str


@dataclass(frozen=True, slots=True)
class Steps:
    """A run's steps as lines behind a fold."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Commands:
    """Lines to type, each with what it does."""

    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A line of a timeline: its columns, what is said under it, and what it opens to."""

    tone: Tone | None
    glyph: str
    columns: tuple[str, ...]
    under: tuple[str, ...]
    parts: tuple[Part, ...]
    opened: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """Steps under each other. `more` are commands that show the others."""

    title: str
    steps: tuple[Step, ...]
    more: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """Parts behind a title. As text it is that and `brief`."""

    title: str
    parts: tuple[Part, ...]
    brief: str = ""


@dataclass(frozen=True, slots=True)
class Lines:
    """A text's changed lines, each with its sign before it: `+ `, `- `, or blanks."""

    title: str
    lines: tuple[str, ...]


Part: TypeAlias = Say | Fields | Block | Steps | Commands | Timeline | Table | Fold | Lines


def fields_of(title: str, value: object) -> Fields:
    """A value under its title: by its names if it has any."""
    if isinstance(value, Mapping):
        return Fields(title, tuple((str(name), readable(each)) for name, each in value.items()))
    return Fields(title, () if value is None else (("", readable(value)),))
