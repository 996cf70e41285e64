"""`cancel`, `prune` and `export`: what goes, what stays, and that a copy is whole."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from durable_nb import Checkpointer, MemoryCheckpointer, SQLiteCheckpointer
from durable_nb.cli.options import age
from durable_nb.model.errors import InvalidInput
from durable_nb.stores.export import export
from durable_nb.stores.open import DEFAULT
from tests.cli.conftest import SHOP, Said, Shell

GREETER = f"{SHOP}:greeter"


def test_a_waiting_run_is_cancelled_once(shell: Shell, paused: str) -> None:
    assert shell("cancel", paused, "--by", "bob").err == "run r1 is cancelled\n"
    assert shell("runs", "--json").json[0]["status"] == "cancelled"
    again = shell("cancel", paused)
    assert again.code == 1
    assert again.err.startswith("AlreadyResumed: run 'r1' is cancelled since ")
    assert shell("cancel", "nobody").err.startswith("UnknownExecution: ")


@pytest.fixture
def ended(shell: Shell, paused: str) -> None:
    """Beside the run that waits: two that completed, one of them tagged, and one that failed."""
    shell("run", GREETER, "Say hello", "--id", "old")
    shell("run", GREETER, "Say hello", "--id", "test", "--tag", "test", "--tag", "new")
    shell("run", f"{SHOP}:offline", "Say hello", "--id", "bad")


@pytest.mark.parametrize(
    ("flags", "gone"),
    [
        ((), ["old", "test", "bad"]),
        (("--status", "failed"), ["bad"]),
        (("--tag", "test"), ["test"]),
        (("--tag", "test", "--tag", "other"), []),
        (("--status", "cancelled"), []),
    ],
)
def test_pruning_forgets_what_ended_and_fits(
    shell: Shell, ended: None, flags: tuple[str, ...], gone: list[str]
) -> None:
    words = ("prune", "--older-than", "0s", *flags)
    before = {run["execution_id"] for run in shell("runs", "--json").json}
    assert shell(*words, "--dry-run", "--json").json == {"removed": gone, "dry_run": True}
    dry = shell(*words, "--dry-run")
    assert dry.out.split() == gone
    assert dry.err.endswith("would go\n")
    assert {run["execution_id"] for run in shell("runs", "--json").json} == before
    assert shell(*words, "--json").json == {"removed": gone, "dry_run": False}
    assert {run["execution_id"] for run in shell("runs", "--json").json} == before - set(gone)


def test_nothing_young_is_pruned(shell: Shell, ended: None) -> None:
    said = shell("prune", "--older-than", "1h")
    assert (said.code, said.out, said.err) == (0, "", "0 runs forgotten\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", timedelta(seconds=90)),
        ("1.5h", timedelta(hours=1, minutes=30)),
        ("5m", timedelta(minutes=5)),
        ("30d", timedelta(days=30)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_an_age_is_a_number_and_a_unit(text: str, expected: timedelta) -> None:
    assert age(text) == expected


@pytest.mark.parametrize(
    "text", ["", "d", "30", "thirty", "nand", "infd", "99999999999999d", "30 y"]
)
def test_an_age_without_them_is_a_usage_error(shell: Shell, ended: None, text: str) -> None:
    said = shell("prune", f"--older-than={text}")
    assert (said.code, said.out) == (2, "")
    assert "such as 30d" in said.err
    assert len(shell("runs", "--json").json) == 4


def test_an_age_below_zero_and_a_status_that_no_run_ends_with_are_refused(shell: Shell) -> None:
    assert shell("prune", "--older-than=-1d").err.startswith("InvalidInput: older_than is an age")
    assert shell("prune", "--older-than", "1d", "--status", "paused").code == 2
    assert shell("prune").code == 2


def test_a_copy_is_a_store_that_goes_on_where_the_original_was(
    shell: Shell, paused: str, child: Callable[..., Said], folder: Path
) -> None:
    said = shell("export", "copy.db")
    assert said.code == 0
    assert said.err.startswith("copy.db: ")
    assert "write-ahead log  0 bytes" in shell("doctor", "--store", "copy.db").out
    approve = ("approve", paused, "--pause", 3, "--yes", "--agent", f"{SHOP}:bot")
    assert child(*approve, "--store", "copy.db").out.startswith("Refunded.")
    assert shell("runs", "--json").json[0]["status"] == "paused"
    assert "all is well" in shell("doctor", "--store", "copy.db").out
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == [
        ".durable"
    ]


def test_a_copy_of_a_store_that_is_being_written_is_whole(
    beginning: Callable[..., subprocess.Popen[str]], child: Callable[..., Said], folder: Path
) -> None:
    (folder / "busy.py").write_text(BUSY)
    owner = beginning("run", "busy:bot", "Count", "--id", "r1")
    sizes = []
    for name in ("a.db", "b.db"):
        while not (folder / DEFAULT).exists() or len(sizes) == _steps(folder):
            assert owner.poll() is None
        assert child("export", name).code == 0
        health = child("doctor", "--store", name, "--json").json
        assert health["faults"] == []
        sizes.append(health["entries"])
    assert 0 < sizes[0] < sizes[1]


BUSY = """
from durable_nb import Agent, ScriptedModel, call

def count(n: int) -> str:
    return str(n)

script = [call("count", n=n) for n in range(100_000)]
bot = Agent("busy", ScriptedModel(script), [count], max_turns=100_000)
"""


def _steps(folder: Path) -> int:
    store = SQLiteCheckpointer(folder / DEFAULT)
    steps = sum(run.steps for run in store.runs())
    store.close()
    return steps


@pytest.mark.parametrize("there", ["file", "folder", "link"])
def test_what_is_there_is_never_overwritten(
    shell: Shell, paused: str, folder: Path, there: str
) -> None:
    (folder / "file").write_text("mine")
    (folder / "folder").mkdir()
    (folder / "link").symlink_to(folder / "nowhere")
    before = sorted(folder.iterdir())
    said = shell("export", there)
    assert said.code == 1
    assert said.err.startswith(f"StoreUnusable: the store {folder / there} exists already")
    assert sorted(folder.iterdir()) == before
    assert (folder / "file").read_text() == "mine"
    assert not (folder / "nowhere").exists()


def test_a_copy_needs_a_place_and_something_to_copy(
    shell: Shell, paused: str, folder: Path
) -> None:
    said = shell("export", "no/such/folder/copy.db")
    assert said.code == 1
    assert said.err.startswith("StoreUnusable: ")
    assert "cannot be written" in said.err
    said = shell("export", "copy.db", "--store", "nothing.db")
    assert said.err.startswith(f"StoreUnusable: the store {folder / 'nothing.db'} does not exist")
    assert not (folder / "copy.db").exists()
    assert not (folder / "nothing.db").exists()


def test_a_store_without_a_file_is_not_copied(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="is not a file"):
        export(MemoryCheckpointer(), folder / "copy.db")


def test_an_original_is_not_changed_by_its_copy(
    shell: Shell, paused: str, store: Checkpointer, folder: Path
) -> None:
    rows = [str(row) for row in store.list(paused)]
    assert shell("export", "copy.db").code == 0
    copy = SQLiteCheckpointer(folder / "copy.db")
    assert [str(row) for row in copy.list(paused)] == rows
    copy.close()
    assert [str(row) for row in store.list(paused)] == rows
