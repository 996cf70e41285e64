"""`run`, `resume` and `fork`: what they drive, what they print, what they refuse."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from durable_nb import Checkpointer
from durable_nb.stores.open import open_store
from tests.cli.conftest import SHOP, Said, Shell

BOT = ("--agent", f"{SHOP}:bot")


def wait_for(path: Path, lines: int = 1) -> None:
    """Until the file has so many lines; the test's time limit ends it otherwise."""
    while not path.exists() or len(path.read_text().splitlines()) < lines:
        time.sleep(0.01)


def test_a_run_prints_its_answer_and_says_the_rest_on_stderr(shell: Shell) -> None:
    said = shell("run", f"{SHOP}:greeter", "Say hello", "--id", "r1")
    assert (said.code, said.out) == (0, "hello\nworld\n")
    assert said.err.endswith("run r1 is completed; 0 tokens\n")


def test_a_run_without_an_id_names_the_one_it_made_once_it_is_on_disk(shell: Shell) -> None:
    refused = shell("run", f"{SHOP}:offline", " ")
    assert "run run-" not in refused.err
    said = shell("run", f"{SHOP}:offline", "Say hello")
    assert said.code == 1
    first, error = said.err.splitlines()[-2:]
    assert first.startswith("run run-")
    assert f"durable-nb resume {first.split()[1]} --agent {SHOP}:offline" in error


def test_a_run_that_pauses_shows_what_it_asks_and_how_to_decide(shell: Shell) -> None:
    said = shell("run", f"{SHOP}:bot", "Refund order 1042", "--id", "r 1")
    assert said.code == 0
    assert "the refund looks at" not in said.out
    assert 'order   "1042"\n  amount  20\n' in said.out
    assert "Approve runs refund" in said.out
    assert f"durable-nb approve 'r 1' --pause 3 --agent {SHOP}:bot --yes\n" in said.err


def test_json_of_a_run_is_one_document_whatever_its_tools_print(shell: Shell) -> None:
    said = shell("run", f"{SHOP}:bot", "Refund order 1042", "--id", "r1", "--json")
    assert said.json == {
        "execution_id": "r1",
        "status": "paused",
        "output": None,
        "usage": {"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "cost": None},
        "pending_interrupt": {
            "reason": "manager_approval",
            "context": {"order": "1042", "amount": 20},
            "node_id": "turn:0/tool:refund",
            "agent_path": "agent:refund-bot/tool:refund",
            "number": 3,
        },
    }


def test_a_run_keeps_its_workdir_and_tags(shell: Shell, folder: Path) -> None:
    place = folder / "work"
    words = ("--id", "r1", "--workdir", place, "--tag", "shop", "--tag", "new")
    assert shell("run", f"{SHOP}:greeter", "Say hello", *words).code == 0
    (run,) = shell("runs", "--json").json
    assert (run["workdir"], run["tags"]) == (str(place), ["shop", "new"])


def test_an_id_that_has_rows_is_refused_and_nothing_happens(
    shell: Shell, paused: str, store: Checkpointer
) -> None:
    said = shell("run", f"{SHOP}:bot", "Refund order 1042", "--id", paused)
    assert (said.code, said.out) == (1, "")
    assert said.err.splitlines()[-1].startswith("ExecutionExists: run 'r1' has rows already")
    assert len(store.list(paused)) == 3


@pytest.mark.parametrize(
    ("agent", "code", "words"),
    [
        ("shop", 2, "write MODULE:NAME"),
        (":bot", 2, "write MODULE:NAME"),
        ("no_such_module:bot", 1, "UnknownAgent: no module 'no_such_module' in "),
        (f"{SHOP}:nobody", 1, f"UnknownAgent: 'nobody' in {SHOP} is no agent; there are bot, "),
        (f"{SHOP}:number", 1, f"UnknownAgent: 'number' in {SHOP} is no agent"),
        (f"{SHOP}:bott", 1, "; did you mean bot?"),
        ("shop.py:bot", 1, "that is a file's name; did you mean shop:bot?"),
        ("tests/cli/shop.py:bot", 1, "did you mean tests.cli.shop:bot?"),
        ("tests.cli:bot", 1, "UnknownAgent: 'bot' in tests.cli is no agent; there is none"),
    ],
)
def test_an_agent_that_is_not_there_is_said_to_be(
    shell: Shell, agent: str, code: int, words: str
) -> None:
    said = shell("run", agent, "Say hello")
    assert (said.code, said.out) == (code, "")
    assert words in said.err.splitlines()[-1]


def test_an_agent_may_be_an_attribute_of_something(shell: Shell) -> None:
    assert shell("run", f"{SHOP}:Counter.bots", "Say hello").out == "hello\nworld\n"


def test_the_current_directory_is_searched_for_the_agent(
    child: Callable[..., Said], folder: Path
) -> None:
    (folder / "own.py").write_text("from tests.cli.shop import greeter\n")
    assert child("run", "own:greeter", "Say hello").out == "hello\nworld\n"


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("import json\njson.nothing\n", "AttributeError: module 'json' has no attribute 'nothing'"),
        ("import no_such_thing\n", "ModuleNotFoundError: No module named 'no_such_thing'"),
        ("(\n", "SyntaxError: '(' was never closed"),
    ],
)
def test_a_module_that_cannot_be_imported_says_what_and_where(
    child: Callable[..., Said], folder: Path, source: str, error: str
) -> None:
    (folder / "own.py").write_text(source)
    said = child("run", "own:bot", "Say hello")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(error)
    assert said.err.endswith("mend own, nothing was run\n")
    assert said.err.count("\n") == 1


