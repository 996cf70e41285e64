"""What cards are made of, as data. `render` draws it, as HTML and as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


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
    lines: tuple[str, ...]
    opened: bool


@dataclass(frozen=True, slots=True)
class Commands:
    """Lines to type, each with what it does."""

    lines: tuple[tuple[str, str], ...]


Part: TypeAlias = Say | Fields | Block | Steps | Commands
