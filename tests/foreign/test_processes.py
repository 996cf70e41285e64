"""MCP servers and the processes that use them: killed, resumed elsewhere, and none left behind."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from durable_nb import Checkpointer, Resume, call, lab
from tests.foreign.owner import agent_of
from tests.foreign.shop import done, gone, over_stdio, servers
from tests.notebook.test_kernels import Kernel
from tests.support.agents import bot, told
from tests.support.ledger import Ledger


def owner(folder: Path, *task: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.foreign.owner", str(folder), *task]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def killed_in_its_call(folder: Path, effects: Ledger, *on_crash: str) -> None:
    """A run whose process got SIGKILL while the server worked, which it then no longer does."""
    with owner(folder, "run", *on_crash) as process:
        while "slow" not in effects.lines:
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
    assert all(map(gone, servers(effects)))


def test_a_call_in_flight_is_made_again_by_the_process_that_resumes(
    tmp_path: Path, effects: Ledger
):
    killed_in_its_call(tmp_path, effects)
    with owner(tmp_path, "resume") as process:
        assert process.communicate(timeout=60)[0] == "completed None\n"
    assert done(effects) == ["slow", "slow"]
    assert all(map(gone, servers(effects)))


def test_a_call_in_flight_is_asked_about_if_the_server_was_handed_over_so(
    tmp_path: Path, effects: Ledger
):
    killed_in_its_call(tmp_path, effects, "ask")
    with owner(tmp_path, "resume", "ask") as process:
        assert process.communicate(timeout=60)[0] == "paused in_doubt\n"
    agent = agent_of(tmp_path, "ask")
    result = agent.resume("r1", resume_value=Resume.happened("it was slow"))
    assert told(result)[0].endswith("it was slow")
    assert done(effects) == ["slow"]
    agent.checkpointer.close()


@pytest.mark.parametrize("end", ["kill", "terminate"])
def test_no_server_outlives_an_idle_owner_that_is_killed(tmp_path: Path, effects: Ledger, end: str):
    with owner(tmp_path, "wait") as process:
        assert process.stdout.readline() == "ready\n"
        getattr(process, end)()
    assert all(map(gone, servers(effects)))


def test_an_agent_handed_to_a_child_opens_a_connection_of_its_own(
    store: Checkpointer, effects: Ledger
):
    agent = bot(store, [call("refund", order="1", amount=5), "done"], over_stdio(effects))
    lab.crash(agent, "go", at="turn:1", when="before", execution_id="r1")
    assert done(effects) == ["refund 1 5"]
    assert agent.resume("r1").output == "done"
    assert done(effects) == ["refund 1 5"]
    here, child = servers(effects)
    assert here != child
    assert gone(child)


def test_a_forked_child_opens_a_connection_of_its_own_too(tmp_path: Path, effects: Ledger):
    with owner(tmp_path, "fork") as process:
        assert process.communicate(timeout=60)[0] == "its child ended with 0\n"
    assert done(effects) == ["slow"]
    assert len(set(servers(effects))) == 2
    assert all(map(gone, servers(effects)))


CELLS = """\
%load_ext durable_nb
from pathlib import Path
from durable_nb import Agent, ScriptedModel, call
from tests.foreign.shop import over_stdio
from tests.support.ledger import Ledger
shop = over_stdio(Ledger(Path("effects").absolute())).approval_required()
bot = Agent("bot", ScriptedModel([call("refund", order="7", amount=20), "On its way."]), [shop])
"""


def test_an_agent_with_a_server_works_in_a_kernel_whose_end_is_the_servers(tmp_path: Path):
    effects = Ledger(tmp_path / "effects")
    kernel = Kernel(tmp_path)
    try:
        kernel(CELLS)
        assert "waiting for you" in kernel("%%durable bot --id r1 -o h\nRefund order 7")
        assert done(effects) == []
        assert "completed" in kernel("%durable approve r1")
        assert "On its way." in kernel("h.output")
        assert done(effects) == ["refund 7 20"]
    finally:
        kernel.close()
    assert all(map(gone, servers(effects)))
