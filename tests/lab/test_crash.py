"""A child killed with SIGKILL before, inside and after each step, and resumed elsewhere.

What each run may have cost is said in plain numbers, from DESIGN R3 and R4: one step is in flight.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from durable_nb import Agent, AlreadyResumed, ScriptedModel, call, lab, tool
from durable_nb.core.nodes import listing
from durable_nb.runtime.tools import OnCrash
from durable_nb.workspace import Workspace
from tests.lab import shop
from tests.support.postgres import postgres

TOOL = "turn:0/tool:refund"
RESUME = """
import sys
from pathlib import Path
from tests.lab import shop
result = shop.bot(Path(sys.argv[1]), remembered=sys.argv[2] == "yes").resume("refund-1042")
print(result.status, result.output)
"""


def killed(folder: Path, at: str, when: lab.When, *, remembered: bool = True) -> lab.Crash:
    agent = shop.bot(folder, remembered=remembered)
    return lab.crash(agent, "Refund order 1042", at=at, when=when, execution_id="refund-1042")


def resumed_elsewhere(folder: Path, *, remembered: bool = True) -> str:
    arguments = [str(folder), "yes" if remembered else "no"]
    command = [sys.executable, "-c", RESUME, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def spent(folder: Path) -> tuple[int, int]:
    """How often the model was asked and the card charged, in all processes."""
    return len(shop.noted(folder / "asked")), len(shop.noted(folder / "charges"))


@pytest.mark.parametrize(
    ("at", "when", "asked"),
    [
        ("turn:0", "before", 2),
        ("turn:0", "during", 3),
        ("turn:0", "after", 3),
        (TOOL, "before", 2),
        (TOOL, "during", 2),
        (TOOL, "after", 2),
        ("turn:1", "before", 2),
        ("turn:1", "during", 3),
        ("turn:1", "after", 3),
    ],
)
def test_a_run_killed_anywhere_is_resumed_in_another_process_with_one_charge(
    tmp_path: Path, at: str, when: lab.When, asked: int
) -> None:
    crash = killed(tmp_path, at, when)
    assert crash.signal == signal.SIGKILL
    assert crash.rows[-1].node_id == at
    assert resumed_elsewhere(tmp_path) == "completed Refunded."
    assert spent(tmp_path) == (asked, 1)


@pytest.mark.parametrize(("when", "charges"), [("before", 1), ("during", 2), ("after", 2)])
def test_a_charge_that_is_not_wrapped_repeats_if_it_was_in_flight(
    tmp_path: Path, when: lab.When, charges: int
) -> None:
    killed(tmp_path, TOOL, when, remembered=False)
    resumed_elsewhere(tmp_path, remembered=False)
    assert spent(tmp_path) == (2, charges)


def test_a_run_on_postgresql_is_killed_and_resumed_with_one_charge(tmp_path: Path) -> None:
    with closing(postgres(tmp_path)) as store:
        agent = shop.bot(tmp_path, store=store)
        lab.crash(agent, "Refund", at=TOOL, when="during", execution_id="refund-1042")
        assert agent.resume("refund-1042").output == "Refunded."
        assert spent(tmp_path) == (2, 1)


@pytest.mark.parametrize(
    ("at", "when", "before_resume"),
    [
        ("turn:0", "before", (0, 0)),
        ("turn:0", "during", (1, 0)),
        (TOOL, "before", (1, 0)),
        (TOOL, "during", (1, 1)),
        (TOOL, "after", (1, 1)),
        ("run_end", "before", (2, 1)),
        ("run_end", "after", (2, 1)),
    ],
)
def test_the_world_at_the_moment_of_death_is_what_the_point_says(
    tmp_path: Path, at: str, when: lab.When, before_resume: tuple[int, int]
) -> None:
    killed(tmp_path, at, when)
    assert spent(tmp_path) == before_resume


def test_rows_cannot_tell_an_effect_that_happened_from_one_that_did_not(tmp_path: Path) -> None:
    """Only what is wrapped leaves a mark; that is why people can be asked."""
    left = []
    for when in ("before", "after"):
        (folder := tmp_path / when).mkdir()
        crash = killed(folder, TOOL, when, remembered=False)
        left.append(([(row.number, row.entry) for row in crash.rows], spent(folder)))
    (rows, nothing), (same_rows, charged) = left
    assert rows == same_rows
    assert (nothing, charged) == ((1, 0), (1, 1))


def test_the_rows_of_a_killed_and_resumed_run_tell_what_was_done_again(tmp_path: Path) -> None:
    killed(tmp_path, TOOL, "during")
    resumed_elsewhere(tmp_path)
    assert listing(shop.store_in(tmp_path).list("refund-1042")).splitlines() == [
        "#0 turn:0              llm_call   completed",
        "#0 turn:0/tool:refund  tool_call  completed",
        "#0 turn:0/tool:refund  resume     completed",
        "#1 turn:1              llm_call   completed",
        "#2 run_end             run_end    completed",
    ]


def test_a_crash_says_what_is_left_and_what_a_resume_will_do(tmp_path: Path) -> None:
    assert str(killed(tmp_path, TOOL, "during")).splitlines() == [
        f"run 'refund-1042': its process got SIGKILL during {TOOL}",
        "#0 turn:0              llm_call   completed",
        "#0 turn:0/tool:refund  tool_call  completed",
        'Resume runs refund(order="1042", amount=20) again from the top, with its saved '
        "arguments. The model is not asked again.",
    ]


def test_a_killed_run_is_seen_as_crashed_at_once(tmp_path: Path) -> None:
    killed(tmp_path, TOOL, "before")
    (run,) = shop.store_in(tmp_path).runs()
    assert run.status == "crashed"


def test_a_run_that_is_killed_works_in_the_directory_it_is_given(tmp_path: Path) -> None:
    desk = tmp_path / "desk"
    desk.mkdir()
    script = ScriptedModel([call("write", path="letter", content="Paid."), "Written."])
    clerk = Agent("clerk", script, Workspace().tools(), checkpointer=shop.store_in(tmp_path))
    lab.crash(clerk, "Write", at="turn:0/tool:write", when="after", execution_id="r", workdir=desk)
    assert (desk / "letter").read_text() == "Paid."
    assert clerk.resume("r").status == "completed"
    assert clerk.checkpointer.load("r").run.workdir == str(desk)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_run_killed_at_its_end_is_over(tmp_path: Path, when: lab.When) -> None:
    killed(tmp_path, "run_end", when)
    with pytest.raises(AlreadyResumed, match="completed"):
        shop.bot(tmp_path).resume("refund-1042")
    assert spent(tmp_path) == (2, 1)


def test_the_log_of_a_killed_run_names_the_same_agent_as_any_other_run(tmp_path: Path) -> None:
    killed(tmp_path, "turn:0", "before")
    agent = shop.bot(tmp_path)
    agent.run("Refund order 1042", execution_id="whole")
    store = shop.store_in(tmp_path)
    assert store.load("refund-1042").run.fingerprint == store.load("whole").run.fingerprint


@pytest.mark.parametrize(
    ("on_crash", "said"),
    [("ask", "asks a person what became of pay()."), ("fail", "tells the model that pay() is")],
)
def test_a_crash_in_a_tool_that_is_not_to_run_again_says_what_a_resume_does_instead(
    tmp_path: Path, on_crash: OnCrash, said: str
) -> None:
    pay = tool(name="pay", on_crash=on_crash)(lambda: "paid")
    script = ScriptedModel([call("pay"), "Done."])
    bot = Agent("payer", script, [pay], checkpointer=shop.store_in(tmp_path))
    crash = lab.crash(bot, "Pay", at="turn:0/tool:pay", when="before", execution_id="r")
    assert crash.explain.startswith(f"Resume {said}")
