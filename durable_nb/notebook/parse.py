"""What is typed after `%durable` and `%%durable`, as a namespace. A mistake is an `InvalidInput`.

Never IPython's `UsageError`, which test runners for notebooks take for success.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from keyword import iskeyword
from typing import Any, NoReturn

from durable_nb.core.near import did_you_mean
from durable_nb.model.errors import InvalidInput

POLICIES = ("continue", "stop", "wait")
IN_A_SHELL = ("answer", "cancel", "doctor", "export", "fork", "prune", "run", "sessions", "tour")


class HelpAsked(Exception):
    """`--help`: the text to print. No error, so not one of the tree."""


class _Help(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        raise HelpAsked(parser.format_help())


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        super().__init__(add_help=False, allow_abbrev=False, **options)
        self.add_argument("-h", "--help", action=_Help, nargs=0, help="print this")

    def error(self, message: str) -> NoReturn:
        raise InvalidInput(f"{self.prog}: {message}; see {self.prog} --help")


def run_line(line: str) -> argparse.Namespace:
    """`%%durable AGENT …`"""
    parsed = _run_parser().parse_args(words(line))
    _check_id(parsed.id)
    waits = parsed.on_pause == "wait"
    if parsed.timeout is not None and parsed.on_pause is not None and not waits:
        raise InvalidInput("--timeout belongs to --on-pause wait; drop it, or wait")
    return parsed


def _check_id(execution_id: str | None) -> None:
    """IPython has filled each `{hole}` that it could by now."""
    if execution_id is not None and (hole := re.search(r"\{[^{}]*\}", execution_id)):
        raise InvalidInput(
            f"--id {execution_id}: nothing here fills {hole[0]}; define it first, or leave it out"
        )


def command_line(line: str) -> argparse.Namespace:
    """`%durable …`: `parsed.command` says which."""
    typed = words(line) or ["runs"]
    if typed[0] == "help":
        typed = [*typed[1:2], "--help"]
    parser, commands = _command_parser()
    _check_command(typed, commands)
    parsed, extra = parser.parse_known_args(typed)
    if extra:
        commands[parsed.command].error(f"unrecognized arguments: {' '.join(extra)}")
    if "edits" in parsed:
        parsed.edits = _edits(parsed.edits)
    return parsed


def sql_line(line: str) -> argparse.Namespace:
    """`%%durable_sql …`"""
    parsed = _sql_parser().parse_args(words(line))
    parsed.frames = [name for each in parsed.frames for name in each.split(",") if name]
    return parsed


def words(line: str) -> list[str]:
    """The words of a line. Quotes group; a backslash is a character like any other."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.escape, lexer.commenters = True, "", ""
    try:
        return list(lexer)
    except ValueError as error:
        raise InvalidInput(f"{line.strip()!r} opens a quote that it does not close") from error


def _run_parser() -> _Parser:
    parser = _Parser(prog="%%durable", description="Run an agent; the cell's body is the prompt.")
    parser.add_argument("agent", help="a variable that holds an agent, or an agent's name")
    parser.add_argument("--id", help="the run's execution_id; else one made of agent and prompt")
    parser.add_argument("--new", action="store_true", help="a run of its own each time: ID-2, …")
    parser.add_argument("-o", dest="name", type=_variable, help="a variable for the run's handle")
    parser.add_argument("--on-pause", choices=POLICIES, help="where a person has to decide")
    parser.add_argument("--timeout", type=_seconds, help="seconds that --on-pause wait waits")
    parser.add_argument("--quiet", action="store_true", help="no card, unless you have to decide")
    return parser


def _check_command(typed: Sequence[str], commands: Mapping[str, _Parser]) -> None:
    """Refuse what is no command here, with the one that was meant, or with where it is one."""
    name, *rest = typed
    if name.startswith("-") or name in commands:
        return
    if name in IN_A_SHELL:
        raise InvalidInput(
            f"%durable has no {name}; in a shell: {shlex.join(['durable-nb', name, *rest])} "
            "(with --store PATH if you chose another store here)"
        )
    raise InvalidInput(
        f"%durable has no command {name!r}{did_you_mean(name, commands)}; see %durable help"
    )


def _command_parser() -> tuple[_Parser, Mapping[str, _Parser]]:
    """The parser of `%durable`, and those of its commands."""
    parser = _Parser(prog="%durable", description="Look at runs, decide, go on.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    commands.add_parser("runs", help="all runs as a DataFrame; the same as %%durable alone")
    commands.add_parser("pending", help="what waits for you, with buttons")
    commands.add_parser("agents", help="the agents that are defined here")
    use = commands.add_parser("use", help="choose the store")
    use.add_argument("target", metavar="PATH", help="a path, or a variable with a store or agent")
    _of_a_run(commands.add_parser("show", help="a run's timeline"))
    resume = commands.add_parser("resume", help="go on with a run that died or failed")
    _of_a_run(resume, driven=True)
    resume.add_argument("--take-over", action="store_true", help="its owner is known to be stopped")
    for name in ("approve", "reject"):
        _decision(commands.add_parser(name, help=f"{name} what a run waits for"), name)
    return parser, commands.choices


def _of_a_run(parser: argparse.ArgumentParser, *, driven: bool = False) -> None:
    parser.add_argument("id", metavar="ID", help="the run's execution_id")
    if driven:
        parser.add_argument(
            "--agent", metavar="VARIABLE", help="its agent, if several have its name"
        )


def _decision(parser: argparse.ArgumentParser, name: str) -> None:
    _of_a_run(parser, driven=True)
    parser.add_argument("--pause", type=int, metavar="N", help="the number that its card shows")
    parser.add_argument("--by", help="who decides; else you")
    parser.add_argument("--note", help="the reason; the model reads it")
    if name == "approve":
        edits = {"action": "append", "default": [], "metavar": "NAME=JSON", "dest": "edits"}
        parser.add_argument("--set", **edits, help="run the tool with another argument")  # type: ignore[arg-type]  # options by name


def _sql_parser() -> _Parser:
    parser = _Parser(prog="%%durable_sql", description="DuckDB over a fresh mirror of the store.")
    parser.add_argument("-o", dest="name", type=_variable, help="a variable for the DataFrame")
    parser.add_argument(
        "--with", dest="frames", action="append", default=[], help="DataFrames to query as well"
    )
    return parser


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise ValueError(text)
    return seconds


_seconds.__name__ = "number of seconds"  # argparse says: invalid number of seconds value: 'x'


def _variable(text: str) -> str:
    if not text.isidentifier() or iskeyword(text):
        raise ValueError(text)
    return text


_variable.__name__ = "variable's name"


def _edits(given: Sequence[str]) -> dict[str, object] | None:
    return dict(map(_edit, given)) or None


def _edit(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    try:
        if not (name.isidentifier() and equals):
            raise ValueError
        return name, json.loads(value)
    except ValueError as error:
        raise InvalidInput(
            f"--set takes NAME=JSON, such as --set amount=90 or --set 'note=\"text\"', not {text!r}"
        ) from error
