"""`%load_ext`, `%durable COMMAND`, help and mistakes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from durable_nb import Agent, DurableError, InvalidInput, ScriptedModel, StoreUnusable
from durable_nb.cli import parser
from durable_nb.notebook import banner
from durable_nb.notebook.commands import COMMANDS
from durable_nb.notebook.typed.parse import IN_A_SHELL, command_line, run_line
from durable_nb.stores import open as stores_open
from durable_nb.stores.open import default_store
from tests.notebook.conftest import Notebook

HEAVY = ["ipywidgets", "pandas", "duckdb", "pydantic", "durable_nb.runtime.agent", "sqlite3"]


def test_loading_says_which_store_and_what_waits(notebook: Notebook, bot: Agent) -> None:
    bot.run("Refund order 1042", execution_id="refund-1042")
    printed = notebook("%reload_ext durable_nb").printed
    said = ".durable/runs.sqlite3 · 1 run · 1 waits for you"
    assert said in printed
    assert len(printed.splitlines()) == 1


def test_loading_again_and_unloading_leave_one_set_of_magics_or_none(notebook: Notebook) -> None:
    for _ in range(3):
        notebook("%reload_ext durable_nb")
    kept = [type(each).__name__ for each in notebook.shell.configurables]
    assert kept.count("DurableMagics") == 1
    assert len(notebook.shell.input_transformers_cleanup) == len(
        set(notebook.shell.input_transformers_cleanup)
    )
    notebook("%unload_ext durable_nb")
    assert notebook.shell.find_line_magic("durable") is None
    assert notebook.shell.find_cell_magic("durable_sql") is None
    notebook("%load_ext durable_nb")
    assert notebook("%durable pending").error is None


def test_a_broken_store_does_not_keep_the_extension_from_loading(
    notebook: Notebook, tmp_path: Path
) -> None:
    os.environ["DURABLE_NB_STORE"] = str(tmp_path)
    try:
        assert "is a directory" in notebook("%reload_ext durable_nb").printed
    finally:
        del os.environ["DURABLE_NB_STORE"]


def test_loading_imports_nothing_heavy_and_creates_nothing(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "import IPython.core.magic, traitlets\n"
        "shell = InteractiveShell.instance()\n"
        "before = set(sys.modules)\n"
        "shell.run_line_magic('load_ext', 'durable_nb')\n"
        f"print([name for name in {HEAVY!r} if name in set(sys.modules) - before])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert done.stdout.splitlines() == [
        "durable_nb: default store .durable/runs.sqlite3 (not made yet)",
        "[]",
    ], done.stderr
    assert not (tmp_path / ".durable").exists()


def test_the_banner_looks_where_the_default_store_is() -> None:
    assert Path(banner.DEFAULT) == stores_open.DEFAULT


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("bot --nope", "--nope"),
        ("", "AGENT"),
        ("bot extra", "extra"),
        ("bot --on-pause maybe", "maybe"),
        ("bot --on-pause wait --timeout never", "number of seconds"),
        ("bot --on-pause wait --timeout -1", "timeout"),
        ("bot --id 'open", "quote"),
    ],
)
def test_a_mistake_in_a_cells_line_is_our_error(line: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        run_line(line)


@pytest.mark.parametrize(
    "line", ["aprove x", "approve", "approve x --pause three", "approve x --set amount", "show"]
)
def test_a_mistake_in_a_command_is_our_error(line: str) -> None:
    with pytest.raises(InvalidInput):
        command_line(line)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("aprove x", "no command 'aprove'; did you mean approve?; see %durable help"),
        ("xyzzy", "%durable has no command 'xyzzy'; see %durable help"),
        ("approve", "%durable approve: the following arguments are required: ID; see %durable app"),
        (
            "approve x --nots y",
            "%durable approve: unrecognized arguments: --nots y; see %durable a",
        ),
        ("run 'a b'", "in a shell: durable-nb run 'a b' (with --store"),
        ("doctor", "in a shell: durable-nb doctor (with"),
        (
            "answer x --run-again --stop",
            "%durable answer: argument --stop: not allowed with argument --run-again; see %durable",
        ),
        ("answer x", "one of the arguments --happened --run-again --stop is required; see %durab"),
        ("answer x --happened sent", "'sent' is not JSON; text needs quotes of its own, as in"),
        ("--nope", "no command '--nope'; see %durable help"),
        ("--", "no command '--'"),
    ],
)
def test_a_mistake_in_a_command_says_what_would_be_right(line: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(says)):
        command_line(line)


def test_what_only_the_shell_has_is_all_that_the_notebook_has_not() -> None:
    (theirs,) = (each.choices for each in parser()._actions if isinstance(each.choices, dict))
    assert set(IN_A_SHELL) == set(theirs) - set(COMMANDS)


def test_quotes_group_and_backslashes_stay() -> None:
    parsed = run_line(r"""'my bot' --id "it's 5\6" """)
    assert (parsed.agent, parsed.id) == ("my bot", r"it's 5\6")


@pytest.mark.parametrize(
    "line",
    [
        "%durable --help",
        "%durable help",
        "%durable approve --help",
        "%durable help approve",
        "%%durable --help\nx",
        "%%durable_sql -h\nx",
    ],
)
def test_help_is_printed(notebook: Notebook, line: str) -> None:
    ran = notebook(line)
    assert ran.error is None
    assert "usage: " in ran.printed


def test_a_mistake_shows_as_one_line(notebook: Notebook) -> None:
    error = notebook("%durable aprove x").error
    assert isinstance(error, DurableError)
    assert len(error._render_traceback_()) == 1


def test_use_chooses_a_store_and_refuses_what_is_none(notebook: Notebook, tmp_path: Path) -> None:
    notebook.names["bot"] = Agent("bot", ScriptedModel(["hello"]))
    said = "durable_nb: other.sqlite3 · will be made by the first run"
    assert said in notebook("%durable use other.sqlite3").printed
    notebook("%%durable bot --id a\nhello")
    assert (tmp_path / "other.sqlite3").exists()
    (tmp_path / "text").write_text("not a database, but long enough to be asked about" * 99)
    for target in (str(tmp_path), "text"):
        assert isinstance(notebook(f"%durable use {target}").error, StoreUnusable)
    assert notebook("%durable show a").value.status == "completed"


def test_use_refuses_a_path_whose_directory_cannot_be_made_and_makes_none(
    notebook: Notebook, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("a file")
    for target in ("text/runs.sqlite3", "text/a/b.sqlite3", "/proc/none/runs.sqlite3"):
        error = notebook(f"%durable use {target}").error
        assert isinstance(error, StoreUnusable)
        assert "has no usable directory" in str(error)
    assert "will be made by the first run" in notebook("%durable use new/er/a.sqlite3").printed
    assert sorted(each.name for each in tmp_path.iterdir()) == ["text"]


def test_loading_says_that_the_store_is_not_there_yet_however_it_was_chosen(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said() -> str:
        return notebook("%reload_ext durable_nb").printed.strip()

    assert default_store().runs() == []
    assert said() == "durable_nb: default store .durable/runs.sqlite3 (not made yet)"
    monkeypatch.setenv("DURABLE_NB_STORE", "named.sqlite3")
    assert said() == "durable_nb: store named.sqlite3 (not made yet)"


def test_a_store_that_is_there_and_has_no_runs_says_so(notebook: Notebook) -> None:
    Agent("bot", ScriptedModel(["hello"])).run("go")
    assert len(default_store().prune(timedelta(0))) == 1
    assert ".durable/runs.sqlite3 · no runs yet" in notebook("%reload_ext durable_nb").printed


def test_runs_are_shown_to_the_second_with_their_tags_and_without_empty_columns(
    notebook: Notebook, bot: Agent, tmp_path: Path
) -> None:
    assert len(notebook("%durable").value) == 0
    bot.run("Refund order 1042", execution_id="a", tags=["shop", "new"])
    frame = notebook("%durable").value
    assert frame["tags"].tolist() == [["shop", "new"]]
    assert [each.microsecond for each in (*frame["created_at"], *frame["updated_at"])] == [0, 0]
    assert "workdir" not in frame
    bot.run("Refund order 1042", execution_id="b", workdir=tmp_path)
    assert notebook("%durable runs").value["workdir"].tolist()[0] == str(tmp_path)


def test_runs_and_agents_are_tables(notebook: Notebook, bot: Agent) -> None:
    bot.run("Refund order 1042", execution_id="refund-1042")
    assert list(notebook("%durable").value["status"]) == ["paused"]
    assert list(notebook("%durable agents").value["agent"]) == ["refund-bot"]


def test_sql_sees_runs_and_named_frames(notebook: Notebook, bot: Agent) -> None:
    import pandas as pd

    bot.run("Refund order 1042", execution_id="refund-1042")
    notebook.names["limits"] = pd.DataFrame({"agent": ["refund-bot"], "most": [100]})
    query = "select execution_id, most from runs join limits using (agent)"
    ran = notebook(f"%%durable_sql -o found --with limits\n{query}")
    assert ran.value.values.tolist() == [["refund-1042", 100]]
    assert notebook.names["found"] is ran.value
    assert isinstance(notebook(f"%%durable_sql --with nope\n{query}").error, InvalidInput)
