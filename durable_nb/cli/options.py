"""What several subcommands take, and how the words of a command line become values."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from durable_nb.core import written

if TYPE_CHECKING:
    from durable_nb.stores.protocol import Checkpointer

    Command = Callable[[argparse.Namespace], int]
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


T = TypeVar("T")


class Reference(NamedTuple):
    """Where an agent is defined: `module:name`."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


def add(
    commands: Commands,
    name: str,
    run: Command,
    *,
    does: str,
    prints: str,
) -> argparse.ArgumentParser:
    """A subcommand with the options that all have. `prints` is the shape of its JSON."""
    parser = commands.add_parser(
        name,
        help=does,
        description=f"{does[0].upper()}{does[1:]}.",
        epilog=f"--json prints {prints}.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--store",
        metavar="PATH_OR_DSN",
        help="a SQLite file or a postgresql:// address; else $DURABLE_NB_STORE, else store in the "
        "project's [tool.durable_nb], else .durable/runs.sqlite3",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.set_defaults(run=run, usage_error=parser.error)
    return parser


def add_agent(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--agent",
        type=reference,
        metavar="MODULE:NAME",
        help="where the run's agent is defined; the current directory is searched first",
    )


def add_person(parser: argparse.ArgumentParser, *, note: bool = True) -> None:
    parser.add_argument("--by", metavar="NAME", help="who decides; else you")
    if note:
        parser.add_argument("--note", metavar="TEXT", help="the reason; the model reads it")


def place_of(chosen: argparse.Namespace) -> tuple[str, ...]:
    """The words that name the store again, for a command to type next."""
    return () if chosen.store is None else ("--store", chosen.store)


def agent_of(chosen: argparse.Namespace) -> str:
    """The word that names the agent again, where it was named."""
    return str(getattr(chosen, "agent", None) or "MODULE:NAME")


def store_of(chosen: argparse.Namespace) -> Checkpointer:
    """The store that is meant. Opens nothing yet."""
    from durable_nb.stores.open import default_store, open_store

    return default_store() if chosen.store is None else open_store(chosen.store)


def reference(text: str) -> Reference:
    module, colon, name = text.partition(":")
    if not (module and colon and name):
        raise argparse.ArgumentTypeError(
            f"{text!r} does not say where an agent is defined; write MODULE:NAME, such as shop:bot"
        )
    return Reference(module, name)


def refusing(read: Callable[[str], T]) -> Callable[[str], T]:
    """A reader whose own words say what is wrong with a value."""

    def reader(text: str) -> T:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return reader


age = refusing(written.age)
json_value = refusing(written.json_value)
named_json = refusing(written.named_json)


def count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)
