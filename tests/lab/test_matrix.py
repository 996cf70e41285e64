"""A crash matrix finds what an agent forgot to wrap, and names the line. Real children and SIGKILL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from durable_nb import (
    Agent,
    InvalidInput,
    MemoryCheckpointer,
    Message,
    Reply,
    Resume,
    ScriptedModel,
    Usage,
    call,
    current,
    idempotent,
    interrupt,
    lab,
    tool,
    workspace,
)
from tests.support.ledger import Ledger as Notes

TOOL = "turn:0/tool:work"


def one_call(work: Callable[..., Any], *, script: Any = None, **options: Any) -> Agent:
    """An agent that calls one tool, with nothing on any disk."""
    script = script or [call("work"), "Done."]
    return Agent("bot", ScriptedModel(script), [work], checkpointer=MemoryCheckpointer(), **options)


def writing(name: str = "ledger") -> Callable[[], str]:
    def work() -> str:
        with open(name, "a") as file:
            file.write("charged\n")
        return "ok"

    return work


def verdicts(matrix: lab.Matrix) -> dict[str, dict[str, str]]:
    """The verdicts by node and moment, without those that are `exact`."""
    found: dict[str, dict[str, str]] = {}
    for row in matrix[matrix["verdict"] != "exact"].itertuples():
        found.setdefault(row.node, {})[row.when] = row.verdict
    return found


def test_every_entry_is_killed_before_during_and_after_its_step() -> None:
    matrix = lab.crash_matrix(one_call(idempotent(writing())), "Go")
    assert [(row.node, row.when) for row in matrix.itertuples()] == [
        *(("turn:0", when) for when in ("before", "during", "after")),
        *((TOOL, when) for when in ("before", "during", "after")),
        *(("turn:1", when) for when in ("before", "during", "after")),
        ("run_end", "before"),
        ("run_end", "after"),
    ]


def test_an_agent_that_wraps_its_effects_is_exact_everywhere() -> None:
    once = idempotent(writing())

    def work() -> str:
        return once()

    matrix = lab.crash_matrix(one_call(work), "Go")
    assert matrix.assert_exact() is matrix
    assert {tuple(effects) for effects in matrix["effects"]} == {("ledger: charged",)}


def test_a_model_call_in_flight_is_made_again_and_that_is_said() -> None:
    def work() -> str:
        return "no effect"

    matrix = lab.crash_matrix(one_call(work), "Go").set_index(["node", "when"])
    asked = matrix["model_calls"]
    assert (asked["turn:0", "before"], asked["turn:0", "during"], asked[TOOL, "after"]) == (2, 3, 2)
    assert matrix["what"]["turn:0", "after"] == "the model call in flight was made again"


@pytest.fixture(scope="module")
def unwrapped() -> lab.Matrix:
    """What becomes of an agent that forgot to wrap its one effect."""
    return lab.crash_matrix(one_call(writing()), "Go")


def test_an_effect_that_is_not_wrapped_is_found_and_its_line_is_named(
    unwrapped: lab.Matrix,
) -> None:
    matrix = unwrapped
    assert verdicts(matrix) == {TOOL: {"after": "repeated"}}
    (row,) = matrix[matrix["verdict"] == "repeated"].itertuples()
    assert row.effects == ["ledger: charged", "ledger: charged"]
    assert row.what == "happened again: ledger: charged"
    line = writing.__code__.co_firstlineno + 2
    assert row.wrap == (
        f"work, test_matrix.py:{line}: move this into a function that is @idempotent: "
        'with open(name, "a") as file:'
    )


def test_a_function_that_a_tool_calls_is_named_rather_than_the_tool() -> None:
    ledger = lab.Ledger("charges")

    def charge(order: str) -> None:
        ledger.add(f"order {order}")

    def work() -> str:
        charge("1042")
        return "ok"

    matrix = lab.crash_matrix(one_call(work), "Go")
    assert verdicts(matrix) == {TOOL: {"during": "repeated", "after": "repeated"}}
    line = charge.__code__.co_firstlineno + 1
    assert set(matrix["wrap"]) == {
        "",
        f'charge, test_matrix.py:{line}: make it @idempotent: ledger.add(f"order {{order}}")',
    }


def test_the_picture_and_its_text_twin_say_the_same(unwrapped: lab.Matrix) -> None:
    matrix = unwrapped
    assert str(matrix).splitlines()[:6] == [
        "crash matrix of bot: 11 kills, 10 exact, 1 repeated",
        "                  before  during  after",
        "turn:0            exact   exact   exact",
        "turn:0/tool:work  exact   exact   repeated",
        "turn:1            exact   exact   exact",
        "run_end           exact   -       exact",
    ]
    assert str(matrix).splitlines()[6] == (
        "repeated: killed after turn:0/tool:work, happened again: ledger: charged"
    )
    html = matrix._repr_html_()
    assert html.count(">exact</td>") == 10
    assert html.count(">repeated</td>") == 1
    assert "happened again: ledger: charged" in html


def test_what_a_tool_writes_is_shown_as_text_and_never_as_markup() -> None:
    def work() -> str:
        with open("<b>$x$", "a") as file:
            file.write("<i>\n")
        return "ok"

    matrix = lab.crash_matrix(one_call(work), "Go")
    assert "happened again: <b>$x$: <i>" in str(matrix)
    assert "&lt;b&gt;&#36;x&#36;: &lt;i&gt;" in matrix._repr_html_()
    assert "<b>" not in matrix._repr_html_()
    assert "$" not in matrix._repr_html_()


def test_a_matrix_is_a_dataframe_and_what_pandas_makes_of_it_is_a_plain_one(
    unwrapped: lab.Matrix,
) -> None:
    matrix = unwrapped
    assert isinstance(matrix, pd.DataFrame)
    assert type(matrix[matrix["verdict"] != "exact"]) is pd.DataFrame
    assert matrix["verdict"].value_counts()["repeated"] == 1


def test_assert_exact_fails_with_the_picture_as_text(unwrapped: lab.Matrix) -> None:
    with pytest.raises(AssertionError, match=r"turn:0/tool:work +exact +exact +repeated"):
        unwrapped.assert_exact()


def test_effects_may_be_the_answer_of_a_callable(tmp_path: Path) -> None:
    world = Notes(tmp_path / "world")  # elsewhere: one for all kills

    def work() -> str:
        world.add("paid")
        return "ok"

    matrix = lab.crash_matrix(one_call(work), "Go", effects=lambda: world.lines)
    assert verdicts(matrix) == {TOOL: {"during": "repeated", "after": "repeated"}}
    counted = lab.crash_matrix(one_call(work), "Go", effects=lambda: len(world.lines))
    assert verdicts(counted) == verdicts(matrix)


def test_a_run_works_in_a_copy_of_its_directory_and_paths_lead_into_the_copy(
    tmp_path: Path,
) -> None:
    (tmp_path / "notes").write_text("first\n")

    def work() -> str:
        with (tmp_path / "notes").open("a") as file:
            file.write("second\n")
        return "ok"

    matrix = lab.crash_matrix(one_call(work), "Go", workdir=tmp_path)
    assert verdicts(matrix) == {TOOL: {"after": "repeated"}}
    assert matrix["effects"][0] == ["notes: second"]
    assert (tmp_path / "notes").read_text() == "first\n"
    assert os.listdir(tmp_path) == ["notes"]


def test_the_file_tools_of_a_workspace_are_exact(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two\n")
    script = [
        call("edit", path="a.txt", old="two", new="three"),
        call("write", path="b.txt", content="new\n"),
        "Done.",
    ]
    place = workspace.Workspace(tmp_path)
    agent = Agent("coder", ScriptedModel(script), place.tools(), checkpointer=MemoryCheckpointer())
    matrix = lab.crash_matrix(agent, "Go", workdir=tmp_path)
    matrix.assert_exact()
    assert (tmp_path / "a.txt").read_text() == "one two\n"


def test_files_of_a_store_in_the_directory_are_neither_opened_nor_copied(tmp_path: Path) -> None:
    from durable_nb import SQLiteCheckpointer

    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
    seen = tmp_path.parent / "seen"

    def work() -> str:
        seen.write_text(" ".join(os.listdir()))
        return "ok"

    agent = Agent("bot", ScriptedModel([call("work"), "Done."]), [work], checkpointer=store)
    agent.run("Go", execution_id="own")
    lab.crash_matrix(agent, "Go", workdir=tmp_path).assert_exact()
    assert seen.read_text() == ""
    assert [run.execution_id for run in store.runs()] == ["own"]


def test_a_tool_that_is_not_run_again_after_a_crash_loses_its_effect() -> None:
    work = tool(on_crash="fail")(writing())
    matrix = lab.crash_matrix(one_call(work), "Go")
    assert verdicts(matrix) == {TOOL: {"before": "lost", "during": "diverged"}}
    assert "did not happen: ledger: charged" in str(matrix)
    assert "other effects: ledger: other" in str(matrix)  # the file is there, and empty


def test_a_tool_that_does_something_else_the_second_time_diverges() -> None:
    def work() -> str:
        Path(f"file-{os.getpid()}").touch()
        return "ok"

    matrix = lab.crash_matrix(one_call(work), "Go")
    assert set(verdicts(matrix)[TOOL].values()) == {"diverged"}


def test_where_the_model_was_killed_no_line_is_said_to_be_wrapped() -> None:
    def work() -> str:
        Path(current().call_id).touch()  # another id where the model was asked again
        return "ok"

    matrix = lab.crash_matrix(one_call(work), "Go")
    assert set(verdicts(matrix)) == {"turn:0"}
    assert set(matrix["wrap"]) == {""}


def test_a_resume_that_fails_or_never_ends_is_stuck(tmp_path: Path) -> None:
    def work() -> str:
        Path("begun").touch()
        if Path("twice").exists():
            raise SystemExit("a tool that leaves")
        Path("twice").touch()
        return "ok"

    matrix = lab.crash_matrix(one_call(work), "Go")
    assert verdicts(matrix) == {TOOL: {"after": "stuck"}}
    assert "SystemExit: a tool that leaves" in str(matrix)

    def waiting() -> str:
        if Path("twice").exists():
            time.sleep(3600)
        Path("twice").touch()
        return "ok"

    waiting.__name__ = "work"
    late = lab.crash_matrix(one_call(waiting), "Go", timeout=2)
    assert verdicts(late) == {TOOL: {"after": "stuck"}}
    assert "it did not end within 2 s" in str(late)


def test_a_run_that_does_not_end_without_a_kill_is_refused_with_what_it_printed() -> None:
    agent = Agent("bot", ScriptedModel([OSError("503")]), checkpointer=MemoryCheckpointer())
    with pytest.raises(InvalidInput, match=r"does not come to its end.*OSError: 503"):
        lab.crash_matrix(agent, "Go")


def test_pauses_are_approved_unless_answers_say_otherwise_and_both_are_said() -> None:
    def work() -> str:
        if interrupt("manager").approved:
            writing()()
        return "ok"

    matrix = lab.crash_matrix(one_call(work), "Go")
    assert "All pauses were approved; answers=… decides otherwise." in str(matrix)
    assert [row.step for row in matrix.itertuples() if row.node == TOOL] == [
        *["tool_call"] * 3,
        *["hitl_pause"] * 2,
        *["resume"] * 3,
    ]
    assert verdicts(matrix) == {TOOL: {"after": "repeated"}}
    no = lab.crash_matrix(one_call(work), "Go", answers=Resume(approved=False))
    assert {tuple(effects) for effects in no["effects"]} == {()}
    asked = lab.crash_matrix(
        one_call(work), "Go", answers=lambda pause: Resume(pause.reason == "manager")
    )
    assert verdicts(asked) == verdicts(matrix)


def test_a_call_in_doubt_is_told_to_run_again() -> None:
    ledger = lab.Ledger("charges")

    @idempotent(in_doubt="ask")
    def work() -> str:
        ledger.add("charged")
        return "ok"

    matrix = lab.crash_matrix(one_call(work), "Go")
    assert verdicts(matrix) == {TOOL: {"during": "repeated"}}
    assert "it was in doubt, and was told to run again" in str(matrix)
    assert 'ask with @idempotent(in_doubt="ask")' in str(matrix)


class Priced:
    """A model that counts tokens, as those that cost money do, and the requests of all processes."""

    def __init__(self, asked: Path) -> None:
        self.asked = asked

    def complete(self, messages: Any, tools: Any) -> Reply:
        Notes(self.asked).add("asked")
        said = (
            Message("assistant", "Done.")
            if len(messages) > 1
            else Message("assistant", tool_calls=(call("work"),))
        )
        return Reply(said, Usage(100, 11))


def test_what_a_real_model_costs_is_said_and_can_be_saved(tmp_path: Path) -> None:
    agent = Agent("bot", Priced(tmp_path / "asked"), [writing()], checkpointer=MemoryCheckpointer())
    listed = lab.crash_matrix(agent, "Go", dry_run=True)
    assert len(Notes(tmp_path / "asked").lines) == 2
    assert listed["verdict"].isna().all()
    assert len(listed) == 11
    assert "asked again in each of the 11 kills, about 222 tokens and more each" in str(listed)
    played = lab.crash_matrix(agent, "Go", replay=True)
    assert len(Notes(tmp_path / "asked").lines) == 4
    assert verdicts(played) == {TOOL: {"after": "repeated"}}
    assert played.set_index(["node", "when"])["model_calls"]["turn:0", "during"] == 3


def test_two_interpreters_are_started_and_the_rest_is_forked(tmp_path: Path) -> None:
    """40 kills cost 80 forks, not 80 imports: every child has the same parent."""
    parents = Notes(tmp_path / "parents")

    def work() -> str:
        parents.add(os.getppid())
        return "ok"

    script = [*[call("work") for _ in range(6)], "Done."]
    matrix = lab.crash_matrix(one_call(work, script=script), "Go")
    assert len(matrix) == 41
    assert len(set(parents.lines)) == 1
    assert parents.lines[0] != str(os.getpid())


def test_children_begin_without_pandas_which_no_run_needs() -> None:
    def work() -> str:
        Path("seen").write_text(f"pandas is imported: {'pandas' in sys.modules}")
        return "ok"

    matrix = lab.crash_matrix(one_call(work), "Go")
    assert matrix["effects"][0] == ["seen: pandas is imported: False"]


SCRIPT = """
import sys, threading
from pathlib import Path
from durable_nb import Agent, MemoryCheckpointer, ScriptedModel, call, lab

