"""The glossary's words are those of the code: what it names is there, and no word is missing."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import get_args

import pytest

from durable_nb import SQLiteCheckpointer, views
from durable_nb.core import compare, nodes
from durable_nb.core.calls import CallOutcome
from durable_nb.lab import points, verdicts
from durable_nb.model import entries
from durable_nb.runtime.idempotent import InDoubt
from durable_nb.runtime.tools import OnCrash
from durable_nb.views.mirror import VIEWS
from tests.docs.outputs import NOTEBOOKS

CHECKOUT = NOTEBOOKS.parent
PAGE = (NOTEBOOKS / "glossary.md").read_text()
LINK = re.compile(r"\[`([\w.]+)`\]\(([^)]+)\)")
CODE = set(re.findall(r"`([^`\n]+)`", PAGE))
WORDS = re.findall(r"^- \*\*(.+?)\*\*: .+$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("name", "place"), sorted(set(LINK.findall(PAGE))))
def test_a_name_is_where_the_glossary_says_it_is(name: str, place: str) -> None:
    file = (NOTEBOOKS / place).resolve()
    if file.suffix == ".sql":
        assert file.stem == name or re.search(rf"\b{name}\b", file.read_text())
        return
    found: object = import_module(".".join(file.relative_to(CHECKOUT).with_suffix("").parts))
    for part in name.split("."):
        found = member(found, part)


def member(of: object, name: str) -> object:
    """What a module or a class has by that name; a field of a dataclass may be a name alone."""
    if is_dataclass(of) and name in {field.name for field in fields(of)}:
        return name
    return getattr(of, name)


def test_every_word_is_explained_once_in_a_sentence_that_ends() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("- ")]
    assert len(WORDS) == len(lines) == len(set(WORDS))
    assert [line for line in lines if "." not in LINK.sub("", line)] == []


KINDS = get_args(entries.Entry)
OF_THE_CODE = {
    "kinds of entry": [kind.__name__ for kind in KINDS],
    "statuses of a run": re.findall(r"`(\w+)`", getdoc(nodes.status_of) or ""),
    "ends of a run": get_args(entries.Ending),
    "what a pause asks": get_args(entries.Asks),
    "after a rejection": get_args(entries.OnReject),
    "who decided": get_args(entries.Source),
    "why a step is re-entered": get_args(entries.Why),
    "answers for a call in doubt": get_args(entries.Outcome),
    "after a crash": (*get_args(OnCrash), *get_args(InDoubt)),
    "moments": points.WHENS,
    "ways to end": points.HOWS,
    "verdicts": verdicts.VERDICTS,
    "outcomes of a model call": get_args(CallOutcome),
    "differences": get_args(compare.How),
    **{
        f"what {view.__name__} says": re.findall(r"`([a-z_ ]+)`", getdoc(view) or "")
        for view in (views.tool_calls, views.decisions, views.idempotency, views.usage, views.diff)
    },
}


@pytest.mark.parametrize("words", OF_THE_CODE.values(), ids=OF_THE_CODE)
def test_no_word_that_the_code_chooses_among_is_missing(words: list[str]) -> None:
    assert words
    assert [word for word in words if word not in CODE] == []


def test_the_types_of_steps_and_the_statuses_of_rows_are_there() -> None:
    rows = [
        entries.Turn(0),
        entries.ToolCall(0, "tool", "call", {}),
        entries.Pause(0, "tool", "why", None, "digest"),
        entries.Answer(0, "tool", 3, True, "alice"),
        entries.Reentry(0, None, 1, "alice"),
        entries.End(1, "completed"),
    ]
    assert {type(row) for row in rows} == set(KINDS)
    assert {nodes.step_type(row) for row in rows} | {nodes.status(row) for row in rows} <= CODE


@pytest.mark.parametrize("view", VIEWS)
def test_no_column_of_a_view_is_missing(view: str, tmp_path: Path) -> None:
    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
    columns = views.sql(f"from {view}", store=store).columns
    assert len(columns) > 0
    assert [name for name in (view, *columns) if name not in CODE] == []