def test_an_exception_that_escapes_a_run_is_one_line_and_the_run_goes_on_later(
    shell: Shell, folder: Path
) -> None:
    said = shell("run", f"{SHOP}:offline", "Say hello", "--id", "r1")
    assert said.code == 1
    assert said.err.splitlines()[-1] == (
        "ConnectionError: 503 Service \\x1b[31mUnavailable (at shop.py:"
        f"{_line_of('raise ConnectionError')}); the run is on disk, go on with: "
        f"durable-nb resume r1 --agent {SHOP}:offline"
    )
    assert shell("runs", "--json").json[0]["status"] == "failed"
    (folder / "online").touch()
    assert shell("resume", "r1", "--agent", f"{SHOP}:offline").out == "back again\n"


def _line_of(text: str) -> int:
    source = Path(__file__).with_name("shop.py").read_text().splitlines()
    return next(at for at, line in enumerate(source, start=1) if text in line)


@pytest.mark.parametrize("command", ["resume", "fork"])
def test_without_an_agent_it_says_whose_run_it_is(shell: Shell, paused: str, command: str) -> None:
    said = shell(command, paused)
    assert (said.code, said.out) == (2, "")
    assert "run 'r1' is driven by agent 'refund-bot'" in said.err
    assert "--agent MODULE:NAME" in said.err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("resume", "nobody", *BOT), "UnknownExecution: no run 'nobody'"),
        (("resume", "nobody"), "UnknownExecution: no run 'nobody'"),
        (("resume", "r1", *BOT), "RunPaused: run 'r1' waits for 'manager_approval' (pause 3)"),
        (("resume", "r1", "and more", *BOT), "RunPaused: "),
        (("resume", "r1", "--agent", f"{SHOP}:greeter"), "AgentMismatch: "),
        (("fork", "nobody", *BOT), "UnknownExecution: "),
        (("fork", "r1", *BOT, "--at", "turn:9"), "ForkRefused: "),
        (("fork", "r1", *BOT, "--id", "r1"), "ExecutionExists: "),
        (("fork", "r1", *BOT, "--at", "1", "--edit", "amount=1"), "InvalidInput: "),
        (("run", f"{SHOP}:bot", " "), "InvalidInput: a prompt is text with something in it"),
        (("run", f"{SHOP}:bot", "x", "--id", ""), "InvalidInput: an execution_id is text"),
    ],
)
def test_what_cannot_be_is_one_line_and_changes_nothing(
    shell: Shell, paused: str, store: Checkpointer, words: tuple[str, ...], error: str
) -> None:
    said = shell(*words)
    assert (said.code, said.out) == (1, "")
    assert said.err.splitlines()[-1].startswith(error)
    assert [run.steps for run in store.runs()] == [3]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (
            ("resume", "r1", *BOT),
            f"; here: durable-nb approve r1 --pause 3 --agent {SHOP}:bot --yes",
        ),
        (("resume", "r11", *BOT), "; did you mean r1?; here: durable-nb runs"),
        (("show", "r11"), "; did you mean r1?; here: durable-nb runs"),
        (("fork", "zzzzz", *BOT), "with views.runs(); here: durable-nb runs"),
        (
            ("cancel", "r11", "--store", ".durable/runs.sqlite3"),
            "; did you mean r1?; here: durable-nb runs --store .durable/runs.sqlite3",
        ),
    ],
)
def test_an_error_about_a_run_ends_with_what_to_type(
    shell: Shell, paused: str, words: tuple[str, ...], hint: str
) -> None:
    said = shell(*words)
    assert said.code == 1
    assert said.err.endswith(f"{hint}\n")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("aprove", "no command 'aprove'; did you mean approve?; see durable-nb --help"),
        ("\x1b[31m", "no command '\\x1b[31m'; see durable-nb --help"),
    ],
)
def test_a_command_that_there_is_not_comes_with_the_one_that_was_meant(
    shell: Shell, command: str, says: str
) -> None:
    said = shell(command, "r1")
    assert (said.code, said.out) == (2, "")
    assert said.err.endswith(f"durable-nb: error: {says}\n")


