"""The frames say what the store says, with types that do not depend on what is in it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from durable_nb import (
    Checkpointer,
    InvalidInput,
    MemoryCheckpointer,
    SQLiteCheckpointer,
    UnknownExecution,
    call,
    views,
)
from durable_nb.stores.open import use_store
from tests.views.runs import STATUS, Counting, a_run_of_every_status, bot

TEXT = pd.StringDtype(na_value=float("nan"))
WHOLE = pd.Int64Dtype()
UTC = pd.DatetimeTZDtype("us", "UTC")
COLUMNS = {
    "runs": {
        "execution_id": TEXT,
        "agent": TEXT,
        "status": TEXT,
        "session": TEXT,
        "prompt": TEXT,
        "steps": WHOLE,
        "created_at": UTC,
        "updated_at": UTC,
        "tags": TEXT,
        "workdir": TEXT,
    },
    "steps": {
        "execution_id": TEXT,
        "number": WHOLE,
        "node_id": TEXT,
        "node_index": WHOLE,
        "step_type": TEXT,
        "status": TEXT,
        "agent_path": TEXT,
        "created_at": UTC,
        "tool": TEXT,
        "input_tokens": WHOLE,
        "output_tokens": WHOLE,
        "output": TEXT,
        "error": TEXT,
    },
    "messages": {
        "execution_id": TEXT,
        "number": WHOLE,
        "position": WHOLE,
        "role": TEXT,
        "content": TEXT,
        "tool_calls": TEXT,
        "tool_call_id": TEXT,
    },
    "pending": {
        "execution_id": TEXT,
        "number": WHOLE,
        "agent": TEXT,
        "reason": TEXT,
        "context": TEXT,
        "node_id": TEXT,
        "tool": TEXT,
        "created_at": UTC,
    },
    "usage": {
        "execution_id": TEXT,
        "number": WHOLE,
        "turn": WHOLE,
        "node_id": TEXT,
        "attempt": WHOLE,
        "outcome": TEXT,
        "model": TEXT,
        "input_tokens": WHOLE,
        "output_tokens": WHOLE,
        "cached_tokens": WHOLE,
        "cost": np.dtype("float64"),
        "retries": WHOLE,
        "retried_after": TEXT,
        "trim_before": WHOLE,
        "trim_after": WHOLE,
        "dropped": WHOLE,
        "asked_at": UTC,
        "error": TEXT,
    },
}


def frames_of(store: Checkpointer, execution_id: str) -> dict[str, pd.DataFrame]:
    return {
        "runs": views.runs(store=store),
        "steps": views.steps(execution_id, store=store),
        "messages": views.messages(execution_id, store=store),
        "pending": views.pending(store=store),
        "usage": views.usage(execution_id, store=store),
    }


def test_every_frame_has_its_columns_and_types(store: Checkpointer) -> None:
    a_run_of_every_status(store)
    for name, frame in frames_of(store, "small").items():
        assert dict(frame.dtypes) == COLUMNS[name], name
        assert len(frame), name


@pytest.mark.parametrize("view", COLUMNS)
def test_a_table_has_the_types_of_its_frame_full_or_empty(store: Checkpointer, view: str) -> None:
    assert dict(views.sql(f"from {view}", store=store).dtypes) == COLUMNS[view]
    a_run_of_every_status(store)
    assert dict(views.sql(f"from {view}", store=store).dtypes) == COLUMNS[view]


def test_a_store_without_runs_gives_empty_frames_and_makes_no_file(tmp_path: Path) -> None:
    store = SQLiteCheckpointer(tmp_path / "not" / "yet.sqlite3")
    for name, frame in (("runs", views.runs(store=store)), ("pending", views.pending(store=store))):
        assert (len(frame), dict(frame.dtypes)) == (0, COLUMNS[name])
    assert views.sql("from steps", store=store).empty
    assert list(tmp_path.iterdir()) == []


def test_runs_are_the_stores_own_list_newest_first(store: Checkpointer) -> None:
    a_run_of_every_status(store)
    frame = views.runs(store=store)
    assert dict(zip(frame.execution_id, frame.status, strict=True)) == STATUS
    assert list(frame.execution_id) == [*reversed(STATUS)]
    for shown, listed in zip(frame.itertuples(), store.runs(), strict=True):
        assert (shown.execution_id, shown.agent, shown.status) == (
            *(listed.execution_id, listed.agent, listed.status),
        )
        assert (shown.prompt, shown.steps, shown.session) == (
            *(listed.prompt, listed.steps, listed.session),
        )
        assert (shown.created_at, shown.updated_at) == (listed.created_at, listed.updated_at)
        assert json.loads(shown.tags) == list(listed.tags)


@pytest.mark.parametrize("execution_id", STATUS)
def test_steps_are_the_rows_that_the_store_lists(store: Checkpointer, execution_id: str) -> None:
    a_run_of_every_status(store)
    frame = views.steps(execution_id, store=store)
    rows = store.list(execution_id)
    for column in ("number", "node_id", "node_index", "step_type", "status", "agent_path"):
        assert list(frame[column]) == [getattr(row, column) for row in rows], column
    assert list(frame.created_at) == [row.created_at for row in rows]
    assert set(frame.execution_id) == {execution_id}


def test_the_last_step_says_what_came_of_the_run(store: Checkpointer) -> None:
    a_run_of_every_status(store)
    done, broken = (views.steps(id_, store=store).iloc[-1] for id_ in ("approved", "broken"))
    assert (done.output, done.input_tokens, done.output_tokens) == ("Done.", 7, 3)
    assert "503" in broken.error
    assert pd.isna(done.error)
    assert pd.isna(broken.output)


@pytest.mark.parametrize("execution_id", STATUS)
def test_messages_are_the_transcript(store: Checkpointer, execution_id: str) -> None:
    a_run_of_every_status(store)
    frame = views.messages(execution_id, store=store)
    said = store.get_last(execution_id).state_snapshot["messages"]
    assert list(frame.position) == list(range(len(said)))
    assert list(frame.role) == [message.role for message in said]
    assert list(frame.content) == [message.content for message in said]
    assert list(frame.tool_call_id.fillna("")) == [message.tool_call_id or "" for message in said]
    assert [len(json.loads(calls)) for calls in frame.tool_calls.fillna("[]")] == [
        len(message.tool_calls) for message in said
    ]


def test_pending_are_the_pauses_that_the_store_lists(store: Checkpointer) -> None:
    a_run_of_every_status(store)
    bot(store, call("refund", order="8", amount=99)).run("Refund order 8", execution_id="late")
    frame = views.pending(store=store)
    for shown, listed in zip(frame.itertuples(), store.list_pending_interrupts(), strict=True):
        for column in (
            "execution_id",
            "number",
            "agent",
            "reason",
            "node_id",
            "tool",
            "created_at",
        ):
            assert getattr(shown, column) == getattr(listed, column), column
        assert json.loads(shown.context) == listed.context
    assert list(frame.execution_id) == ["waits", "late"]


def test_a_frame_and_its_table_show_the_same_rows(store: Checkpointer) -> None:
    a_run_of_every_status(store)
    for name, frame in frames_of(store, "approved").items():
        one = "" if name in ("runs", "pending") else "where execution_id = 'approved'"
        pd.testing.assert_frame_equal(frame, views.sql(f"from {name} {one}", store=store))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("a\0b", "a\0b"),
        ("half \ud83d", "half \ufffd"),
        ('{"$text": "YQ=="}', '{"$text": "YQ=="}'),
        ("naïve 名前 \U0001f600", "naïve 名前 \U0001f600"),
    ],
)
def test_odd_text_shows_as_text(store: Checkpointer, said: str, shown: str) -> None:
    bot(store, said).run(f"Say {said}", execution_id="odd")
    assert list(views.messages("odd", store=store).content) == [f"Say {shown}", shown]
    assert list(views.sql("select output from steps where output is not null", store=store).output)
    assert views.steps("odd", store=store).output.iloc[-1] == shown


@pytest.mark.parametrize("execution_id", ["nope", "", None, 3, "\ud800", "it's"])
@pytest.mark.parametrize("view", [views.steps, views.messages])
def test_an_unknown_run_is_an_error_that_names_it(
    store: Checkpointer, view: object, execution_id: object
) -> None:
    a_run_of_every_status(store)
    with pytest.raises(UnknownExecution) as refused:
        view(execution_id, store=store)
    assert repr(execution_id) in str(refused.value)


def test_one_run_is_read_alone_and_the_inbox_without_what_does_not_wait() -> None:
    store = MemoryCheckpointer()
    a_run_of_every_status(store)
    counting = Counting(store)
    views.steps("small", store=counting)
    assert counting.entries == 4
    views.pending(store=counting)
    assert counting.entries == 5
    views.runs(store=counting)
    assert counting.entries == 5


def test_what_has_been_taken_is_not_taken_again(store: Checkpointer) -> None:
    a_run_of_every_status(store)
    counting = Counting(store)
    taken = len(views.sql("from steps", store=counting))
    views.sql("from runs", store=counting)
    views.runs(store=counting)
    assert (counting.entries, counting.lists) == (taken, 1)
    bot(store, "Hello.").run("Hello", execution_id="new")
    assert len(views.sql("from steps", store=counting)) == counting.entries == taken + 2
    assert counting.lists == 2


def test_runs_that_are_deleted_are_gone_from_every_table(store: Checkpointer) -> None:
    a_run_of_every_status(store)
    assert len(views.sql("from steps where execution_id = 'small'", store=store)) == 4
    store.delete_execution("small")
    assert len(views.runs(store=store)) == len(STATUS) - 1
    bot(store, "Hello.").run("Hello", execution_id="new")
    found = views.sql("select execution_id, count(*) as n from steps group by all", store=store)
    listed = {run.execution_id: run.steps for run in store.runs()}
    assert dict(zip(found.execution_id, found.n, strict=True)) == listed


def test_what_changes_in_a_frame_does_not_change_the_next(store: Checkpointer) -> None:
    a_run_of_every_status(store)
    frame = views.runs(store=store)
    frame["status"] = "?"
    assert dict(zip(frame.execution_id, views.runs(store=store).status, strict=True)) == STATUS


def test_without_a_store_the_default_one_is_shown(store: Checkpointer) -> None:
    a_run_of_every_status(store)
    use_store(store)
    try:
        assert len(views.runs()) == len(STATUS)
        assert len(views.pending()) == 1
        assert len(views.steps("small")) == len(views.messages("small")) == 4
        assert len(views.sql("from runs")) == len(STATUS)
    finally:
        use_store(None)


@pytest.mark.parametrize("what", ["runs.sqlite3", Path("runs.sqlite3"), 3])
def test_what_is_no_store_is_an_error_that_names_one(what: object) -> None:
    with pytest.raises(InvalidInput, match="SQLiteCheckpointer"):
        views.runs(store=what)
