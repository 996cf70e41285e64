"""A query sees the store as it is now and the frames it is given, and can do no harm."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

from durable_nb import Checkpointer, InvalidInput, MemoryCheckpointer, views
from tests.views.runs import STATUS, a_run_of_every_status, bot

TABLES = ("runs", "steps", "messages", "pending")


@pytest.fixture(scope="module")
def full() -> MemoryCheckpointer:
    store = MemoryCheckpointer()
    a_run_of_every_status(store)
    return store


def test_several_statements_give_the_answer_of_the_last(full: Checkpointer) -> None:
    frame = views.sql(
        """
        set variable wanted = 'completed';
        create table done as from runs where status = getvariable('wanted');
        select count(*) as n from done
        """,
        store=full,
    )
    assert list(frame.n) == [3]


@pytest.mark.parametrize(
    "query", ["set variable x = 1", "create table mine (a int)", "drop view steps", "use main"]
)
def test_a_statement_without_an_answer_gives_an_empty_frame(full: Checkpointer, query: str) -> None:
    assert views.sql(query, store=full).shape == (0, 0)


def test_nothing_that_a_query_does_outlasts_it(full: Checkpointer) -> None:
    before = {table: views.sql(f"from {table} order by all", store=full) for table in TABLES}
    for harm in (
        "drop view steps",
        "drop table _entries cascade",
        "delete from _entries",
        "update _runs set status = 'lost'",
        "insert into _entries from _entries",
        "create table kept (a int); set variable kept = 1",
    ):
        views.sql(harm, store=full)
    for table, frame in before.items():
        after = views.sql(f"from {table} order by all", store=full)
        pd.testing.assert_frame_equal(after, frame)
    with pytest.raises(InvalidInput, match="kept"):
        views.sql("from kept", store=full)
    assert views.sql("select getvariable('kept') as kept", store=full).kept.isna().all()


@pytest.mark.parametrize(
    "query",
    [
        "from 'rows.csv'",
        "from read_text('/etc/hostname')",
        "from glob('/*')",
        "copy runs to 'stolen.csv'",
        "attach 'other.db' as other",
        "export database 'everything'",
        "install sqlite",
        "load sqlite",
        "set enable_external_access = true",
        "set lock_configuration = false",
        "reset enable_external_access",
    ],
)
def test_a_query_cannot_leave_the_mirror(
    full: Checkpointer, query: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    with pytest.raises(InvalidInput) as refused:
        views.sql(query, store=full)
    assert "\n" not in str(refused.value)
    assert os.path.expanduser("~/.duckdb") not in str(refused.value)
    assert os.listdir() == []


def test_frames_are_tables_by_their_names(full: Checkpointer) -> None:
    owners = pd.DataFrame({"execution_id": ["waits", "small"], "owner": ["ann", None]})
    frame = views.sql(
        'select owner from "my owners" join pending using (execution_id)',
        store=full,
        frames={"my owners": owners},
    )
    assert list(frame.owner) == ["ann"]
    with pytest.raises(InvalidInput, match="my owners"):
        views.sql('from "my owners"', store=full)


def test_a_frame_that_was_not_named_is_an_error_that_names_the_option(full: Checkpointer) -> None:
    owners = pd.DataFrame({"execution_id": ["waits"]})
    with pytest.raises(InvalidInput, match=r"no table 'owners'.*--with owners"):
        views.sql("from owners", store=full)
    assert len(views.sql("from owners", store=full, frames={"owners": owners})) == 1


@pytest.mark.parametrize(
    ("frames", "named"),
    [({"n": 3}, "'n' is a int"), ({"s": pd.Series([1])}, "Series"), ({3: pd.DataFrame()}, "3")],
)
def test_what_is_no_frame_is_an_error(full: Checkpointer, frames: object, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        views.sql("from runs", store=full, frames=frames)


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("selec 1", 'near "selec" (line 1: selec 1)'),
        ("from runs\nwhere nope = 1", 'column "nope" not found'),
        ("select 'a'::int", "'a'"),
        ("select f(1)", "name f does not exist"),
        ("from runs where agent = ?", "parameters"),
        ("delete from runs", "the tables are mirrors of the store"),
        ("update steps set node_id = 'x'", "%durable cancel ID"),
        ("insert into runs values (1)", "%durable prune"),
        ("begin; from runs; commit", "BEGIN"),
        ("", "this one is ''"),
        ("-- nothing yet", "nothing yet"),
        (None, "None"),
        ("select '\ud800'", "SQL"),
    ],
)
def test_a_query_that_is_wrong_is_one_line_that_says_what(
    full: Checkpointer, query: object, named: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        views.sql(query, store=full)
    assert named in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("select 'a:2' as x", "a:2"),
        ("select $$it's $5000, {{x}}$$ as x", "it's $5000, {{x}}"),
        ("select [10, 20, 30][2:2][1] as x", 20),
        ("select '{\"a\": {\"b\": 1}}'::json ->> '$.a.b' as x", "1"),
        ("select 'a\0b' as x", "a\0b"),
        ("select sum(steps) as x from runs", 23),
        ("select 2::hugeint ** 70 as x", 2.0**70),
        ("select count(*) as x from (pivot steps on step_type using count(*) group by status)", 3),
    ],
)
def test_text_and_numbers_come_through_as_they_are(
    full: Checkpointer, query: str, value: object
) -> None:
    assert list(views.sql(query, store=full).x) == [value]


def test_a_pivot_gives_its_table(full: Checkpointer) -> None:
    frame = views.sql("pivot runs on status using count(*) group by agent", store=full)
    assert (frame.completed[0], frame.paused[0]) == (3, 1)


def test_integers_with_gaps_stay_integers(full: Checkpointer) -> None:
    frame = views.sql("from (values (1::utinyint, null::int), (null, 2)) as t(a, b)", store=full)
    assert list(map(str, frame.dtypes)) == ["Int64", "Int64"]


def test_datetimes_are_utc_wherever_the_reader_is(
    full: Checkpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    frame = views.sql(
        "select max(created_at) as t, max(created_at)::text as s from runs", store=full
    )
    assert str(frame.t.dtype) == "datetime64[us, UTC]"
    assert frame.s[0].endswith("+00")


def test_an_interrupt_stops_a_query_and_is_an_interrupt(full: Checkpointer) -> None:
    endless = "select sum(a.range * b.range) from range(1000000) a, range(1000000) b"
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        views.sql(endless, store=full)
    assert len(views.sql("from runs", store=full)) == len(STATUS)


def test_threads_ask_at_once_while_a_run_goes_on(store: Checkpointer) -> None:
    def ask(n: int) -> int:
        bot(store, "Hello.").run("Hello", execution_id=f"run-{n}")
        frame = views.sql("select count(*) as n from steps", store=store)
        assert len(views.runs(store=store)) > 0
        return int(frame.n[0])

    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(ask, range(24)))
    assert max(seen) == 48
    assert len(views.runs(store=store)) == 24


def test_what_one_thread_has_seen_does_not_hide_news_from_another(store: Checkpointer) -> None:
    with ThreadPoolExecutor(1) as other:
        for n in (1, 3, 5):
            bot(store, "Hello.").run("Hello", execution_id=f"run-{n}")
            assert len(views.runs(store=store)) == n
            bot(store, "Hello.").run("Hello", execution_id=f"run-{n + 1}")
            assert len(other.submit(views.runs, store=store).result()) == n + 1
            assert len(views.runs(store=store)) == n + 1


def test_a_run_made_anew_under_the_same_id_is_seen(store: Checkpointer) -> None:
    bot(store, "first").run("one", execution_id="r1")
    query = "select content from messages where role = 'assistant'"
    assert list(views.sql(query, store=store).content) == ["first"]
    store.delete_execution("r1")
    bot(store, "second").run("two", execution_id="r1")
    assert list(views.sql(query, store=store).content) == ["second"]
