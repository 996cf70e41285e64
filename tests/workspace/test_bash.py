"""`bash` is bounded in time and output, and nothing that it started outlives it (CASES W3, W4, W7)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from durable_nb import Resume, call
from durable_nb.workspace import Workspace
from tests.support.agents import told
from tests.workspace import site
from tests.workspace.plans import LOG, PLANS, STUBBORN

FLOOD = "echo first; head -c 300000000 /dev/zero | tr '\\0' x; echo; echo last; echo beside >&2"
MEASURE = """
import json, resource
from pathlib import Path
from durable_nb.workspace import Workspace
answer = Workspace(sys.argv[2]).bash(sys.argv[3])
status = Path("/proc/self/status").read_text()  # ru_maxrss would count what the test's process had
own = int(status.partition("VmHWM:")[2].split()[0])
print(json.dumps([answer, [own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]]))
"""
INTERRUPTED = """
from pathlib import Path
folder = Path(sys.argv[2])
try:
    site.start(site.agent(folder, PLANS["stubborn"]), folder)
except KeyboardInterrupt:
    found = map(int, (folder / "site" / "processes").read_text().split())
    (folder / "left").write_text(str(list(filter(site.is_alive, found))))
"""
FORKED = """
import os, threading
from pathlib import Path
folder = Path(sys.argv[2])

def fork_one():
    site.wait_for((folder / "site" / "processes").exists)
    if (child := os.fork()) == 0:
        while True:
            os.read(0, 1)
    (folder / "child").write_text(str(child))
    (folder / "child").rename(folder / "forked")

