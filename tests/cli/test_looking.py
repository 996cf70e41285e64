"""`runs`, `show`, `sessions`, `pending`: the same facts for people and for programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from durable_nb import Checkpointer
from durable_nb.cli import shapes
from tests.cli.conftest import SHOP, Said, Shell

BOT = ("--agent", f"{SHOP}:bot")
LOOKS = ("runs", "sessions", "pending")
COMMANDS = (
    *("run", "resume", "fork", "approve", "reject", "answer"),
    *("runs", "show", "sessions", "pending", "cancel", "prune", "export", "doctor"),
)


@pytest.mark.parametrize("command", LOOKS)
def test_a_store_that_is_not_there_yet_is_empty_and_stays_away(
    shell: Shell, folder: Path, command: str
) -> None:
    said = shell(command)
    assert (said.code, said.out) == (0, "")
    assert str(folder / ".durable" / "runs.sqlite3") in said.err
    assert shell(command, "--json").json == []
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("command", LOOKS)
@pytest.mark.parametrize(
    ("name", "why"), [("text", "is not a SQLite file"), ("folder", "is a directory")]
)
def test_what_is_no_store_is_refused(
    shell: Shell, folder: Path, command: str, name: str, why: str
) -> None:
    (folder / "text").write_text("my own notes, which are no database" * 100)
    (folder / "folder").mkdir()
    said = shell(command, "--store", name)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(f"StoreUnusable: the store {folder / name} {why}")
    assert said.err.count("\n") == 1


def test_an_empty_name_of_a_store_is_refused(shell: Shell) -> None:
    assert shell("runs", "--store", "").err.startswith("InvalidInput: a store is named by")


def test_the_environment_names_the_store(
    shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DURABLE_NB_STORE", str(folder / "env.db"))
    assert str(folder / "env.db") in shell("runs").err


def test_runs_are_listed_newest_first(shell: Shell, paused: str) -> None:
    shell("run", f"{SHOP}:greeter", "Say hello " * 20, "--id", "r2")
    head, second, first = shell("runs").out.splitlines()
    assert head.split() == ["RUN", "AGENT", "STATUS", "STEPS", "UPDATED", "PROMPT"]
    assert second.split()[:4] == ["r2", "greeter", "completed", "2"]
    assert second.endswith("…")
    assert first.split()[:4] == ["r1", "refund-bot", "paused", "3"]
    listed = shell("runs", "--json").json
    assert [run["execution_id"] for run in listed] == ["r2", "r1"]
    assert listed[0]["prompt"] == "Say hello " * 20


def test_sessions_are_listed_by_page(shell: Shell, paused: str) -> None:
    shell("run", f"{SHOP}:greeter", "Say hello", "--id", "g")
    shell("resume", "g", "And again", "--agent", f"{SHOP}:greeter")
    both = shell("sessions", "--json").json
    assert [(s["session"], s["newest"], s["runs"]) for s in both] == [
        ("g", "g-2", 2),
        ("r1", "r1", 1),
    ]
    assert shell("sessions", "--limit", 1, "--offset", 1, "--json").json == both[1:]
    assert shell("sessions", "--offset", 2).err == "no more sessions\n"
    assert shell("sessions", "--limit", "-1").code == 2
    assert shell("sessions").out.splitlines()[1].split()[:5] == [
        *("g", "g-2", "completed", "greeter", "2")
    ]


def test_pending_shows_each_pause_with_the_commands_that_decide(shell: Shell, paused: str) -> None:
    said = shell("pending")
    assert said.out.startswith("run    r1\npause  3\nasks   manager_approval\n")
    assert "Approve runs refund" in said.out
    assert "  durable-nb approve r1 --pause 3 --agent MODULE:NAME --yes\n" in said.out
    assert "  durable-nb reject r1 --pause 3 --agent MODULE:NAME\n" in said.out
    (listed,) = shell("pending", "--json").json
    assert listed["arguments"] == listed["context"] == {"order": "1042", "amount": 20}
    assert (listed["number"], listed["asks"], listed["expires_at"]) == (3, "approval", None)


def test_a_pause_that_expires_says_when(shell: Shell, folder: Path) -> None:
    assert "expires  20" in shell("run", f"{SHOP}:hasty", "Ask", "--id", "r1").out
    (listed,) = shell("pending", "--json").json
    lasts = datetime.fromisoformat(listed["expires_at"]) - datetime.fromisoformat(
        listed["created_at"]
    )
    assert timedelta(minutes=59) < lasts < timedelta(minutes=61)


def test_show_tells_a_runs_story(shell: Shell, paused: str) -> None:
    waiting = shell("show", paused).out
    assert "status   paused" in waiting
    assert 'context of manager_approval\norder   "1042"\namount  20\n' in waiting
    assert waiting.endswith("The model is not asked again.\n")
    shell("approve", paused, "--pause", 3, "--yes", *BOT, "--by", "alice", "--note", "kind")
    steps = [re.split("  +", line) for line in shell("show", paused).out.splitlines()]
    told = [(step[1], step[2], step[3], step[5:]) for step in steps if step[0].isdigit()]
    assert told == [
        ("turn:0", "llm_call", "completed", []),
        ("turn:0/tool:refund", "tool_call", "completed", ['refund(order="1042", amount=20)']),
        ("turn:0/tool:refund", "hitl_pause", "interrupted", ["manager_approval"]),
        ("turn:0/tool:refund", "resume", "completed", ["approved by alice: kind"]),
        ("turn:1", "llm_call", "completed", []),
        ("run_end", "run_end", "completed", []),
    ]
    over = shell("show", paused).out
    assert f"{SHOP}.charge  1      kept" in over
    assert over.endswith("The run is completed. There is nothing to resume.\n")


def test_show_as_json_holds_the_entries_as_they_are_stored(
    shell: Shell, paused: str, store: Checkpointer
) -> None:
    shell("approve", paused, "--pause", 3, "--yes", *BOT)
    shown = shell("show", paused, "--json").json
    listed = [(row.number, row.node_id, row.step_type, row.status) for row in store.list(paused)]
    assert listed == [
        (step["number"], step["node_id"], step["step_type"], step["status"])
        for step in shown["steps"]
    ]
    assert shown["steps"][1]["entry"]["arguments"] == {"order": "1042", "amount": 20}
    assert [effect["attempts"] for effect in shown["effects"]] == [1]
    assert shown["output"] == "Refunded. [/red] \x1b[31m"


def test_show_tells_of_forks_follow_ups_and_failures(shell: Shell, paused: str) -> None:
    shell("fork", paused, *BOT, "--at", "turn:0", "--id", "r2")
    assert "goes on  r1 after entry 1" in shell("show", "r2").out
    assert "fork: entry 1 again, by " in shell("show", "r2").out
    shell("cancel", "r2", "--by", "bob")
    assert "cancelled by bob" in shell("show", "r2").out
    shell("run", f"{SHOP}:offline", "Say hello", "--id", "r3", "--tag", "a", "--tag", "b")
    assert "tags     a, b" in shell("show", "r3").out
    assert "ConnectionError: 503\\nService \\x1b[31mUnavailable" in shell("show", "r3").out


@pytest.mark.parametrize(
    "execution_id",
    ["nobody", "", "it's", "../../etc/passwd", "a/b", "x" * 10_000, "é🙂", "\udce9", "%s", "?1"],
)
def test_an_unknown_run_is_an_error_whatever_its_id(
    shell: Shell, paused: str, execution_id: str
) -> None:
    said = shell("show", execution_id)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("UnknownExecution: no run ")
    assert said.err.count("\n") == 1
    assert len(said.err) < 300


def _keys(documented: str) -> set[str]:
    """The names in the outermost braces of a documented shape."""
    inside = documented[documented.index("{") + 1 :]
    flat = re.sub(r"\{[^{}]*\}", "", re.sub(r"\{[^{}]*\}", "", inside)).split("}")[0]
    return {part.split(":")[0].strip() for part in flat.split(",")} - {"", "or pending_interrupt"}


def test_the_documented_shapes_are_those_that_are_printed(shell: Shell, paused: str) -> None:
    printed = {
        shapes.RUNS: shell("runs", "--json").json[0],
        shapes.SESSIONS: shell("sessions", "--json").json[0],
        shapes.PENDING: shell("pending", "--json").json[0],
        shapes.SHOW: shell("show", paused, "--json").json,
        shapes.PREVIEW: shell("approve", paused, "--json").json,
        shapes.DOCTOR: shell("doctor", "--json").json,
        shapes.EXPORT: shell("export", "copy.db", "--json").json,
        shapes.RESULT: shell("reject", paused, "--pause", 3, *BOT, "--json").json,
        shapes.PRUNE: shell("prune", "--older-than", "1d", "--json").json,
    }
    for documented, shown in printed.items():
        assert _keys(documented) == set(shown), documented
    shell("run", f"{SHOP}:bot", "Refund", "--id", "r2")
    assert _keys(shapes.CANCEL) == set(shell("cancel", "r2", "--json").json)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_its_json_is(
    shell: Shell, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "4000")
    said = shell(command, "--help")
    assert said.code == 0
    assert "--json prints " in said.out
    assert "--store PATH_OR_DSN" in said.out


def test_people_read_local_times_with_their_zone_and_programs_utc(
    child: Callable[..., Said], shell: Shell, paused: str
) -> None:
    (run,) = shell("runs", "--json").json
    moment = datetime.fromisoformat(run["updated_at"])
    assert moment.utcoffset() == timedelta(0)
    assert run["updated_at"].endswith("Z")
    local = moment + timedelta(hours=5, minutes=30)
    assert f"{local:%Y-%m-%d %H:%M:%S} IST" in child("runs", TZ="IST-5:30").out
