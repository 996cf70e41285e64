"""JUPYTER's table of lost locks, over every way to explore a store.

A process that holds a store open keeps two locks: one while it writes, which keeps other writers
out, and one as long as it has the store open, which keeps the log from being removed when another
process leaves. Both belong to the process, and would be gone as soon as it closed any descriptor of
the file that is not SQLite's own. What is explored here is what there is: each name of `views`, each
command of `%durable`; what they take is filled in by its name or kind.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from durable_nb import Agent, ScriptedModel, SQLiteCheckpointer, call, tool, views
from durable_nb.notebook.typed.grammar import COMMANDS, Argument
from tests.views.runs import a_run_of_every_status, bot

GIVEN: Mapping[str, object] = {
    "execution_id": "approved",
    "a": 1,
    "b": 2,
    "query": "from steps join runs using (execution_id)",
    "name": "slowest_tools",
    "path": "exported",
}
TYPED: Mapping[str, str] = {
    "run": "approved",
    "place": "1",
    "store": "runs.sqlite3",
    "path": "copied.sqlite3",
    "age": "1d",
}
RUN_OF = {
    "approve": "waits",
    "reject": "waits-2",
    "resume": "broken",
    "cancel": "waits-3",
    "answer": "doubt",
}
ALSO_TYPED = {"answer": "--stop"}
WRITE = {"answer", "approve", "reject", "resume", "fork", "cancel", "prune"}
MORE = {
    "load_ext": "%unload_ext durable_nb\n%load_ext durable_nb",
    "the inspector's next page": "%durable show long\nclick('◂ Older steps')",
    "the inspector compares": "%durable show approved\nclick('Compare')",
    "the inbox again": "%durable pending\nclick('Refresh')",
    "%%durable_sql": "%%durable_sql\nselect count(*) from steps",
    "a query that is refused": (
        "from durable_nb import InvalidInput\n"
        "try: views.sql(\"attach 'runs.sqlite3' as s (type sqlite)\")\n"
        "except InvalidInput: pass"
    ),
    "a handle": (
        "h = %durable show approved\n"
        "h.status, h.output, h.pending, h.steps, h.messages, h.card(), h.diff(1, 2), repr(h)"
    ),
    "the store": (
        "from durable_nb.stores.open import default_store\n"
        "s = default_store()\n"
        "s.runs(), s.list('approved'), s.get_last('approved'), s.list_pending_interrupts(), "
        "s.sessions(), s.effects('approved'), s.branches('approved')"
    ),
    "completion of runs": "tab('%durable show ')",
    "completion of steps": "tab('%durable fork approved --at ')",
    "completion of tables": "tab('%%durable_sql\\nfrom ')",
}


def cells() -> dict[str, tuple[str, bool]]:
    """Every way to explore, as the cell that does it, and whether it writes."""
    found = {f"views.{name}": (_called(name), False) for name in views.__all__}
    for line in COMMANDS:
        words = [_typed(line.name, each) for each in line.arguments if each.needed]
        words.append(ALSO_TYPED.get(line.name, ""))
        written = " ".join([f"%durable {line.name}", *words])
        found[f"%durable {line.name}"] = written, line.name in WRITE
    found.update({name: (source, False) for name, source in MORE.items()})
    return found


def _called(name: str) -> str:
    needed = [
        each.name
        for each in inspect.signature(getattr(views, name)).parameters.values()
        if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    ]
    unsaid = set(needed) - set(GIVEN)
    assert not unsaid, f"say in GIVEN what views.{name} is called with: {unsaid}"
    given = ", ".join(repr(GIVEN[each]) for each in needed)
    return f"str(views.{name}({given}))"


def _typed(command: str, argument: Argument) -> str:
    if argument.kind == "run":
        return RUN_OF.get(command, TYPED["run"])
    assert argument.kind in TYPED, f"say in TYPED what a needed {argument.kind} is"
    word = TYPED[argument.kind]
    return f"{argument.name} {word}" if argument.is_option else word


SETUP = """
from durable_nb import call, views
from durable_nb.stores.open import default_store
from tests.views.runs import bot
from tests.views.test_lock_loss import doubtful
other = doubtful(default_store())
agent = bot(default_store(), call("refund", order="1042", amount=20), "Done.")
"""


def pay() -> str:
    """Die."""
    raise KeyboardInterrupt


def doubtful(store: SQLiteCheckpointer) -> Agent:
    """An agent whose tool dies, and asks about it."""
    tools = [tool(on_crash="ask")(pay)]
    return Agent("doubtful", ScriptedModel([call("pay"), "Done."]), tools, checkpointer=store)


def a_store(path: Path) -> None:
    """Runs of every status, three that wait, and one of several pages."""
    store = SQLiteCheckpointer(path)
    a_run_of_every_status(store)
    large, small = (call("refund", order="1042", amount=amount) for amount in (20, 5))
    for name in ("waits-2", "waits-3"):
        bot(store, large).run("Refund order 1042", execution_id=name)
    bot(store, *[small] * 40, "Done.").run("Refund them all", execution_id="long")
    with suppress(KeyboardInterrupt):
        doubtful(store).run("Pay", execution_id="doubt")
    doubtful(store).resume("doubt")
    store.close()


def explored(folder: Path, cells: Mapping[str, tuple[str, bool]]) -> dict[str, Any]:
    """What each cell did to the locks of a process that has the folder's store open."""
    path = folder / "runs.sqlite3"
    a_store(path)
    done = subprocess.run(
        [sys.executable, "-m", "tests.views.explorer", str(path)],
        input=json.dumps({"setup": (SETUP, True), **cells}),
        cwd=folder, capture_output=True, text=True, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["setup"]["error"] == ""
    return found


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return explored(tmp_path_factory.mktemp("explored"), cells())


@pytest.mark.parametrize("name", cells())
def test_both_locks_are_kept_by(table: dict[str, Any], name: str) -> None:
    found, (_, writes) = table[name], cells()[name]
    assert found["error"] == ""
    kept = {"can_write": writes, "log_stays": True}
    assert found["before"] == kept, "lost before"
    assert found["after"] == kept


OTHERS = {
    "reading the file": "open('runs.sqlite3', 'rb').read()",
    "copying the file": "import shutil; shutil.copy('runs.sqlite3', 'copy')",
    "copying the folder": "import shutil; shutil.copytree('.', '../copied', dirs_exist_ok=True)",
}


@pytest.mark.skipif(sys.platform != "linux", reason="locks are lost on POSIX systems")
@pytest.mark.parametrize("how", OTHERS)
def test_the_table_sees_that_a_lock_is_lost_by(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    found = explored(folder, {how: (OTHERS[how], False)})[how]
    assert found["before"] == {"can_write": False, "log_stays": True}
    assert found["after"] != found["before"]
