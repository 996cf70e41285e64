"""The command over PostgreSQL: the same words, the same codes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from durable_nb.stores.open import open_store
from tests.cli.conftest import SHOP, Said, Shell
from tests.cli.test_driving import wait_for
from tests.support.postgres import server

BOT = ("--agent", f"{SHOP}:bot")


@pytest.fixture
def dsn() -> Iterator[str]:
    """The address of a database of the test's own."""
    name = f"cli_{uuid4().hex}"
    with psycopg.connect(server(), autocommit=True) as db:
        db.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        yield urlsplit(server())._replace(path=f"/{name}").geturl()
        db.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
def pg(shell: Shell, dsn: str) -> Iterator[Callable[..., Said]]:
    """Runs the command over that database."""

    def run(*words: object) -> Said:
        return shell(*words, "--store", dsn)

    yield run
    open_store(dsn).close()


def test_a_refund_waits_is_approved_and_is_paid_once(pg: Callable[..., Said], folder: Path) -> None:
    assert pg("run", f"{SHOP}:bot", "Refund order 1042", "--id", "r1").code == 0
    assert pg("approve", "r1", "--pause", 3).code == 2
    assert pg("approve", "r1", "--pause", 3, "--yes", *BOT, "--set", "amount=5").code == 0
    again = pg("approve", "r1", "--pause", 3, "--yes", *BOT)
    assert again.code == 1
    assert again.err.splitlines()[-1].startswith("AlreadyResumed: ")
    assert (folder / "effects").read_text() == "1042 5\n"
    (run,) = pg("runs", "--json").json
    assert (run["status"], run["steps"]) == ("completed", 6)
    assert pg("prune", "--older-than", "0s", "--json").json["removed"] == ["r1"]
    assert not (folder / ".durable").exists()


def test_a_killed_run_is_examined_and_resumed(
    pg: Callable[..., Said],
    beginning: Callable[..., subprocess.Popen[str]],
    dsn: str,
    folder: Path,
) -> None:
    owner = beginning("run", f"{SHOP}:slow", "Bring 1042", "--id", "r1", "--store", dsn)
    wait_for(folder / "effects")
    (driven,) = pg("doctor", "--json").json["driven"]
    assert driven["owner"].startswith(f"process {owner.pid} on ")
    assert (
        pg("resume", "r1", "--agent", f"{SHOP}:slow").err.splitlines()[-1].startswith("RunIsLive")
    )
    owner.kill()
    owner.wait()
    (folder / "go").touch()
    health = pg("doctor", "--json").json
    assert [each["call"] for each in health["in_doubt"]] == ["tool crawl"]
    assert (health["driven"], health["wal_bytes"]) == ([], None)
    assert pg("resume", "r1", "--agent", f"{SHOP}:slow").out == "Arrived.\n"
    assert "all is well" in pg("doctor").out


def test_damage_is_named_by_run_and_entry(pg: Callable[..., Said], dsn: str) -> None:
    pg("run", f"{SHOP}:greeter", "Say hello", "--id", "r1")
    with psycopg.connect(dsn) as db:
        db.execute("update durable_nb.entries set body = replace(body, 'hello', 'hallo')")
    said = pg("doctor")
    assert said.code == 1
    assert "entry 1 of run 'r1' is not what was written" in said.out
    assert "entry 2 of run 'r1' is not what was written" in said.out
    assert said.err.startswith("StoreCorrupt: ")


def test_a_doctor_makes_nothing_in_a_database(pg: Callable[..., Said], dsn: str) -> None:
    said = pg("doctor")
    assert (said.code, said.out) == (1, "")
    assert "schema durable_nb, does not exist" in said.err
    with psycopg.connect(dsn) as db:
        assert db.execute("select to_regnamespace('durable_nb')").fetchone() == (None,)


def test_a_database_is_not_copied_to_a_file(pg: Callable[..., Said], folder: Path) -> None:
    said = pg("export", "copy.db")
    assert said.code == 1
    assert said.err.startswith("InvalidInput: PostgresCheckpointer(")
    assert "pg_dump" in said.err
    assert not (folder / "copy.db").exists()


def test_a_server_that_is_not_there_is_one_line(shell: Shell) -> None:
    for command in ("runs", "doctor"):
        said = shell(command, "--store", "postgresql://me:secret@127.0.0.1:1/nothing")
        assert (said.code, said.out) == (1, "")
        assert said.err.startswith("StoreUnusable: the store 127.0.0.1/nothing cannot be used")
        assert said.err.count("\n") == 1
        assert "secret" not in said.err
