"""What the magics say about themselves, all of it from their grammar: `%durable?`, `%%durable?` and
`%durable help` are one text, `%durable COMMAND --help` is a part of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap

from durable_nb.notebook.config import SETTINGS
from durable_nb.notebook.typed.grammar import COMMANDS, CRASH, RUN, SQL, Argument, Line

WIDTH = 100
_LEFT = 26  # columns of what is typed; what it does begins after them
_JOINED = "\0"  # a space at which no line is broken


def whole() -> str:
    """All there is to type."""
    commands = (_beside(f"%durable {_typed(each)}", each.does, 4) for each in COMMANDS)
    settings = (_beside(each.name, each.meaning) for each in SETTINGS.values())
    parts = (
        of(RUN),
        "%durable COMMAND: look at runs, decide, go on. Alone it is %durable runs.",
        "\n".join(commands),
        "%durable COMMAND --help says more.",
        of(SQL),
        of(CRASH),
        _wrapped(
            "What a cell does not say is decided by %config DurableMagics.NAME = VALUE, else by "
            "DURABLE_NB_NAME in the environment, else by NAME in [tool.durable_nb] of the nearest "
            "pyproject.toml, else like this:"
        ),
        "\n".join(settings),
    )
    return "\n\n".join(parts)


def of(line: Line) -> str:
    """The help of one magic, or of one command of `%durable`."""
    name = _typed(line) if line.name.startswith("%") else f"%durable {_typed(line)}"
    usage = wrap(f"usage: {name}", WIDTH, subsequent_indent=" " * 11, break_on_hyphens=False)
    parts = [
        "\n".join(usage).replace(_JOINED, " "),
        _wrapped(f"{line.does[0].upper()}{line.does[1:]}."),
    ]
    if line.arguments:
        parts.append("\n".join(_beside(each.typed, each.does) for each in line.arguments))
    if line.more:
        parts.append(_wrapped(line.more))
    return "\n\n".join(parts)


def _typed(line: Line) -> str:
    """The line with all that can be in it."""
    arguments = sorted(line.arguments, key=lambda each: each.is_option)
    words = [_in_brackets(each) for each in arguments if not each.one_of]
    one_of = " | ".join(_joined(each) for each in arguments if each.one_of)
    return " ".join((line.name, *words, *[f"({one_of})"] * bool(one_of)))


def _in_brackets(argument: Argument) -> str:
    """What can be left out stands in brackets."""
    return _joined(argument) if argument.needed else f"[{_joined(argument)}]"


def _joined(argument: Argument) -> str:
    """An option with its value, which stays on its line."""
    return argument.typed.replace(" ", _JOINED)


def _beside(typed: str, does: str, indent: int = 2) -> str:
    """What is typed, and beside it, or below it where it is long, what it does."""
    left = " " * indent + typed
    said = list(_lines(does, " " * (indent + _LEFT)))
    if len(left) < indent + _LEFT - 1:
        said[0] = left + said[0][len(left) :]
        left = ""
    typed_lines = wrap(left, WIDTH, subsequent_indent=" " * 8, break_on_hyphens=False)
    return "\n".join((*typed_lines, *said)).replace(_JOINED, " ")


def _lines(text: str, indent: str) -> Iterable[str]:
    return wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent)


def _wrapped(text: str) -> str:
    return "\n".join(wrap(text, WIDTH))
