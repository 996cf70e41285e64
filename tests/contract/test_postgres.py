"""What only a server can do: be elsewhere, be newer, lose a schema, be locked by somebody."""

from __future__ import annotations

import threading
from pathlib import Path

import psycopg
import pytest

from durable_nb import PostgresCheckpointer, StoreBusy, StoreUnusable
from durable_nb.stores import pg_process, pg_session
from tests.contract.suite import CALLED, paused, started, statuses
from tests.support.postgres import postgres, server


@pytest.fixture
def store(tmp_path: Path):
    store = postgres(tmp_path)
    yield store
    store.close()


def run_sql(statement: str) -> None:
    with psycopg.connect(server(), autocommit=True) as db:
        db.execute(statement)


def test_an_address_says_where_it_leads_and_never_the_password() -> None:
    away = PostgresCheckpointer("postgresql://ann:secret@127.0.0.1:1/runs")
    assert repr(away) == "PostgresCheckpointer('127.0.0.1/runs', schema='durable_nb')"
    with pytest.raises(StoreUnusable, match=r"127\.0\.0\.1/runs cannot be used") as refused:
        away.runs()
    assert "secret" not in str(refused.value)
    away.close()
    unreadable = PostgresCheckpointer("no address")
    assert "cannot be read" in repr(unreadable)
    with pytest.raises(StoreUnusable):
        unreadable.runs()
    unreadable.close()


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("postgresql://ann@/runs?host=/run/postgresql", "localhost/runs"),
        ("postgresql:///runs", "db.example.com/runs"),
        ("host=10.0.0.7", "10.0.0.7/postgres"),
    ],
    ids=["a socket", "from the environment", "a host"],
)
def test_an_address_shows_the_machine_that_it_leads_to(
    dsn: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGHOST", "db.example.com")
    away = PostgresCheckpointer(dsn)
    assert repr(away) == f"PostgresCheckpointer('{shown}', schema='durable_nb')"
    away.close()


def test_a_schema_that_is_gone_says_so(store: PostgresCheckpointer) -> None:
    lease = started(store)
    run_sql(f"drop schema {store.schema} cascade")
    with pytest.raises(StoreUnusable, match="deleted while in use"):
        store.append(lease, CALLED, at=1)


def test_a_schema_of_a_newer_version_is_left_as_it_is(
    store: PostgresCheckpointer, tmp_path: Path
) -> None:
    paused(store)
    run_sql(f"insert into {store.schema}.migrations values (99)")
    later = postgres(tmp_path)
    with pytest.raises(StoreUnusable, match=r"newer durable_nb \(version 99"):
        later.runs()
    later.close()
    run_sql(f"delete from {store.schema}.migrations where version = 99")
    assert statuses(store) == {"r1": "paused"}


def test_whoever_holds_a_table_for_too_long_is_an_error(
    store: PostgresCheckpointer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused(store)
    monkeypatch.setattr(pg_session, "BUSY_SECONDS", 1)
    waiting = postgres(tmp_path)
    waiting.runs()
    with psycopg.connect(server()) as other:
        other.execute(f"lock table {store.schema}.runs in access exclusive mode")
        with pytest.raises(StoreBusy, match="locked"):
            started(waiting, "r2", 2)
    assert statuses(store) == {"r1": "paused"}
    waiting.close()


def test_a_process_that_drives_says_again_and_again_that_it_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pg_session, "RENEW_SECONDS", 0.01)
    store = postgres(tmp_path)
    started(store)
    run_sql(f"update {store.schema}.processes set seen_at = 'epoch'")
    seen = threading.Event()
    with psycopg.connect(server(), autocommit=True) as db:
        while not seen.wait(0.01):
            rows = db.execute(f"select extract(year from seen_at) from {store.schema}.processes")
            if rows.fetchall()[0][0] > 1970:
                seen.set()
    store.close()


def test_where_the_system_does_not_tell_nobody_is_proved_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive = pg_process.Process.this()
    gone = pg_process.Process(alive.host, alive.boot, alive.namespace, 2**22 + 1, "1")
    assert not alive.is_gone()
    assert gone.is_gone()
    monkeypatch.setattr(pg_process, "_PROC", tmp_path)
    assert pg_process.Process.this().boot == ""
    assert not gone.is_gone()
