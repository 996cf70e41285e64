"""What is typed after `%durable` and `%%durable`, as a namespace. A mistake is an `InvalidInput`.

Never IPython's `UsageError`, which test runners for notebooks take for success.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from keyword import iskeyword
from typing import Any, NoReturn

from durable_nb.core import written
from durable_nb.core.near import did_you_mean
from durable_nb.model.decisions import Resume
from durable_nb.model.errors import InvalidInput
from durable_nb.notebook import config
from durable_nb.notebook.typed import manual
from durable_nb.notebook.typed.grammar import COMMANDS, CRASH, RUN, SQL, Argument, Kind, Line

IN_A_SHELL = ("doctor", "plane", "run", "tour")


class HelpAsked(Exception):
    """`--help`: the text to print. No error, so not one of the tree."""


class _Help(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        raise HelpAsked(parser.format_help())


class _Parser(argparse.ArgumentParser):
    """The parser of a line of the grammar."""

    def __init__(self, line: Line, prog: str) -> None:
        super().__init__(prog=prog, add_help=False, allow_abbrev=False)
        self._line = line
        self.add_argument("-h", "--help", action=_Help, nargs=0)
        for each in line.arguments:
            _add(self._one_of if each.one_of else self, each)

    @cached_property
    def _one_of(self) -> argparse._ActionsContainer:
        """Where options go of which a line has exactly one; argparse wants none without any."""
        return self.add_mutually_exclusive_group(required=True)

    def _parse_optional(self, arg_string: str) -> Any:
        return None if isinstance(arg_string, Quoted) else super()._parse_optional(arg_string)

    def format_help(self) -> str:
        return manual.of(self._line)

    def error(self, message: str) -> NoReturn:
        raise InvalidInput(f"{self.prog}: {message}; see {self.prog} --help")


def run_line(line: str) -> argparse.Namespace:
    """`%%durable AGENT …`"""
    return _Parser(RUN, RUN.name).parse_args(words(line))


def crash_line(line: str) -> argparse.Namespace:
    """`%%crash AGENT …`"""
    return _Parser(CRASH, CRASH.name).parse_args(words(line))


def command_line(line: str) -> argparse.Namespace:
    """`%durable …`: `parsed.command` says which."""
    name, *rest = words(line) or ["runs"]
    if name in ("help", "-h", "--help") and not rest:
        raise HelpAsked(manual.whole())
    if name == "help":
        name, rest = rest[0], ["--help"]
    parser = _Parser(_command(name, rest), f"%durable {name}")
    parsed, extra = parser.parse_known_args(rest)
    if extra:
        parser.error(f"unrecognized arguments: {' '.join(extra)}")
    if "edits" in parsed:
        parsed.edits = dict(parsed.edits) or None
    parsed.command = name
    return parsed


def sql_line(line: str) -> argparse.Namespace:
    """`%%durable_sql …`"""
    parsed = _Parser(SQL, SQL.name).parse_args(words(line))
    parsed.frames = [name for each in parsed.frames for name in each.split(",") if name]
    return parsed


class Quoted(str):
    """A word that begins with a quote: never an option, whatever it begins with then."""

    __slots__ = ()


def words(line: str) -> list[str]:
    """The words of a line. Quotes group; a backslash is a character like any other."""
    found = [each[0] for each in _WORD.finditer(line)]
    if any(_PART.sub("", each) for each in found):
        raise InvalidInput(
            f"{line.strip()!r} opens a quote that it does not close; put the text with the quote "
            "in it between quotes of the other kind"
        )
    return [_unquoted(each) for each in found]


_WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|['"].*|[^ \t\r\n'"])+""", re.DOTALL)
_PART = re.compile(r"""'[^']*'|"[^"]*"|[^'"]+""")


def _unquoted(typed: str) -> str:
    parts = _PART.findall(typed)
    plain = "".join(each[1:-1] if each[0] in "'\"" else each for each in parts)
    return Quoted(plain) if typed[0] in "'\"" else plain


def without_semicolon(line: str) -> tuple[str, bool]:
    """The line without the `;` that ends it, and whether there was one: nothing is shown then."""
    typed = line.rstrip()
    return typed.removesuffix(";"), typed.endswith(";")


def _command(name: str, rest: Sequence[str]) -> Line:
    """The command of that name. What is none is refused with the one that was meant, or with where
    it is one."""
    known = {each.name: each for each in COMMANDS}
    if name in known:
        return known[name]
    if name in IN_A_SHELL:
        raise InvalidInput(
            f"%durable has no {name}; in a shell: {shlex.join(['durable-nb', name, *rest])} "
            "(with --store PATH if you chose another store here)"
        )
    raise InvalidInput(
        f"%durable has no command {name!r}{did_you_mean(name, known)}; see %durable help"
    )


def _add(parser: argparse._ActionsContainer, each: Argument) -> None:
    """An argument of the grammar, in the words of argparse."""
    how: dict[str, Any] = {"dest": each.dest or each.name.strip("-").replace("-", "_").lower()}
    if each.is_option and not (each.takes or each.choices):
        how |= {"action": "store_const", "const": each.means, "default": False}
        parser.add_argument(each.name, **how)
        return
    how |= {"type": _READ.get(each.kind, str), "metavar": each.takes or None}
    how |= {"choices": each.choices or None}
    if each.is_option:
        how |= {"required": each.needed}
        how |= {"action": "append", "default": []} if each.many else {}
        parser.add_argument(each.name, **how)
    else:
        how |= {"nargs": "*" if each.many else None if each.needed else "?", "metavar": each.name}
        parser.add_argument(how.pop("dest"), **how)


def _reader(read: Callable[[str], object], called: str) -> Callable[[str], object]:
    """`read` under the name by which argparse complains: `invalid NAME value: 'x'`."""

    def reader(text: str) -> object:
        return read(text)

    reader.__name__ = called
    return reader


def _variable(text: str) -> str:
    if not text.isidentifier() or iskeyword(text):
        raise ValueError(text)
    return text


def _refusing(read: Callable[[str], object]) -> Callable[[str], object]:
    """`read`, whose own words say what is wrong with a value."""

    def reader(text: str) -> object:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return reader


def _happened(text: str) -> Callable[..., Resume]:
    return partial(Resume.happened, written.json_value(text))


_READ: Mapping[Kind, Callable[[str], object]] = {
    "pause": _reader(int, "number"),
    "page": _reader(int, "number"),
    "seconds": _reader(config.seconds, "number of seconds"),
    "variable": _reader(_variable, "variable's name"),
    "age": _refusing(written.age),
    "place": written.place,
    "edit": _refusing(written.named_json),
    "happened": _refusing(_happened),
}
