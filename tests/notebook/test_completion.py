"""What Tab offers, asked as a front end asks: the whole cell and where the cursor is in it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from IPython.core.completer import provisionalcompleter

from durable_nb import Agent, Checkpointer, MemoryCheckpointer, ScriptedModel
from durable_nb.notebook.typed.completion import MOST
from durable_nb.notebook.typed.grammar import COMMANDS
from durable_nb.notebook.typed.tables import tables_of_views
from durable_nb.stores import glance
from durable_nb.stores.open import default_store, use_store
from tests.notebook.conftest import Notebook


def tab(notebook: Notebook, cell: str) -> list[str]:
    """The whole cell, once for each of our offers that is taken; the cursor is at `|`, or at the
    end. Where we offer something nobody else does."""
    before, _, after = cell.partition("|")
    with provisionalcompleter():
        found = list(notebook.shell.Completer.completions(before + after, len(before)))
    ours = [each for each in found if each._origin == "durable_nb"]
    assert not ours or len(ours) == len(found)
    return [before[: each.start] + each.text + after for each in ours]


def offers(notebook: Notebook, cell: str) -> list[str]:
    """The last words of those."""
    return [each.rsplit(None, 1)[-1] for each in tab(notebook, cell)]


@pytest.fixture
def paused(notebook: Notebook, bot: Agent) -> Notebook:
    """Runs refund-1 to refund-3, the last of which waits, and the run 'it is'."""
    llm = ScriptedModel(["hello"])
    talker = notebook.names["talker"] = Agent("small talk", llm)
    for name in ("refund-1", "refund-2", "it is"):
        talker.run("hello", execution_id=name)
    bot.run("Refund order 1042", execution_id="refund-3")
    return notebook


def test_commands_are_offered_after_the_magic(notebook: Notebook) -> None:
    assert offers(notebook, "%durable ") == [each.name for each in COMMANDS]
    assert offers(notebook, "%durable p") == ["pending", "prune"]
    assert offers(notebook, "x = %durable app") == ["approve"]
    assert offers(notebook, "1 + 1\n  %durable he") == ["help"]
    assert offers(notebook, "%durable help app") == ["approve"]


def test_runs_are_offered_newest_first_and_quoted_where_they_have_to_be(paused: Notebook) -> None:
    assert offers(paused, "%durable show ref") == ["refund-3", "refund-2", "refund-1"]
    assert tab(paused, "%durable show it") == ["%durable show 'it is'"]
    assert tab(paused, "%durable show 'it i") == ["%durable show 'it is'"]
    assert tab(paused, "%durable approve |--by me")[0] == "%durable approve refund-3--by me"
    assert tab(paused, "%%durable bot --id refund-1|\nhello") == [
        "%%durable bot --id refund-1\nhello"
    ]
    assert tab(paused, "%durable show nope") == []


def test_what_is_offered_can_be_typed(paused: Notebook) -> None:
    for line in tab(paused, "%durable show "):
        assert paused(line).error is None


def test_agents_are_offered_by_variable_and_by_name(paused: Notebook) -> None:
    assert tab(paused, "%%durable ") == [
        "%%durable bot",
        "%%durable talker",
        "%%durable refund-bot",
        "%%durable 'small talk'",
    ]
    assert offers(paused, "%durable resume refund-3 --agent ta") == ["talker"]


def test_options_that_are_not_there_yet_are_offered(paused: Notebook) -> None:
    assert offers(paused, "%%durable bot ") == [
        *("--id", "--new", "-o", "--on-pause", "--timeout", "--quiet"),
    ]
    assert offers(paused, "%%durable bot --new --") == [
        "--id",
        "--on-pause",
        "--timeout",
        "--quiet",
    ]
    assert offers(paused, "%%durable bot --on-pause ") == ["continue", "stop", "wait"]
    assert offers(paused, "%durable prune --older-than 30d --st") == ["--status"]
    assert offers(paused, "%durable prune --status c") == ["completed", "cancelled"]
    assert offers(paused, "%durable approve refund-3 --set amount=1 --se") == ["--set"]


def test_nodes_and_the_open_pause_of_a_run_are_offered(paused: Notebook) -> None:
    assert offers(paused, "%durable fork refund-3 --at ") == ["turn:0/tool:refund", "turn:0"]
    assert offers(paused, "%durable fork refund-3 --at turn:0/") == ["turn:0/tool:refund"]
    assert offers(paused, "%durable approve refund-3 --pause ") == ["3"]
    assert tab(paused, "%durable approve refund-1 --pause ") == []
    assert tab(paused, "%durable fork nope --at turn") == []


def test_paths_and_variables_with_a_store_are_offered_after_use(
    paused: Notebook, tmp_path: Path
) -> None:
    (tmp_path / "some dir").mkdir()
    (tmp_path / "some.sqlite3").touch()
    paused.names["memory"] = MemoryCheckpointer()
    assert offers(paused, "%durable use m") == ["memory"]
    assert tab(paused, "%durable use so") == [
        "%durable use 'some dir/'",
        "%durable use some.sqlite3",
    ]
    assert tab(paused, f"%durable export {tmp_path}/some.") == [
        f"%durable export {tmp_path}/some.sqlite3"
    ]
    assert tab(paused, "%durable use postgresql://") == []


def test_tables_and_columns_are_offered_in_a_query(paused: Notebook) -> None:
    import pandas as pd

    paused.names["limits"] = pd.DataFrame({"agent": ["bot"], "most": [1], "no name": [2]})
    assert offers(paused, "%%durable_sql\nselect * from ru") == ["runs"]
    assert tab(paused, "%%durable_sql\nselect node_i| from steps") == [
        "%%durable_sql\nselect node_id from steps",
        "%%durable_sql\nselect node_index from steps",
    ]
    assert offers(paused, "%%durable_sql\nfrom runs\nselect runs.stat") == ["runs.status"]
    assert offers(paused, "%%durable_sql\nfrom decisions select b") == ['"by"']
    assert offers(paused, "%%durable_sql --with li") == ["limits"]
    assert offers(paused, "%%durable_sql --with a,li") == ["a,limits"]
    assert offers(paused, "%%durable_sql --with limits\nfrom li") == ["limits"]
    assert offers(paused, "%%durable_sql --with limits\nfrom limits select mo") == ["most"]


def test_the_columns_that_are_offered_are_those_that_the_views_have(paused: Notebook) -> None:
    for table, columns in tables_of_views().items():
        frame = paused(f"%%durable_sql\nfrom {table} limit 0").value
        assert list(frame.columns) == [each.strip('"') for each in columns], table


def test_a_prompt_is_left_to_others(paused: Notebook) -> None:
    assert "refund-3" not in "".join(tab(paused, "%%durable bot\n%durable show ref"))


@pytest.mark.parametrize(
    "cell",
    [
        "%durable show 'it",
        "%durable nope ",
        "%durable show a b c ",
        "%durable show \ud800",
        "%%durable_sql --with\nselect ",
        "%%durable_sql --nope\nselect ",
        "%%durable_sql -o\n",
        "%durable export '",
        "%durable approve --pause ",
        "%durable diff",
    ],
)
def test_nothing_that_can_be_typed_raises(
    notebook: Notebook, cell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tab(notebook, cell)
    assert "Traceback" not in capsys.readouterr().err


def test_a_store_that_is_not_there_is_not_made(notebook: Notebook, tmp_path: Path) -> None:
    assert tab(notebook, "%durable show ") == []
    assert tab(notebook, "%durable fork a --at ") == []
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_cannot_be_read_offers_nothing(
    notebook: Notebook, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("not a database, but long enough to be asked about" * 99)
    notebook("%config DurableMagics.store = 'text'")
    assert tab(notebook, "%durable show ") == []
    assert "Traceback" not in capsys.readouterr().err


def test_a_store_that_is_no_file_is_asked_too(notebook: Notebook) -> None:
    memory = MemoryCheckpointer()
    use_store(memory)
    agent = Agent("bot", ScriptedModel(["hello"]))
    agent.run("hello", execution_id="a1")
    assert offers(notebook, "%durable show a") == ["a1"]
    assert offers(notebook, "%durable fork a1 --at ") == ["turn:0"]


def test_what_is_read_is_bounded_however_many_runs_there_are(paused: Notebook) -> None:
    path: Path = default_store().path
    with sqlite3.connect(path) as db:
        for number in range(5000):
            db.execute(
                "insert into runs (id, agent, prompt, created, session, fingerprint) "
                "select ?, agent, prompt, created, ?, fingerprint from runs limit 1",
                [f"x-{number:05}", f"x-{number:05}"],
            )
    found = offers(paused, "%durable show x-")
    assert (len(found), found[0]) == (MOST, "x-04999")
    assert offers(paused, "%durable show x-0000") == [f"x-0000{digit}" for digit in range(10)]
    assert offers(paused, "%durable show refund") == ["refund-1", "refund-2", "refund-3"]
    with sqlite3.connect(path) as db:
        for query in (glance._NEWEST, glance._BY_NAME, glance._STEPS):
            values = [1] * (1 + max(query.count(f"?{each}") and each for each in (1, 2, 3)))
            plan = str(db.execute(f"explain query plan {query}", values[1:]).fetchall())
            assert "SCAN entries" not in plan


def test_completing_loads_nothing_heavy(paused: Notebook, tmp_path: Path) -> None:
    code = (
        "import sys, warnings\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "shell.run_line_magic('load_ext', 'durable_nb')\n"
        "warnings.simplefilter('ignore')\n"
        "for line in ('%durable show r', '%%durable_sql\\nselect node_id from ste'):\n"
        "    print([each.text for each in shell.Completer.completions(line, len(line))])\n"
        "print([m for m in ('pandas', 'duckdb', 'ipywidgets') if m in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.stdout.splitlines()[-3:] == [
        "['refund-3', 'refund-2', 'refund-1']",
        "['steps']",
        "[]",
    ], done.stderr


def test_unloading_takes_it_back(notebook: Notebook, store: Checkpointer) -> None:
    notebook("%unload_ext durable_nb")
    assert "pending" not in offers(notebook, "%durable pen")
    notebook("%load_ext durable_nb")
    notebook("%reload_ext durable_nb")
    assert offers(notebook, "%durable pen") == ["pending"]


def test_a_variable_whose_attributes_raise_or_a_class_of_stores_is_no_store(
    notebook: Notebook,
) -> None:
    class Lazy:
        def __getattr__(self, name: str) -> object:
            raise RuntimeError(name)

    notebook.names.update(lazy=Lazy(), kind=MemoryCheckpointer, kept=MemoryCheckpointer())
    offered = offers(notebook, "%durable use ")
    assert "kept" in offered
    assert not {"lazy", "kind"} & set(offered)
    for path in ("a\0b", "~\0", "\0/x"):
        assert offers(notebook, f"%durable export {path}") == []
    assert notebook("%durable use kind").error is None
    assert default_store().path.name == "kind"
