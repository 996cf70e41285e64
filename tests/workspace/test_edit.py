"""`edit` is applied once, whatever happened around it, and what it reports is true (CASES W1)."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from durable_nb import lab
from durable_nb.workspace import Workspace
from tests.support.agents import told
from tests.workspace import site
from tests.workspace.plans import PLANS

BEFORE, AFTER = "one, two\n", "one one, two\n"  # "one" still stands in what the edit leaves


def crashed(folder: Path, when: lab.When) -> Path:
    """The file of a run whose process was really killed around its edit."""
    directory = folder / "site"
    directory.mkdir()
    file = directory / "a.txt"
    file.write_text(BEFORE)
    agent = site.bot(site.store_in(folder), PLANS["edit"], *Workspace(directory).tools())
    crash = lab.crash(agent, "Go", at="turn:0/tool:edit", when=when, execution_id="r")
    assert crash.signal == signal.SIGKILL
    return file


def resumed(folder: Path) -> list[str]:
    tools = Workspace(folder / "site").tools()
    result = site.bot(site.store_in(folder), PLANS["edit"], *tools).resume("r")
    assert result.status == "completed"
    return told(result)


def test_an_edit_whose_process_died_after_it_changed_the_file_is_not_applied_twice(
    tmp_path: Path,
) -> None:
    file = crashed(tmp_path, "after")
    assert file.read_text() == AFTER
    assert resumed(tmp_path) == [
        "a.txt: replaced the text at line 1 "
        "(in an earlier pass of this call; it was not done a second time)"
    ]
    assert file.read_text() == AFTER


@pytest.mark.parametrize("when", ["before", "during"])
def test_an_edit_whose_process_died_before_it_changed_the_file_is_applied(
    tmp_path: Path, when: lab.When
) -> None:
    file = crashed(tmp_path, when)
    assert file.read_text() == BEFORE
    assert resumed(tmp_path) == ["a.txt: replaced the text at line 1"]
    assert file.read_text() == AFTER


def test_an_edit_leaves_a_file_that_someone_else_changed_after_the_death(tmp_path: Path) -> None:
    file = crashed(tmp_path, "after")
    file.write_text("one, by hand\n")
    (text,) = resumed(tmp_path)
    assert text.startswith("Error: ValueError: 'a.txt' was changed by someone else")
    assert file.read_text() == "one, by hand\n"


def test_the_same_edit_twice_in_a_run_is_two_edits(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "a.txt").write_text("x")
    script = [PLANS["edit"][0], PLANS["edit"][0], "Done."]
    (tmp_path / "site" / "a.txt").write_text("one")
    result = site.start(site.agent(tmp_path, script), tmp_path)
    assert told(result)[0] == "a.txt: replaced the text at line 1"
    assert told(result)[1].startswith("Error: ValueError: old stands in 'a.txt' 2 times")


@pytest.mark.parametrize(
    ("data", "old", "new", "said"),
    [
        (b"one", "two", "three", "old does not stand in 'a.txt' exactly as given. Read"),
        (b"three", "two", "three", "new does: it may have been edited before"),
        (b"two two", "two", "three", "old stands in 'a.txt' 2 times"),
        (b"two", "", "three", "old is the text to replace"),
        (b"two", "two", "two", "old is the text to replace"),
        (b"t\0wo", "wo", "three", "'a.txt' is not text: a binary file of 4 bytes"),
        (b"caf\xe9", "caf", "\u0416", "has no form in latin-1"),
        (b"two", "two", "\ud800", "has no form in utf-8"),
    ],
)
def test_an_edit_that_cannot_be_exact_says_why_and_changes_nothing(
    tmp_path: Path, data: bytes, old: str, new: str, said: str
) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    with pytest.raises(ValueError, match=re.escape(said)):
        Workspace(tmp_path).edit("a.txt", old, new)
    assert (tmp_path / "a.txt").read_bytes() == data


def test_an_edit_keeps_encoding_line_ends_and_mode(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"caf\xe9\r\nbar\r\n")
    file.chmod(0o750)
    Workspace(tmp_path).edit("a.txt", "bar", "thé")
    assert file.read_bytes() == b"caf\xe9\r\nth\xe9\r\n"
    assert file.stat().st_mode & 0o777 == 0o750
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
