"""`doctor`: damage is named row by row, locks by their owner, and a healthy store is said to be."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from durable_nb.stores.open import DEFAULT
from tests.cli.conftest import SHOP, Said, Shell
from tests.cli.test_driving import wait_for

PAGE = 4096


def damage(folder: Path, statement: str, *values: object) -> None:
    """Write behind the store's back, as a bad disk does. Nobody has the file open by then."""
    with closing(sqlite3.connect(folder / DEFAULT)) as db:
        db.execute("pragma foreign_keys = off")
        assert db.execute(statement, values).rowcount
        db.commit()


def test_a_healthy_store_is_said_to_be_well(shell: Shell) -> None:
    shell("run", f"{SHOP}:greeter", "Say hello", "--id", "r1")
    said = shell("doctor")
    assert (said.code, said.err) == (0, "")
    assert said.out.endswith(
        "all is well: every entry is what was written, nothing is locked, nothing is in doubt\n"
    )
    health = shell("doctor", "--json").json
    assert (health["runs"], health["entries"], health["version"]) == (1, 2, 2)
    assert (health["faults"], health["driven"], health["in_doubt"]) == ([], [], [])


def test_a_doctor_makes_nothing(shell: Shell, folder: Path) -> None:
    said = shell("doctor")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(f"StoreUnusable: the store {folder / DEFAULT} does not exist; ")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("statement", "entry"),
    [
        ("update entries set body = replace(body, 'hello', 'hallo') where number = 2", 2),
        ("update entries set body = 'not json' where number = 2", 2),
        ("update entries set body = cast(x'7bff' as text) where number = 2", 2),
        ("update entries set turn = turn + 1 where number = 1", 1),
        ("update entries set at = at + 1 where number = 1", 1),
        ("update entries set writer = writer + 1 where number = 1", 1),
        ("update entries set kind = 'pause' where number = 2", 2),
    ],
)
def test_damage_is_named_by_run_and_entry(
    shell: Shell, folder: Path, statement: str, entry: int
) -> None:
    shell("run", f"{SHOP}:greeter", "Say hello", "--id", "r1")
    damage(folder, statement)
    shell("run", f"{SHOP}:offline", "Say hello", "--id", "r2")
    said = shell("doctor")
    assert said.code == 1
    (fault,) = [line for line in said.out.splitlines() if line.startswith("fault")]
    assert f"entry {entry} of run 'r1' is not what was written" in fault
    assert "all is well" not in said.out
    assert said.err.startswith("StoreCorrupt: ")
    assert said.err.count("\n") == 1
    assert {run["execution_id"] for run in shell("runs", "--json").json} == {"r1", "r2"}
    as_json = shell("doctor", "--json")
    assert as_json.code == 1
    assert len(as_json.json["faults"]) == 1
    assert as_json.json["runs"] == 2


def test_rows_of_no_run_are_a_fault(shell: Shell, folder: Path) -> None:
    shell("run", f"{SHOP}:greeter", "Say hello", "--id", "r1")
    damage(folder, "delete from runs where id = ?", "r1")
    said = shell("doctor")
    assert said.code == 1
    assert "SQLite: 2 rows belong to no run" in said.out


def test_garbage_in_any_page_of_the_file_is_found(
    child: Callable[..., Said], shell: Shell, folder: Path
) -> None:
    child("run", f"{SHOP}:greeter", "x" * 60_000, "--id", "r1")
    path = folder / DEFAULT
    whole = path.read_bytes()
    reports = []
    for start in range(PAGE, len(whole), PAGE):
        path.write_bytes(whole[:start] + b"\xff" * PAGE + whole[start + PAGE :])
        said = shell("doctor")
        assert said.code == 1
        assert said.err.startswith("StoreCorrupt: ")
        assert "all is well" not in said.out
        reports.append("fault     SQLite: " in said.out)
    assert any(reports)
    path.write_bytes(whole)
    assert shell("doctor").code == 0


