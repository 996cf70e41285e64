"""Killed at every point, same tree: a resumed run leaves the files that its plan calls for.

Holds the seed's sentence that a killed and resumed run reaches the end state of an uninterrupted
one, compared by a hash of its directory. The plan's files are written down in `plans`.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from durable_nb import tree_hash
from tests.support.agents import told
from tests.workspace import site
from tests.workspace.plans import FILES, PLANS

WRITES = 13 + 2 * 3  # the entries of the plan "files", and a begin and a keep for each edit
TOUCHES = 19  # operations on files by the tools of the plan "touches"
LOSE_ALL = """
from functools import partial
from pathlib import Path
from tests.workspace import test_every_kill
for name in sys.argv[3:]:
    folder = Path(sys.argv[2], name)
    folder.mkdir()
    site.lose(folder, partial(test_every_kill.drive_to_death, folder))
"""
KILLS = [
    *(f"files {when} {at}" for when in ("before", "after") for at in range(1, WRITES + 1)),
    *(f"touches before {at}" for at in range(1, TOUCHES + 1)),
]
PAST = [f"files before {WRITES + 1}", f"touches before {TOUCHES + 1}"]


def drive_to_death(folder: Path) -> None:
    """Drive the run of a folder to the point that its name says."""
    plan, when, at = folder.name.split()
    if plan == "files":
        site.dies_at_write(folder, PLANS[plan], int(at), when)
    else:
        site.dies_at_touch(folder, PLANS[plan], int(at))


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder a kill, each with what a process that is gone has left."""
    base = tmp_path_factory.mktemp("lost")
    with site.child(LOSE_ALL, base, *KILLS, *PAST) as process:
        assert process.wait() == 0
    return base


def expected(folder: Path) -> str:
    """The hash of the plan's files, put there by plain Python."""
    for path, text in FILES[folder.name.split()[0]].items():
        file = folder / "expected" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tree_hash(folder / "expected")


def finish(folder: Path) -> None:
    """Go on with the run in this process, which is not the one that died."""
    agent = site.agent(folder, PLANS[folder.name.split()[0]])
    match [run.status for run in agent.checkpointer.runs()]:
        case []:  # nothing of it was on disk
            result = site.start(agent, folder)
        case ["crashed"]:
            result = agent.resume("r")
        case statuses:
            assert (statuses, folder.name) == (["completed"], f"files after {WRITES}")
            return
    assert result.output == "Done."
    assert [text for text in told(result) if text.startswith("Error")] == []


@pytest.mark.parametrize("kill", KILLS)
def test_a_run_killed_at_any_point_and_resumed_leaves_the_tree_of_its_plan(
    lost: Path, kill: str
) -> None:
    folder = lost / kill
    assert int((folder / "ended").read_text()) == -signal.SIGKILL
    finish(folder)
    assert tree_hash(folder / "site") == expected(folder)


@pytest.mark.parametrize("past", PAST)
def test_these_are_all_the_points_there_are(lost: Path, past: str) -> None:
    assert (lost / past / "ended").read_text() == "0"
    assert tree_hash(lost / past / "site") == expected(lost / past)