def test_the_step_at_which_a_run_died_is_shown_as_such(
    child: Callable[..., Said], shell: Shell
) -> None:
    assert child("run", f"{SHOP}:postman", "Write", "--id", "r1").code == -signal.SIGKILL
    steps = [line.split()[1:5] for line in shell("show", "r1").out.splitlines() if "turn:0" in line]
    assert steps[0][:3] == ["turn:0", "llm_call", "completed"]
    assert steps[1] == ["turn:0/tool:post", "tool_call", "died", "here"]
    assert shell("show", "r1", "--json").json["steps"][1]["status"] == "completed"


def test_the_commands_that_a_pause_comes_with_name_the_store_that_was_named(shell: Shell) -> None:
    here = ("--store", "here.db")
    said = shell("run", f"{SHOP}:bot", "Refund", "--id", "r1", *here)
    assert f"--pause 3 --agent {SHOP}:bot --store here.db --yes\n" in said.err
    assert "--agent MODULE:NAME --store here.db --yes\n" in shell("pending", *here).out
    open_store("here.db").close()


def test_a_prompt_goes_on_in_the_next_run_of_the_session(shell: Shell) -> None:
    shell("run", f"{SHOP}:greeter", "Say hello", "--id", "r1")
    said = shell("resume", "r1", "And again", "--agent", f"{SHOP}:greeter", "--json")
    assert (said.json["execution_id"], said.json["output"]) == ("r1-2", "again")


def test_resuming_elsewhere_has_to_be_meant(shell: Shell, folder: Path) -> None:
    offline = ("--agent", f"{SHOP}:offline")
    shell("run", f"{SHOP}:offline", "Say hello", "--id", "r1", "--workdir", folder / "a")
    (folder / "online").touch()
    said = shell("resume", "r1", *offline, "--workdir", folder / "b")
    assert said.code == 1
    assert said.err.splitlines()[-1].startswith("InvalidInput: run 'r1' works in ")
    assert shell("resume", "r1", *offline, "--workdir", folder / "b", "--move").code == 0
    assert shell("show", "r1", "--json").json["workdir"] == str(folder / "b")


def test_a_fork_runs_its_edited_call_and_leaves_the_original(shell: Shell, paused: str) -> None:
    at = ("--at", "turn:0/tool:refund", "--edit", "amount=5", "--id", "r2")
    forked = shell("fork", paused, *BOT, *at, "--json").json
    assert (forked["execution_id"], forked["status"]) == ("r2", "paused")
    assert forked["pending_interrupt"]["context"] == {"order": "1042", "amount": 5}
    assert [run["steps"] for run in shell("runs", "--json").json] == [2, 3]
    assert shell("show", "r2", "--json").json["parent"] == "r1"


def test_a_fork_by_number_can_say_something_else(shell: Shell) -> None:
    shell("run", f"{SHOP}:greeter", "Say hello", "--id", "r1")
    words = ("--at", "1", "--prompt", "In French", "--agent", f"{SHOP}:greeter", "--id", "r2")
    assert shell("fork", "r1", *words).code == 0
    assert "In French" in shell("show", "r2").out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("fork", "r1", "--edit", "amount"), "'amount' is not NAME=JSON"),
        (("fork", "r1", "--edit", "a b=1"), "'a b=1' is not NAME=JSON"),
        (("fork", "r1", "--edit", "note=text"), "'text' is not JSON"),
        (("fork", "r1", "--edit", "n=NaN"), "'NaN' is not JSON"),
        (("resume",), "required: ID"),
        (("run", f"{SHOP}:bot"), "required: PROMPT"),
        (("sing",), "no command 'sing'"),
        (("runs", "--js"), "unrecognized arguments: --js"),
        ((), "required: COMMAND"),
    ],
)
def test_a_wrong_command_line_is_a_usage_error(
    shell: Shell, words: tuple[str, ...], complaint: str
) -> None:
    said = shell(*words)
    assert (said.code, said.out) == (2, "")
    assert complaint in said.err