def test_a_file_that_is_cut_short_is_found(
    child: Callable[..., Said], shell: Shell, folder: Path
) -> None:
    child("run", f"{SHOP}:greeter", "x" * 60_000, "--id", "r1")
    path = folder / DEFAULT
    os.truncate(path, path.stat().st_size - 3 * PAGE)
    said = shell("doctor")
    assert said.code == 1
    assert said.err.startswith("StoreCorrupt: ")
    assert "all is well" not in said.out


@pytest.mark.parametrize(("name", "why"), [("text", "is not a SQLite file"), ("other", "another")])
def test_what_is_no_store_is_refused_and_left_alone(
    shell: Shell, folder: Path, name: str, why: str
) -> None:
    (folder / "text").write_text("my own notes, which are no database" * 100)
    with closing(sqlite3.connect(folder / "other")) as db:
        db.execute("create table notes (note text)")
    before = (folder / name).read_bytes()
    said = shell("doctor", "--store", name)
    assert (said.code, said.out) == (1, "")
    assert why in said.err
    assert (folder / name).read_bytes() == before


def test_who_drives_a_run_is_named_with_its_process(
    beginning: Callable[..., subprocess.Popen[str]], shell: Shell, folder: Path
) -> None:
    owner = beginning("run", f"{SHOP}:slow", "Bring 1042", "--id", "r1")
    wait_for(folder / "effects")
    (driven,) = shell("doctor", "--json").json["driven"]
    assert (driven["execution_id"], driven["number"]) == ("r1", 2)
    assert driven["owner"].startswith(f"process {owner.pid} (")
    said = shell("doctor").out
    assert f"driven    run r1, at entry 2, by process {owner.pid} (" in said
    assert said.endswith("all is well: every entry is what was written, nothing is in doubt\n")
    owner.kill()
    owner.wait()
    said = shell("doctor").out
    assert "driven" not in said
    assert "in doubt  run r1, entry 2: tool crawl began " in said
    assert said.endswith("all is well: every entry is what was written, nothing is locked\n")


def test_a_call_in_doubt_stays_so_until_it_is_answered(
    child: Callable[..., Said], shell: Shell, folder: Path
) -> None:
    agent = ("--agent", f"{SHOP}:postman")
    child("run", f"{SHOP}:postman", "Write", "--id", "r1")
    assert _in_doubt(shell) == ["tool post"]
    shell("resume", "r1", *agent)
    assert _in_doubt(shell) == ["tool post"]
    shell("answer", "r1", "--pause", 4, "--happened", '"yes"', *agent)
    assert _in_doubt(shell) == []


def _in_doubt(shell: Shell) -> list[str]:
    return [each["call"] for each in shell("doctor", "--json").json["in_doubt"]]


def test_an_idempotent_call_without_a_result_is_in_doubt(
    child: Callable[..., Said], shell: Shell, folder: Path
) -> None:
    (folder / "lost.py").write_text(LOST)
    assert child("run", "lost:bot", "Pay", "--id", "r1").code == -9
    assert _in_doubt(shell) == ["tool pay", "@idempotent lost.charge"]
    assert shell("cancel", "r1").code == 0
    assert _in_doubt(shell) == []


LOST = """
import os, signal
from durable_nb import Agent, ScriptedModel, call, idempotent

@idempotent
def charge() -> str:
    os.kill(os.getpid(), signal.SIGKILL)

def pay() -> str:
    return charge()

bot = Agent("lost", ScriptedModel([call("pay"), "Paid."]), [pay])
"""


def test_the_log_that_is_not_in_the_file_yet_is_measured(
    beginning: Callable[..., subprocess.Popen[str]], child: Callable[..., Said], folder: Path
) -> None:
    owner = beginning("run", f"{SHOP}:slow", "x" * 100_000, "--id", "r1")
    wait_for(folder / "effects")
    assert child("doctor", "--json").json["wal_bytes"] > 100_000
    owner.kill()