folder = Path(sys.argv[1])

def work() -> None:
    if Path("second").exists():
        with (folder / "notes").open("a") as file:
            file.write("waiting\\n")
        threading.Event().wait()
    Path("second").touch()

llm = ScriptedModel([call("work"), "Done."])
agent = Agent("bot", llm, [work], checkpointer=MemoryCheckpointer())
try:
    lab.crash_matrix(agent, "Go")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize(
    ("number", "said"), [(signal.SIGINT, "interrupted\n"), (signal.SIGKILL, "")]
)
def test_no_child_outlives_an_interrupt_or_the_death_of_who_asked(
    tmp_path: Path, number: int, said: str
) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    command = [sys.executable, str(path), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        while not Notes(tmp_path / "notes").lines:
            time.sleep(0.02)
        parent.send_signal(number)
        assert parent.communicate()[0] == said  # the pipe is closed: nobody holds it any more
    while children_of(tmp_path):
        time.sleep(0.02)


def children_of(folder: Path) -> list[str]:
    """The processes whose command line or directory leads to the folder's script."""
    found = subprocess.run(["ps", "-eo", "pid,args"], stdout=subprocess.PIPE, text=True).stdout
    return [line for line in found.splitlines() if str(folder) in line and "ps -eo" not in line]


def test_commits_are_effects_and_what_runs_git_is_named(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *who, *words], check=True, stdout=subprocess.DEVNULL)

    def work() -> str:
        Path("b.txt").write_text("new")
        git("add", ".")
        git("commit", "--allow-empty", "-m", "second")
        return "ok"

    git("init", "-q", str(tmp_path))
    git("-C", str(tmp_path), "commit", "--allow-empty", "-m", "first")
    matrix = lab.crash_matrix(one_call(work), "Go", workdir=tmp_path)
    assert verdicts(matrix) == {TOOL: {"after": "repeated"}}
    assert "happened again: commits of .: commit: second" in str(matrix)
    assert f"git, test_matrix.py:{git.__code__.co_firstlineno + 2}: make it" in str(matrix)


def test_a_tool_without_a_line_of_the_users_own_is_named_itself(tmp_path: Path) -> None:
    script = [call("bash", command="echo paid >> ledger"), "Done."]
    tools = workspace.Workspace(tmp_path).tools()
    agent = Agent("coder", ScriptedModel(script), tools, checkpointer=MemoryCheckpointer())
    matrix = lab.crash_matrix(agent, "Go", workdir=tmp_path)
    assert verdicts(matrix) == {"turn:0/tool:bash": {"after": "repeated"}}
    assert "wrap the call of bash in a function that is @idempotent" in str(matrix)


def test_an_async_tool_is_watched_like_any_other() -> None:
    async def work() -> str:
        with open("ledger", "a") as file:
            file.write("charged\n")
        return "ok"

    matrix = lab.crash_matrix(one_call(work), "Go")
    assert verdicts(matrix) == {TOOL: {"after": "repeated"}}
    assert f"work, test_matrix.py:{work.__code__.co_firstlineno + 1}: move this" in str(matrix)
