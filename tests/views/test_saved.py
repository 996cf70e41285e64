"""Saved queries answer by name, take values, and are a user's own as well as ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from durable_nb import Checkpointer, InvalidInput, MemoryCheckpointer, SQLiteCheckpointer, views
from tests.views.runs import a_run_of_every_status

OURS = {
    "calls_in_doubt",
    "cost_by_day",
    "longest_waits",
    "slowest_tools",
    "wasted_model_calls",
    "who_decided",
}
OWN = '-- Runs of a status.\n-- $status = "completed"\nselect execution_id from runs where status = $status order by all'


@pytest.fixture(scope="module")
def full() -> MemoryCheckpointer:
    store = MemoryCheckpointer()
    a_run_of_every_status(store)
    return store


def test_those_that_come_along_are_listed_with_what_they_answer(full: Checkpointer) -> None:
    frame = views.queries(store=full).set_index("name")
    assert set(frame.index) == OURS
    assert frame.about.str.endswith(".").all()
    assert (frame["values"]["slowest_tools"], frame["values"]["who_decided"]) == ("limit", "")
    assert all(Path(path).is_file() for path in frame.path)


@pytest.mark.parametrize("name", sorted(OURS))
def test_each_of_them_answers_on_every_store_full_or_empty(store: Checkpointer, name: str) -> None:
    empty = views.query(name, store=store)
    a_run_of_every_status(store)
    frame = views.query(name, store=store)
    assert list(frame.columns) == list(empty.columns)
    assert len(frame), name


def test_they_say_what_is_so(full: Checkpointer) -> None:
    assert list(views.query("calls_in_doubt", store=full).execution_id) == ["dead"]
    assert list(views.query("longest_waits", store=full).execution_id) == ["waits"]
    (decided,) = views.query("who_decided", store=full).itertuples()
    assert (decided.by, decided.decisions, decided.approved, decided.rejected) == ("ann", 2, 1, 1)
    (tool,) = views.query("slowest_tools", store=full).itertuples()
    assert (tool.tool, tool.calls) == ("refund", 3)
    (wasted,) = views.query("wasted_model_calls", store=full).itertuples()
    assert (wasted.execution_id, wasted.failed) == ("broken", 1)


def test_a_value_replaces_the_one_that_is_used_if_nobody_says(
    full: Checkpointer, tmp_path: Path
) -> None:
    (tmp_path / "by_status.sql").write_text(OWN)
    given = {"folder": tmp_path, "store": full}
    assert len(views.query("by_status", **given)) == 3
    assert list(views.query("by_status", status="paused", **given).execution_id) == ["waits"]
    assert list(views.query("by_status", status="' or true --", **given).execution_id) == []
    assert len(views.query(str(tmp_path / "by_status.sql"), store=full)) == 3


def test_a_users_own_stand_beside_the_store_and_hide_ours(tmp_path: Path) -> None:
    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
    a_run_of_every_status(store)
    folder = tmp_path / "queries"
    folder.mkdir()
    (folder / "slowest_tools.sql").write_text("-- Mine.\nselect 1 as mine")
    (folder / "wrong.sql").write_text("selec 1")
    listed = views.queries(store=store).set_index("name")
    assert list(listed.index)[:2] == ["slowest_tools", "wrong"]
    assert listed.about["slowest_tools"] == "Mine."
    assert listed.about["wrong"].startswith("it is wrong: ")
    assert list(views.query("slowest_tools", store=store).mine) == [1]


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("slowest_tool", {}, "did you mean slowest_tools"),
        ("slowest_tools", {"limits": 3}, "takes no value 'limits'; it takes limit"),
        ("who_decided", {"x": 1}, "it takes none"),
        ("nowhere/at_all.sql", {}, "cannot be read"),
        ("slowest_tools", {"limit": "many"}, "many"),
        ("", {}, "has a name"),
        (3, {}, "has a name"),
    ],
)
def test_what_cannot_be_asked_is_one_line_that_says_why(
    full: Checkpointer, name: str, values: dict[str, object], said: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        views.query(name, store=full, **values)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_value_without_a_default_has_to_be_given(full: Checkpointer, tmp_path: Path) -> None:
    path = tmp_path / "one.sql"
    path.write_text("select execution_id from runs where agent = $agent and steps > $least")
    with pytest.raises(InvalidInput, match=r"needs a value for 'least': least=\.\.\."):
        views.query(str(path), store=full, agent="refund-bot")
    assert len(views.query(str(path), store=full, agent="refund-bot", least=0)) == 6


def test_a_default_that_is_not_json_says_so(full: Checkpointer, tmp_path: Path) -> None:
    path = tmp_path / "one.sql"
    path.write_text("-- $agent = bot\nselect $agent")
    with pytest.raises(InvalidInput, match="'bot' is not JSON"):
        views.query(str(path), store=full)


def test_the_stores_own_file_is_never_read_as_a_query(tmp_path: Path) -> None:
    store = SQLiteCheckpointer(tmp_path / "runs.sql")
    a_run_of_every_status(store)
    (tmp_path / "link.sql").symlink_to(store.path)
    for name in ("runs.sql", "link.sql"):
        with pytest.raises(InvalidInput, match="the store itself"):
            views.query(str(tmp_path / name), store=store)
