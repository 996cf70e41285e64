"""What reaches a terminal or a pipe: text as written, and nothing that a terminal would act on."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from durable_nb.cli import text
from tests.cli.conftest import COMMAND, SHOP, Said, Shell, environment

ODD = ("--agent", f"{SHOP}:strange")
ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def odd(shell: Shell) -> str:
    """The id of a run whose every text is odd, and which waits."""
    shell("run", f"{SHOP}:strange", "\x1b[2J\x9b[/red]\u202e\x7f", "--id", "r\x1b[1m\n1")
    return "r\x1b[1m\n1"


@pytest.mark.parametrize(
    "words", [("runs",), ("sessions",), ("pending",), ("show",), ("approve",), ("doctor",)]
)
def test_nothing_that_a_terminal_acts_on_is_printed(
    shell: Shell, odd: str, words: tuple[str, ...]
) -> None:
    named = (odd,) if words[0] in ("show", "approve") else ()
    said = shell(*words, *named)
    assert said.out
    assert ACTS.search(said.out + said.err) is None
    as_json = shell(*words, *named, "--json")
    assert as_json.out.isascii()
    assert ACTS.search(as_json.out) is None
    assert as_json.json


def test_text_is_shown_as_it_was_written(shell: Shell, odd: str) -> None:
    said = shell("show", odd).out
    assert "prompt   \\x1b[2J\\x9b[/red]\\u202e\\x7f\n" in said
    assert "really\\x1b]0;owned\\x07?" in said
    assert "agent    strange\\x1b[2J\n" in said


def test_an_answer_and_an_error_are_escaped_too(shell: Shell, odd: str) -> None:
    said = shell("approve", odd, "--pause", 3, "--yes", *ODD)
    assert said.out == "Odd \\ud800\\x00\\x1b[31m.\n"
    refused = shell("approve", odd, "--pause", 3, "--yes", *ODD)
    assert refused.code == 1
    assert ACTS.search(refused.err) is None


def test_values_that_json_lacks_are_printed_as_the_log_keeps_them(shell: Shell, odd: str) -> None:
    (pending,) = shell("pending", "--json").json
    (pairs,) = pending["context"].values()
    kept = {str(key): value for key, value in pairs}
    assert kept["nan"] == {"$float": "7ff8000000000000"}
    assert kept["bytes"] == {"$bytes": "/w=="}
    assert kept["text"] == "\x1b[31m[/red]\x07\x9b2J\u202e"
    assert kept["3"] == {"$tuple": [1, {"$set": [2]}]}
    assert pending["execution_id"] == odd


def test_on_a_terminal_it_is_the_same_without_colours(odd: str, folder: Path) -> None:
    for variables in ({}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}):
        shown = _on_a_terminal(folder, "show", odd, **variables)
        assert "really\\x1b]0;owned\\x07?" in shown
        assert "\x1b" not in shown


def _on_a_terminal(folder: Path, *words: str, **variables: str) -> str:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=folder, env=environment(**variables), stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # Linux says so that the other side is closed
            break
        if not part:
            break
        said += part
    os.close(ours)
    assert process.wait() == 0
    return said.decode()


def test_an_encoding_that_lacks_a_character_gets_an_escape(child: Callable[..., Said]) -> None:
    child("run", f"{SHOP}:greeter", "Grüße 🙂", "--id", "r1")
    said = child("runs", PYTHONIOENCODING="ascii")
    assert said.code == 0
    assert "Gr\\xfc\\xdfe \\U0001f642" in said.out


def test_json_needs_no_encoding(child: Callable[..., Said]) -> None:
    child("run", f"{SHOP}:greeter", "Grüße 🙂", "--id", "r1")
    assert child("runs", "--json", PYTHONIOENCODING="ascii").json[0]["prompt"] == "Grüße 🙂"


@pytest.mark.parametrize("words", [("runs",), ("runs", "--json"), ("show", "r1")])
def test_a_closed_pipe_is_quiet(folder: Path, shell: Shell, words: tuple[str, ...]) -> None:
    shell("run", f"{SHOP}:greeter", "Say hello", "--id", "r1")
    process = subprocess.Popen(
        [*COMMAND, *words],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()  # before it has written anything
    _, err = process.communicate()
    assert (process.returncode, err) == (141, b"")


def test_a_table_keeps_ids_whole_and_cells_on_a_line() -> None:
    long = "r" * 500
    shown = text.table(("run", "said"), [(long, "a\nb\tc"), ("x", "")])
    assert shown.splitlines() == [
        "RUN" + " " * 499 + "SAID",
        f"{long}  a\\nb\\tc",
        "x",
    ]


def test_a_context_that_is_no_dict_is_one_value() -> None:
    assert text.frozen([]) == "[]"
    assert text.frozen({}) == "{}"
    assert text.frozen("a\nb") == '"a\\nb"'
    assert text.frozen({"paid": {"sum": Decimal("1.5")}}) == "paid  {'sum': Decimal('1.5')}"
    assert text.frozen({"n": None, 2: (1,)}) == "n  None\n2  (1,)"
    assert (
        text.frozen({"deep": {"key": "v" * 80}}).splitlines()[1] == f'        "key": "{"v" * 80}"'
    )


def test_json_of_a_delete_character_is_escaped(shell: Shell) -> None:
    shell("run", f"{SHOP}:greeter", "a\x7fb", "--id", "r1")
    said = shell("runs", "--json")
    assert "a\\u007fb" in said.out
    assert json.loads(said.out)[0]["prompt"] == "a\x7fb"
