"""Workspaces in runs that die, move and go on (CASES W2, T3; DESIGN R7)."""

from __future__ import annotations

import signal
from pathlib import Path

import cloudpickle
import pytest

from durable_nb import InvalidInput, Resume, call, lab
from durable_nb.workspace import Workspace
from tests.support.agents import bot, told
from tests.workspace import site
from tests.workspace.plans import LOG, PLANS


def killed(folder: Path, at: str, when: lab.When) -> None:
    """A run of the plan "batch" whose process was really killed."""
    (folder / "site").mkdir()
    tools = Workspace(folder / "site").tools()
    agent = bot(site.store_in(folder), PLANS["batch"], *tools)
    crash = lab.crash(agent, "Go", at=at, when=when, execution_id="r")
    assert crash.signal == signal.SIGKILL


def again(folder: Path, decision: Resume | None = None) -> object:
    tools = Workspace(folder / "site").tools()
    agent = bot(site.store_in(folder), PLANS["batch"], *tools)
    return agent.resume("r", resume_value=decision)


def log(folder: Path) -> list[str]:
    return (folder / "site" / LOG).read_text().split()


@pytest.mark.parametrize("when", ["before", "after"])
def test_commands_of_a_batch_that_never_started_run_on_resume_without_asking(
    tmp_path: Path, when: lab.When
) -> None:
    killed(tmp_path, "turn:0/tool:write", when)
    result = again(tmp_path)
    assert result.status == "completed"
    assert log(tmp_path) == ["1", "2"]


def test_only_the_command_in_flight_is_in_doubt(tmp_path: Path) -> None:
    killed(tmp_path, "turn:0/tool:bash", "after")
    assert log(tmp_path) == ["1"]
    result = again(tmp_path)
    assert result.status == "paused"
    assert result.pending_interrupt["context"]["arguments"] == {"command": f"echo 1 >> {LOG}"}
    result = again(tmp_path, Resume.happened("[exit code 0]"))
    assert result.status == "completed"
    assert told(result)[1:] == ["[exit code 0]", "[exit code 0]"]
    assert log(tmp_path) == ["1", "2"]


def test_a_command_that_did_not_happen_can_be_run_again(tmp_path: Path) -> None:
    killed(tmp_path, "turn:0/tool:bash", "before")
    assert again(tmp_path).status == "paused"
    assert again(tmp_path, Resume.run_again()).status == "completed"
    assert log(tmp_path) == ["1", "2"]


def test_the_tools_work_where_the_run_does_and_move_with_it(tmp_path: Path) -> None:
    script = [call("write", path="a.txt", content="a"), "Done.", call("list"), "Listed."]
    agent = site.agent(tmp_path, script)
    site.start(agent, tmp_path)
    moved = tmp_path / "moved"
    (tmp_path / "site").rename(moved)
    with pytest.raises(InvalidInput, match="Pass move=True"):
        agent.resume("r", prompt="And now?", workdir=moved)
    result = agent.resume("r", prompt="And now?", workdir=moved, move=True)
    assert told(result)[-1] == "a.txt  (1 bytes)"


@pytest.mark.parametrize(
    ("workdir", "said"),
    [
        (None, "Error: ValueError: there is no working directory: start the run with workdir="),
        ("gone", "Error: NotADirectoryError: the working directory "),
    ],
)
def test_without_a_directory_the_model_reads_so(
    tmp_path: Path, workdir: str | None, said: str
) -> None:
    agent = site.agent(tmp_path, [[call("list"), call("bash", command="true")], "Done."])
    result = agent.run("Go", workdir=None if workdir is None else tmp_path / workdir)
    assert [text for text in told(result) if not text.startswith(said)] == []
    assert result.output == "Done."


def test_a_workspace_can_be_handed_to_another_process(tmp_path: Path) -> None:
    tools = cloudpickle.loads(cloudpickle.dumps(Workspace(tmp_path).tools()))
    assert [tool.name for tool in tools] == ["read", "write", "edit", "list", "search", "bash"]
    tools[1](path="a.txt", content="a")
    assert (tmp_path / "a.txt").read_text() == "a"


def test_every_tool_and_argument_is_described_to_the_model() -> None:
    for tool in Workspace().tools():
        assert len(tool.description) > 40
        described = tool.schema["properties"].items()
        plain = {name for name, schema in described if "description" not in schema}
        assert plain <= {"content", "command"}  # which say what they are
