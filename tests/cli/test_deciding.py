"""`approve`, `reject` and `answer`: nothing is decided without the flags that say so."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from durable_nb import Checkpointer, ScriptedModel, SQLiteCheckpointer
from tests.cli import shop
from tests.cli.conftest import SHOP, Said, Shell
from tests.cli.test_driving import wait_for

BOT = ("--agent", f"{SHOP}:bot")


def effects(folder: Path) -> list[str]:
    path = folder / "effects"
    return path.read_text().splitlines() if path.exists() else []


def decided(store: Checkpointer, execution_id: str = "r1") -> bool:
    return any(row.step_type == "resume" for row in store.list(execution_id))


@pytest.mark.parametrize(
    ("flags", "complete"),
    [
        ((), "--agent MODULE:NAME --yes"),
        (("--pause", "3"), "--agent MODULE:NAME --yes"),
        (("--yes",), "--agent MODULE:NAME --yes"),
        (("--pause", "3", *BOT, "--by", "alice"), f"--agent {SHOP}:bot --by alice --yes"),
        (
            ("--store", ".durable/runs.sqlite3", "--note", "it's fine", "--set", "amount=5"),
            "--agent MODULE:NAME --store .durable/runs.sqlite3 --note 'it'\"'\"'s fine' "
            "--set amount=5 --yes",
        ),
    ],
)
def test_approving_without_its_flags_shows_and_changes_nothing(
    shell: Shell, paused: str, store: Checkpointer, flags: tuple[str, ...], complete: str
) -> None:
    said = shell("approve", paused, *flags)
    assert said.code == 2
    assert 'context\n  order   "1042"\n  amount  20\n' in said.out
    assert 'Approve runs refund(order="1042", amount=20) again from the top' in said.out
    assert said.err.endswith(
        f"nothing was decided; to approve:\n  durable-nb approve r1 --pause 3 {complete}\n"
    )
    assert not decided(store)


def test_a_preview_as_json_holds_the_pause_and_the_sentence(shell: Shell, paused: str) -> None:
    said = shell("approve", paused, "--json")
    assert said.code == 2
    assert (said.json["would"], said.json["changed"]) == ("approve", [])
    assert said.json["next"].startswith("Approve runs refund(")
    (listed,) = shell("pending", "--json").json
    assert said.json["pending"] == listed


def test_approving_with_its_flags_goes_on_and_records_who_and_why(
    shell: Shell, paused: str, folder: Path
) -> None:
    flags = ("--pause", 3, "--yes", "--by", "alice", "--note", "they are kind")
    said = shell("approve", paused, *flags, *BOT)
    assert said.code == 0
    assert said.out == "Refunded. [/red] \\x1b[31m\n"
    assert effects(folder) == ["1042 20"]
    answer = shell("show", paused, "--json").json["steps"][3]["entry"]
    assert (answer["approved"], answer["by"], answer["reason"]) == (True, "alice", "they are kind")


def test_an_approver_may_edit_arguments(shell: Shell, paused: str, folder: Path) -> None:
    preview = shell("approve", paused, "--set", "amount=5")
    assert "with\n  amount  5\n" in preview.out
    assert shell("approve", paused, "--pause", 3, "--yes", "--set", "amount=5", *BOT).code == 0
    assert effects(folder) == ["1042 5"]
    assert "with amount=5" in shell("show", paused).out


def test_an_edit_that_the_tool_cannot_take_is_refused(
    shell: Shell, paused: str, store: Checkpointer
) -> None:
    said = shell("approve", paused, "--pause", 3, "--yes", "--set", 'amount="much"', *BOT)
    assert said.code == 1
    assert said.err.splitlines()[-1].startswith("InvalidInput: the edit was not taken: ")
    assert not decided(store)


def test_rejecting_hands_the_note_to_the_tool_and_the_model(
    shell: Shell, paused: str, folder: Path
) -> None:
    said = shell("reject", paused, "--pause", 3, "--note", "too [much]", "--by", "bob", *BOT)
    assert said.code == 0
    assert effects(folder) == []
    text = str(shell("show", paused, "--json").json)
    assert "[rejected by bob: too [much]]" in text
    assert "not paid: too [much]" in text


def test_rejecting_without_the_pause_shows_and_changes_nothing(
    shell: Shell, paused: str, store: Checkpointer
) -> None:
    said = shell("reject", paused, *BOT)
    assert said.code == 2
    assert said.err.endswith(
        f"nothing was decided; to reject:\n  durable-nb reject r1 --pause 3 --agent {SHOP}:bot\n"
    )
    assert said.out.endswith(
        "Reject runs refund again, too, and decision.approved is False there.\n"
    )
    assert not decided(store)


def test_the_command_that_a_preview_prints_decides(shell: Shell, paused: str, folder: Path) -> None:
    preview = shell("approve", paused, *BOT, "--by", "al ice", "--set", 'order="10 43"')
    command = shlex.split(preview.err.splitlines()[-1])
    assert command[0] == "durable-nb"
    assert shell(*command[1:]).code == 0
    assert effects(folder) == ["10 43 20"]


@pytest.mark.parametrize(
    "words",
    [
        ("approve", "r1", "--pause", "3", "--yes", *BOT),
        ("reject", "r1", "--pause", "3", *BOT),
        ("approve", "r1", "--pause", "3"),
        ("approve", "r1"),
        ("answer", "r1"),
    ],
)
def test_a_pause_that_is_answered_is_answered_once(
    shell: Shell, paused: str, folder: Path, words: tuple[str, ...]
) -> None:
    shell("approve", paused, "--pause", 3, "--yes", *BOT)
    said = shell(*words)
    assert (said.code, said.out) == (1, "")
    assert said.err.splitlines()[-1].startswith("AlreadyResumed: run 'r1'")
    assert effects(folder) == ["1042 20"]


_NO_PAUSE_2 = (
    "InvalidInput: run 'r1' has no pause 2; pause 3 (manager_approval) is open: "
    "durable-nb approve r1 --pause 3 --agent "
)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("approve", "r1", "--pause", "2", "--yes", *BOT), _NO_PAUSE_2),
        (("approve", "r1", "--pause", "2"), _NO_PAUSE_2),
        (("approve", "nobody"), "UnknownExecution: "),
        (("approve", "nobody", "--pause", "3", "--yes", *BOT), "UnknownExecution: "),
        (("approve", "r1", "--pause", "3", "--yes", "--agent", f"{SHOP}:slow"), "AgentMismatch: "),
        (
            ("approve", "r1", "--pause", "3", "--yes", "--agent", f"{SHOP}:toolless"),
            "MissingTool: run 'r1' needs the tool 'refund'",
        ),
        (("answer", "r1", "--pause", "3", "--run-again", *BOT), "InvalidInput: this pause asks"),
        (("answer", "r1", "--stop"), "InvalidInput: this pause asks for approval"),
    ],
)
def test_a_decision_that_is_refused_changes_nothing(
    shell: Shell, paused: str, store: Checkpointer, words: tuple[str, ...], error: str
) -> None:
    said = shell(*words)
    assert (said.code, said.out) == (1, "")
    assert said.err.splitlines()[-1].startswith(error)
    assert not decided(store)


@pytest.mark.parametrize(
    "words",
    [
        ("approve", "r1", "--pause", "3", "--yes"),
        ("reject", "r1", "--pause", "3"),
    ],
)
def test_deciding_without_an_agent_says_whose_run_it_is(
    shell: Shell, paused: str, store: Checkpointer, words: tuple[str, ...]
) -> None:
    said = shell(*words)
    assert (said.code, said.out) == (2, "")
    assert "run 'r1' is driven by agent 'refund-bot'" in said.err
    assert not decided(store)


@pytest.mark.parametrize("pause", ["three", "-3", "3.0", ""])
def test_a_pause_is_a_number(shell: Shell, paused: str, pause: str) -> None:
    said = shell("approve", paused, f"--pause={pause}", "--yes", *BOT)
    assert (said.code, said.out) == (2, "")


def test_code_that_changed_since_the_pause_is_named_before_it_runs(
    shell: Shell, paused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = ScriptedModel(["Refunded."])
    changed.name = "another model"
    monkeypatch.setattr(shop.bot, "llm", changed)
    preview = shell("approve", paused, *BOT)
    assert preview.out.endswith("changed since the pause: model\n")
    assert shell("approve", paused, *BOT, "--json").json["changed"] == ["model"]
    said = shell("approve", paused, "--pause", 3, "--yes", *BOT)
    assert said.err.startswith("changed since the pause: model\n")
    assert shell("show", paused, "--json").json["steps"][3]["entry"]["changed"] == ["model"]


def test_a_run_that_another_process_drives_cannot_be_approved_again(
    child: Callable[..., Said],
    beginning: Callable[..., subprocess.Popen[str]],
    folder: Path,
) -> None:
    (folder / "gated.py").write_text(GATED)
    agent = ("--agent", "gated:bot")
    assert child("run", "gated:bot", "Bring 1042", "--id", "r1").code == 0
    owner = beginning("approve", "r1", "--pause", 3, "--yes", *agent, "--by", "alice")
    wait_for(folder / "effects")
    late = child("approve", "r1", "--pause", 3, "--yes", *agent, "--by", "bob")
    assert (late.code, late.out) == (1, "")
    error = late.err.splitlines()[-1]
    assert error.startswith("AlreadyResumed: run 'r1': pause 3 is not open; alice approved")
    (folder / "go").touch()
    out, _ = owner.communicate()
    assert (owner.returncode, out) == (0, "Arrived.\n")
    assert effects(folder) == ["begun 1042", "1042 7"]


GATED = """
from durable_nb import Agent, ScriptedModel, call, interrupt
from tests.cli.shop import crawl