threading.Thread(target=fork_one).start()
site.start(site.agent(folder, PLANS["stubborn"]), folder)
"""


def processes(folder: Path) -> list[int]:
    """Those of the stubborn command, once all of them run."""
    written = folder / "site" / "processes"
    site.wait_for(written.exists)
    found = [int(line) for line in written.read_text().split()]
    assert len(found) == 4
    assert all(map(site.is_alive, found))
    return found


def all_gone(found: list[int]) -> bool:
    return not any(map(site.is_alive, found))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_command_ends_with_the_process_that_asked_and_the_call_is_in_doubt(
    tmp_path: Path, number: signal.Signals
) -> None:
    with site.running(tmp_path, "stubborn") as process:
        found = processes(tmp_path)
        process.send_signal(number)
        assert process.wait() == -number
        site.wait_for(lambda: all_gone(found))

    agent = site.agent(tmp_path, PLANS["stubborn"])
    result = agent.resume("r")
    assert (result.status, result.pending_interrupt["reason"]) == ("paused", "in_doubt")  # type: ignore[index]
    result = agent.resume("r", resume_value=Resume.happened("it was done"))
    assert (result.status, told(result)) == ("completed", ["it was done"])
    assert (tmp_path / "site" / LOG).read_text() == "1\n"


def test_an_interrupt_comes_back_when_the_command_and_its_children_are_gone(tmp_path: Path) -> None:
    with site.child(INTERRUPTED, tmp_path) as process:
        found = processes(tmp_path)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
    left = (tmp_path / "left").read_text()
    assert (left, all_gone(found)) == ("[]", True)


def test_a_command_ends_too_when_a_forked_child_keeps_the_lifeline_open(tmp_path: Path) -> None:
    with site.child(FORKED, tmp_path, stdin=subprocess.PIPE) as process:
        found = processes(tmp_path)
        site.wait_for((tmp_path / "forked").exists)
        process.kill()
        forked = int((tmp_path / "forked").read_text())
        site.wait_for(lambda: all_gone(found))
        assert site.is_alive(forked)
        os.kill(forked, signal.SIGKILL)


def test_a_command_that_outlives_its_time_is_killed_with_all_its_children(tmp_path: Path) -> None:
    for seconds in (2, 10, 50):  # more on a machine that takes longer to start them all
        answer = Workspace(tmp_path).bash(STUBBORN.replace("wait", "yes >&2"), timeout=seconds)
        if (tmp_path / "processes").exists():
            break
    assert answer.endswith(f"[killed with all it had started: not over after {seconds} s]")
    assert answer.startswith("[stderr]\ny\ny\n")
    assert all_gone([int(line) for line in (tmp_path / "processes").read_text().split()])


def test_what_a_command_leaves_running_is_ended_and_counted(tmp_path: Path) -> None:
    command = "sleep 1000 & setsid sleep 1000 & echo $! > left; kill -0 $! && echo begun"
    answer = Workspace(tmp_path).bash(command)
    assert answer == "begun\n[exit code 0]\n[2 of its processes still ran and were ended]"
    assert all_gone([int((tmp_path / "left").read_text())])


def test_a_flood_of_300_mb_leaves_head_and_tail_and_takes_little_memory(tmp_path: Path) -> None:
    with site.child(MEASURE, tmp_path, FLOOD, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        answer, peaks = json.load(process.stdout)
    assert answer.startswith("first\nxxx")
    assert "xxx\nlast\n[stderr]\nbeside\n\n[exit code 0]" in answer
    assert f"[… {300_000_012 - 32_000:,} bytes cut …]" in answer
    assert len(answer) < 33_000
    assert all(peak < 150_000 for peak in peaks), peaks  # KB


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("echo hi", "hi\n[exit code 0]"),
        ("printf hi", "hi\n[exit code 0]"),
        ("true", "[exit code 0]"),
        ("echo no >&2; exit 3", "[stderr]\nno\n\n[exit code 3]"),
        ("kill -9 $$", "[killed by signal 9]"),
        ("nonesuch 2>/dev/null", "[exit code 127]"),
        ("cat", "[exit code 0]"),  # it has no input
        ("printf 'caf\\xe9 \\0'", "caf\ufffd \0\n[exit code 0]"),
        ("yes | head -n 1", "y\n[exit code 0]"),
        ("echo late > >(sleep 0.1; cat > late); wait; sleep 0.2; cat late", "late\n[exit code 0]"),
    ],
)
def test_an_answer_has_both_streams_and_the_exit_code(
    tmp_path: Path, command: str, answer: str
) -> None:
    assert Workspace(tmp_path).bash(command) == answer


@pytest.mark.parametrize("command", ["", " \n", "echo \0", "x" * 100_001])
def test_a_command_that_cannot_be_run_is_refused(tmp_path: Path, command: str) -> None:
    with pytest.raises(ValueError, match="a command is text without NUL"):
        Workspace(tmp_path).bash(command)


def test_a_signal_to_end_does_not_keep_the_warden_from_its_work(tmp_path: Path) -> None:
    command = "sleep 1000 & echo $! > left; kill -TERM $PPID; kill -INT $PPID; kill -HUP $PPID"
    answer = Workspace(tmp_path).bash(command)
    assert answer == "[exit code 0]\n[1 of its processes still ran and were ended]"
    assert all_gone([int((tmp_path / "left").read_text())])


def test_a_command_that_kills_its_warden_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="is not known"):
        Workspace(tmp_path).bash("echo $$ > shell; kill -9 $PPID; exec sleep 1000")
    site.wait_for(lambda: not site.is_alive(int((tmp_path / "shell").read_text())))


SECRETS = {
    "OPENAI_API_KEY": "sk-1",
    "ANTHROPIC_API_KEY": "sk-2",
    "AWS_SECRET_ACCESS_KEY": "sk-3",
    "GITHUB_TOKEN": "sk-4",
    "PGPASSWORD": "sk-5",
    "LC_SECRET": "sk-6",
    "BASH_ENV": "sk-7",
}


def test_no_secret_of_the_environment_reaches_a_command_or_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    command = "env; tr '\\0' '\\n' < /proc/$PPID/environ"
    script = [call("bash", command=command), "Done."]
    agent = site.agent(tmp_path, script)
    (text,) = told(site.start(agent, tmp_path))
    assert "PATH=" in text
    assert "HOME=" in text
    assert not any(secret in text for secret in (*SECRETS, *SECRETS.values()))
    agent.checkpointer.close()
    log = (tmp_path / "runs.sqlite3").read_bytes()
    assert b"PATH=" in log
    assert not any(value.encode() in log for value in SECRETS.values())


def test_its_description_says_that_it_is_not_confined() -> None:
    (bash,) = [tool for tool in Workspace().tools() if tool.name == "bash"]
    assert "not confined" in bash.description
    assert bash.on_crash == "ask"