def test_an_agent_with_a_store_of_its_own_uses_it(child: Callable[..., Said], folder: Path) -> None:
    assert child("run", f"{SHOP}:elsewhere", "Say hi", "--id", "r1").out == "hi\n"
    assert child("runs", "--store", "mine.db", "--json").json[0]["execution_id"] == "r1"
    assert not (folder / ".durable").exists()


def test_a_store_that_is_not_the_agents_is_refused(
    child: Callable[..., Said], folder: Path
) -> None:
    said = child("run", f"{SHOP}:elsewhere", "Say hi", "--store", "other.db")
    assert said.code == 1
    assert "InvalidInput: agent 'elsewhere' keeps its runs in " in said.err
    assert "mine.db'" in said.err
    assert "other.db'" in said.err
    assert not (folder / "mine.db").exists()
    assert not (folder / "other.db").exists()


def test_store_names_the_file_for_agents_without_one(
    child: Callable[..., Said], folder: Path
) -> None:
    assert child("run", f"{SHOP}:greeter", "Say hello", "--store", "here.db").code == 0
    assert (folder / "here.db").exists()
    assert not (folder / ".durable").exists()


def test_a_run_killed_in_its_tool_is_resumed_from_the_shell(
    beginning: Callable[..., subprocess.Popen[str]],
    child: Callable[..., Said],
    folder: Path,
) -> None:
    owner = beginning("run", f"{SHOP}:slow", "Bring 1042", "--id", "r1")
    wait_for(folder / "effects")
    assert child("runs", "--json").json[0]["status"] == "running"
    refused = child("resume", "r1", "--agent", f"{SHOP}:slow")
    assert refused.code == 1
    assert refused.err.splitlines()[-1].startswith("RunIsLive: run 'r1' is driven by a living")
    owner.kill()
    owner.wait()
    assert child("runs", "--json").json[0]["status"] == "crashed"
    assert "Resume runs crawl" in child("show", "r1").out
    (folder / "go").touch()
    assert child("resume", "r1", "--agent", f"{SHOP}:slow").out == "Arrived.\n"
    again = child("resume", "r1", "--agent", f"{SHOP}:slow")
    assert again.err.splitlines()[-1].startswith("AlreadyResumed: run 'r1' is over: completed")
    lines = (folder / "effects").read_text().splitlines()
    assert lines == ["begun 1042", "begun 1042", "1042 7"]


def test_a_stopped_owner_is_taken_over_when_that_is_said(
    beginning: Callable[..., subprocess.Popen[str]],
    child: Callable[..., Said],
    folder: Path,
) -> None:
    owner = beginning("run", f"{SHOP}:slow", "Bring 1042", "--id", "r1")
    wait_for(folder / "effects")
    owner.send_signal(signal.SIGSTOP)
    (folder / "go").touch()
    assert child("resume", "r1", "--agent", f"{SHOP}:slow", "--take-over").out == "Arrived.\n"
    owner.send_signal(signal.SIGCONT)
    _, err = owner.communicate()
    assert owner.returncode == 1
    assert err.splitlines()[-1].startswith("StaleLog: ")
    assert (folder / "effects").read_text().splitlines().count("1042 7") == 1


def test_an_interrupt_leaves_the_run_resumable_and_exits_130(
    beginning: Callable[..., subprocess.Popen[str]],
    child: Callable[..., Said],
    folder: Path,
) -> None:
    owner = beginning("run", f"{SHOP}:slow", "Bring 1042", "--id", "r1")
    wait_for(folder / "effects")
    owner.send_signal(signal.SIGINT)
    out, err = owner.communicate()
    assert (owner.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert f"go on with: durable-nb resume r1 --agent {SHOP}:slow\n" in err
    (folder / "go").touch()
    assert child("resume", "r1", "--agent", f"{SHOP}:slow").out == "Arrived.\n"


def test_a_cancelled_run_stops_at_its_next_step(
    beginning: Callable[..., subprocess.Popen[str]],
    child: Callable[..., Said],
    folder: Path,
) -> None:
    owner = beginning("run", f"{SHOP}:slow", "Bring 1042", "--id", "r1")
    wait_for(folder / "effects")
    assert child("cancel", "r1", "--by", "alice").code == 0
    (folder / "go").touch()
    out, err = owner.communicate()
    assert (owner.returncode, out) == (0, "")
    assert "run r1 is cancelled" in err
    assert (folder / "effects").read_text() == "begun 1042\n"
