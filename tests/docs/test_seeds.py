"""Each sentence that promises or warns, in the documents that this project was made from, is shown.

`seeds.toml` says where. Here its places exist, its sections are all of theirs, and what it calls
not built is not there.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest

import durable_nb
from tests.docs.outputs import NOTEBOOKS

ROOT = NOTEBOOKS.parent
TABLE: dict[str, dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "seeds.toml").read_text(encoding="utf-8")
)
SHOWN = {label: row["shown"] for label, row in TABLE.items() if "shown" in row}
NOT_BUILT = {label: row["not_built"] for label, row in TABLE.items() if "not_built" in row}

# How many rules each boundary has, and the parts of its proof.
BOUNDARIES = {
    1: (4, "abc"),
    2: (5, "abcd"),
    3: (5, "abcd"),
    4: (4, "abcd"),
    5: (5, "abcd"),
    6: (5, "abcd"),
}
OUTLINE = [
    "boundaries intro",
    "boundaries first",
    *(
        place
        for section, (rules, parts) in BOUNDARIES.items()
        for place in (
            f"boundaries {section} opening",
            *(f"boundaries {section}.{rule}" for rule in range(1, rules + 1)),
            *(f"boundaries proof {section} {part}" for part in parts),
        )
    ),
    *(f"boundaries bugs {check}" for check in range(1, 7)),
    *(f"boundaries limits {limit}" for limit in range(1, 9)),
    "boundaries point",
    *(f"sessions {section}" for section in ("opening", "list", "resume", "uses", "case", "why")),
]


@cache
def named_in(path: str) -> set[str]:
    """The tests that a file has, by name."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = {node.name for node in tree.body if isinstance(node, kinds)}
    return {name for name in names if name.startswith(("test_", "Test"))}


@cache
def asserting_cells(path: str) -> set[str]:
    """The ids of a notebook's code cells that assert something, or are followed by one that does."""
    cells = nbformat.read(ROOT / path, as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    asserts = ["assert " in cell.source for cell in code] + [False]
    return {cell.id for at, cell in enumerate(code) if asserts[at] or asserts[at + 1]}


@pytest.mark.parametrize("label", SHOWN)
def test_what_shows_a_sentence_is_a_test_or_a_cell_that_asserts(label: str) -> None:
    for place in SHOWN[label]:
        if place.startswith("notebooks/"):
            path, _, cell = place.partition("#")
            assert cell in asserting_cells(path), place
        else:
            path, _, name = place.partition("::")
            assert name in named_in(path), place


def test_every_section_is_there_and_in_their_order() -> None:
    sections = [section_of(label) for label in TABLE]
    assert sections == sorted(sections, key=OUTLINE.index)
    assert set(OUTLINE) == set(sections)


def section_of(label: str) -> str:
    """The part of the outline that a row belongs to."""
    (section,) = [each for each in OUTLINE if label == each or label.startswith(f"{each} ")]
    return section


def test_each_row_says_one_thing_that_no_other_says() -> None:
    for label, row in TABLE.items():
        assert set(row) <= {"says", "shown", "otherwise", "not_built"}, label
        assert ("shown" in row) != ("not_built" in row), label
        assert row.get("shown", row.get("not_built")), label
    assert Counter(row["says"] for row in TABLE.values()).most_common(1)[0][1] == 1


@pytest.mark.parametrize("label", NOT_BUILT)
def test_what_is_called_not_built_is_not_there(label: str) -> None:
    """Whoever builds it says in the table where it is shown."""
    assert [name for name in NOT_BUILT[label] if hasattr(durable_nb, name)] == []
