"""The child is a process of its own, and never outlives who started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from durable_nb import Agent, InvalidInput, ScriptedModel, call, lab
from tests.lab import shop

SCRIPT = """
import sys, threading
from pathlib import Path
from durable_nb import Agent, ScriptedModel, SQLiteCheckpointer, call, lab

folder = Path(sys.argv[1])

def stuck() -> None:
    say("in the tool")
    threading.Event().wait()

def say(line: str) -> None:
    with (folder / "notes").open("a") as file:
        file.write(line + "\\n")

agent = Agent("stuck", ScriptedModel([call("stuck"), "Done."]), [stuck],
              checkpointer=SQLiteCheckpointer(folder / "runs.sqlite3"))
try:
    crash = lab.crash(agent, "Go", at=sys.argv[2], when=sys.argv[3], execution_id="r")
    print(crash)
except KeyboardInterrupt:
    print("interrupted")
"""


def script(folder: Path, at: str, when: str) -> subprocess.Popen[str]:
    """A script, not a module, that defines its agent and crashes it."""
    path = folder / "script.py"
    path.write_text(SCRIPT)
    command = [sys.executable, str(path), str(folder), at, when]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def wait_for(condition: Callable[[], object]) -> None:
    """Poll; the test's own time limit ends it."""
    while not condition():
        time.sleep(0.02)


def status(folder: Path) -> str:
    return shop.store_in(folder).runs()[0].status


def test_an_agent_defined_in_a_script_goes_to_the_child_by_value(tmp_path: Path) -> None:
    with script(tmp_path, "turn:0/tool:stuck", "during") as parent:
        said = parent.communicate()[0]
    assert shop.noted(tmp_path / "notes") == ["in the tool"]
    assert "got SIGKILL during turn:0/tool:stuck" in said


def test_an_agent_from_a_module_goes_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = """
        from pathlib import Path

        def where() -> None:
            Path(FOLDER, "notes").write_text(f"{__name__} {FOLDER}")

        FOLDER = str(Path(__file__).parent)
        """
    (tmp_path / "tool_by_name.py").write_text(textwrap.dedent(module))
    monkeypatch.syspath_prepend(tmp_path)
    import tool_by_name

    llm = ScriptedModel([call("where"), "Done."])
    agent = Agent("a", llm, [tool_by_name.where], checkpointer=shop.store_in(tmp_path))
    tool_by_name.FOLDER = "changed here; the child imports its own"
    lab.crash(agent, "Go", at="turn:0/tool:where", when="after")
    assert (tmp_path / "notes").read_text() == f"tool_by_name {tmp_path}"


def test_the_child_ends_with_its_parent(tmp_path: Path) -> None:
    with script(tmp_path, "turn:0/tool:stuck", "after") as parent:
        wait_for(lambda: shop.noted(tmp_path / "notes"))
        assert status(tmp_path) == "running"
        parent.send_signal(signal.SIGKILL)
        wait_for(lambda: status(tmp_path) == "crashed")


def test_interrupting_the_parent_kills_the_child(tmp_path: Path) -> None:
    with script(tmp_path, "turn:0/tool:stuck", "after") as parent:
        wait_for(lambda: shop.noted(tmp_path / "notes"))
        parent.send_signal(signal.SIGINT)
        assert parent.communicate()[0] == "interrupted\n"
        assert status(tmp_path) == "crashed"


def test_a_child_killed_by_somebody_else_is_not_taken_for_the_crash(tmp_path: Path) -> None:
    def work() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    llm = ScriptedModel([call("work"), "Done."])
    agent = Agent("a", llm, [work], checkpointer=shop.store_in(tmp_path))
    with pytest.raises(InvalidInput, match=r"came to turn:0, turn:0/tool:work; .* -9"):
        lab.crash(agent, "Go", at="turn:1", when="before")


def test_what_the_tool_started_dies_with_it(tmp_path: Path) -> None:
    def work() -> None:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        shop.note(tmp_path / "notes", "started")

    llm = ScriptedModel([call("work"), "Done."])
    agent = Agent("a", llm, [work], checkpointer=shop.store_in(tmp_path))
    lab.crash(agent, "Go", at="turn:0/tool:work", when="after")  # it would hold the output open
    assert shop.noted(tmp_path / "notes") == ["started"]


def test_a_daemon_that_a_tool_forked_does_not_hide_that_the_child_has_died(tmp_path: Path) -> None:
    """It holds open all that the child held open, so that no end of file tells of its death."""

    def work() -> None:
        if (daemon := os.fork()) == 0:
            os.setsid()
            time.sleep(3600)
        shop.note(tmp_path / "notes", str(daemon))

    llm = ScriptedModel([call("work"), "Done."])
    agent = Agent("a", llm, [work], checkpointer=shop.store_in(tmp_path))
    crash = lab.crash(agent, "Go", at="turn:0/tool:work", when="after")
    os.kill(int(shop.noted(tmp_path / "notes")[0]), signal.SIGKILL)  # it is nobody's but its tool's
    assert "got SIGKILL after turn:0/tool:work" in str(crash)


def test_what_the_child_prints_is_shown_here_and_it_has_nothing_to_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> None:
        print("out:", sys.stdin.read() == "")
        print("err", file=sys.stderr)

    llm = ScriptedModel([call("work"), "Done."])
    agent = Agent("a", llm, [work], checkpointer=shop.store_in(tmp_path))
    lab.crash(agent, "Go", at="turn:0/tool:work", when="after")
    assert capsys.readouterr().out == "out: True\nerr\n"
