"""Decision records are numbered, say what was rejected, and name tests that there are. Changes name
what there is."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.docs.outputs import NOTEBOOKS

RECORDS = sorted((NOTEBOOKS / "decisions").iterdir())
PARTS = ["What.", "Why.", "Rejected.", "Held by"]
CHANGES = (NOTEBOOKS / "changes.md").read_text()


def test_the_records_are_numbered_without_a_gap() -> None:
    assert [path.name[:5] for path in RECORDS] == [f"{n:04}-" for n in range(1, len(RECORDS) + 1)]
    assert all(path.suffix == ".md" for path in RECORDS)


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_a_record_says_what_why_what_was_rejected_and_what_holds_it(record: Path) -> None:
    text = record.read_text()
    assert text.startswith(f"# {int(record.name[:4])} · ")
    assert re.findall(r"^\*\*(.+?)\*\*", text, re.MULTILINE) == PARTS
    held = re.findall(r"`(tests/[^`]+)`", text.partition("**Held by**")[2])
    assert held
    assert [name for name in held if not (NOTEBOOKS.parent / name).exists()] == []


def test_the_changes_are_a_sentence_a_line() -> None:
    lines = [line for line in CHANGES.partition("\n## ")[2].splitlines()[1:] if line]
    assert [line for line in lines if not re.fullmatch(r"- .+\.|### [^.]+", line)] == []


@pytest.mark.parametrize("name", sorted(set(re.findall(r"\bdurable_nb((?:\.\w+)+)", CHANGES))))
def test_a_name_in_the_changes_is_one_that_there_is(name: str) -> None:
    found: object = import_module("durable_nb")
    for part in name[1:].split("."):
        found = getattr(found, part)