def bring(order: str) -> str:
    interrupt("may I?", {"order": order})
    return crawl(order)

bot = Agent("gated", ScriptedModel([call("bring", order="1042"), "Arrived."]), [bring])
"""


def test_of_several_shells_that_approve_one_wins(
    beginning: Callable[..., subprocess.Popen[str]], shell: Shell, paused: str, folder: Path
) -> None:
    racers = [beginning("approve", paused, "--pause", 3, "--yes", *BOT) for _ in range(4)]
    ends = [(racer.communicate()[1].splitlines()[-1], racer.returncode) for racer in racers]
    assert sorted(code for _, code in ends) == [0, 1, 1, 1]
    refused = [error for error, code in ends if code]
    assert [error.split(":")[0] for error in refused] == ["AlreadyResumed"] * 3
    assert effects(folder) == ["1042 20"]


@pytest.fixture
def doubtful(child: Callable[..., Said], shell: Shell, folder: Path) -> str:
    """The id of a run whose call was lost with its process, and which asks what became of it."""
    assert child("run", f"{SHOP}:postman", "Write", "--id", "r1").code == -9
    said = shell("resume", "r1", "--agent", f"{SHOP}:postman")
    assert "Say that it happened and what it returned" in said.out
    assert f"durable-nb answer r1 --pause 4 --agent {SHOP}:postman --happened JSON" in said.err
    return "r1"


@pytest.mark.parametrize(
    ("flags", "status", "letters", "told"),
    [
        (("--happened", '"it is there"'), "completed", 1, "it is there"),
        (("--run-again",), "completed", 2, "posted dear all"),
        (("--stop",), "cancelled", 1, ""),
    ],
)
def test_a_call_in_doubt_is_answered(
    shell: Shell,
    doubtful: str,
    folder: Path,
    flags: tuple[str, ...],
    status: str,
    letters: int,
    told: str,
) -> None:
    words = ("answer", doubtful, "--pause", 4, "--agent", f"{SHOP}:postman", "--by", "alice")
    assert shell(*words, *flags, "--json").json["status"] == status
    assert effects(folder) == ["dear all"] * letters
    shown = str(shell("show", doubtful, "--json").json)
    assert told in shown
    assert "'by': 'alice'" in shown or status == "cancelled"


def test_an_answer_without_its_flags_shows_and_changes_nothing(
    shell: Shell, doubtful: str, store: Checkpointer
) -> None:
    steps = len(store.list(doubtful))
    said = shell("answer", doubtful)
    assert said.code == 2
    assert "Say that it happened and what it returned" in said.out
    assert said.err.endswith(
        "durable-nb answer r1 --pause 4 --agent MODULE:NAME --happened JSON | --run-again | --stop\n"
    )
    typed = shell("answer", doubtful, "--happened", '{"a": 1}', "--by", "alice").err
    assert typed.endswith("""--agent MODULE:NAME --happened '{"a": 1}' --by alice\n""")
    assert shell("answer", doubtful, "--happened", "null").code == 2
    assert shell("answer", doubtful, "--happened", "nothing").code == 2
    assert shell("answer", doubtful, "--run-again", "--stop").code == 2
    assert len(store.list(doubtful)) == steps


def test_a_call_in_doubt_cannot_be_approved(
    shell: Shell, doubtful: str, store: Checkpointer
) -> None:
    said = shell("approve", doubtful, "--pause", 4, "--yes", "--agent", f"{SHOP}:postman")
    assert said.code == 1
    assert "InvalidInput: this pause asks what became of a call in doubt" in said.err
    assert store.list_pending_interrupts()


def test_a_pause_in_another_store_is_decided_there(
    child: Callable[..., Said], folder: Path
) -> None:
    here = ("--store", "here.db")
    assert child("run", f"{SHOP}:bot", "Refund", "--id", "r1", *here).code == 0
    assert child("approve", "r1", "--pause", 3, "--yes", *BOT).code == 1
    assert child("approve", "r1", "--pause", 3, "--yes", *BOT, *here).code == 0
    store = SQLiteCheckpointer(folder / "here.db")
    assert store.runs()[0].status == "completed"
    store.close()
