"""`%%durable`: what a cell does is decided by what is stored."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import traceback
from typing import Any

import pytest

from durable_nb import (
    Agent,
    AgentMismatch,
    Checkpointer,
    ExecutionExists,
    InvalidInput,
    MemoryCheckpointer,
    RunPaused,
    ScriptedModel,
    SQLiteCheckpointer,
    UnknownAgent,
    call,
)
from durable_nb.stores.open import default_store
from tests.notebook.conftest import ANSWER, Notebook, eventually
from tests.support.ledger import Ledger

CELL = "%%durable bot --id refund-1042 -o h\nRefund order 1042\n"


def test_a_cell_that_pauses_ends_and_shows_what_to_decide(notebook: Notebook, bot: Agent) -> None:
    ran = notebook(CELL)
    assert ran.error is None
    assert ran.value.status == "paused"
    assert "waiting for you · refund-1042" in ran.card
    assert "%durable approve refund-1042 --pause 3" in ran.card
    assert 'order: "1042"' in ran.card
    assert notebook("1 + 1").value == 2


def test_the_value_is_the_handle_also_under_its_name(notebook: Notebook, bot: Agent) -> None:
    assert notebook(CELL).value is notebook.names["h"]
    assert notebook("_.execution_id").value == "refund-1042"


def test_a_cell_of_a_paused_run_shows_its_card_again_and_asks_no_model(
    notebook: Notebook, bot: Agent
) -> None:
    first, again = notebook(CELL), notebook(CELL)
    assert first.card == again.card
    assert bot.llm.asked == 1


def test_a_cell_of_a_completed_run_shows_the_stored_answer(
    notebook: Notebook, bot: Agent, effects: Ledger
) -> None:
    notebook(CELL)
    notebook("%durable approve refund-1042")
    ran = notebook(CELL)
    assert ran.card.startswith("✓ from store, 0 model calls · refund-1042")
    assert ran.value.output == ANSWER
    assert (bot.llm.asked, effects.lines) == (2, ["1042 500"])


def test_a_cell_of_a_dead_run_goes_on_with_it_and_says_what_it_did(
    notebook: Notebook, effects: Ledger
) -> None:
    deaths = [KeyboardInterrupt()]

    def refund(order: str) -> str:
        """Pay an order back."""
        if deaths:
            raise deaths.pop()
        effects.add(order)
        return "paid"

    llm = ScriptedModel([call("refund", order="1042"), ANSWER])
    notebook.names["bot"] = Agent("refund-bot", llm, [refund])
    died = notebook(CELL)
    assert isinstance(died.error, KeyboardInterrupt)
    assert "stopped by you" in died.card
    assert notebook.names.get("h") is None
    ran = notebook(CELL)
    assert ran.value.status == "completed"
    assert "It had died at turn:0/tool:refund" in ran.card
    assert (llm.asked, effects.lines) == (2, ["1042"])


def test_a_cell_of_a_failed_run_goes_on_with_it(notebook: Notebook) -> None:
    llm = ScriptedModel([RuntimeError("503 from the provider"), ANSWER])
    notebook.names["bot"] = Agent("refund-bot", llm)
    failed = notebook(CELL)
    assert type(failed.error) is RuntimeError
    assert "503 from the provider" in failed.card
    assert "%durable resume refund-1042" in failed.card
    ran = notebook(CELL)
    assert ran.value.output == ANSWER
    assert "It had failed at turn:0" in ran.card


def test_an_error_of_the_users_keeps_their_frames_and_few_of_ours(notebook: Notebook) -> None:
    notebook(
        "class Broken:\n"
        "    def complete(self, messages, tools):\n"
        "        return deeper()\n"
        "def deeper():\n"
        "    raise LookupError('mine')\n"
        "from durable_nb import Agent\n"
        "bot = Agent('bot', Broken())"
    )
    ran = notebook("%%durable bot --id a\nhello")
    assert isinstance(ran.error, LookupError)
    frames = traceback.extract_tb(ran.error.__traceback__)
    assert [frame.name for frame in frames][-2:] == ["complete", "deeper"]
    assert len([frame for frame in frames if "durable_nb/" in frame.filename]) <= 1


def test_a_cell_of_a_run_that_another_thread_drives_changes_nothing(
    notebook: Notebook, store: Checkpointer
) -> None:
    go_on = threading.Event()
    inside = threading.Event()

    def refund(order: str) -> str:
        """Pay an order back."""
        inside.set()
        assert go_on.wait(60)
        return "paid"

    llm = ScriptedModel([call("refund", order="1042"), ANSWER])
    agent = notebook.names["bot"] = Agent("refund-bot", llm, [refund])
    other = threading.Thread(
        target=agent.run, args=["Refund order 1042"], kwargs={"execution_id": "refund-1042"}
    )
    other.start()
    assert inside.wait(60)
    before = len(store.list("refund-1042"))
    ran = notebook(CELL)
    rows = len(store.list("refund-1042"))
    go_on.set()
    other.join()
    assert rows == before
    assert ran.card.startswith("▸ running · refund-1042")
    assert "Another process or thread drives it" in ran.card


def test_another_prompt_under_the_same_id_is_an_error_that_shows_both(
    notebook: Notebook, bot: Agent
) -> None:
    notebook(CELL)
    ran = notebook("%%durable bot --id refund-1042\nRefund order 1043\n")
    assert isinstance(ran.error, ExecutionExists)
    assert "'Refund order 1042'" in str(ran.error)
    assert "'Refund order 1043'" in str(ran.error)


def test_without_an_id_the_same_prompt_is_the_same_run(notebook: Notebook, bot: Agent) -> None:
    first = notebook("%%durable bot\nRefund order 1042").value
    spaced = notebook("%%durable refund-bot\n\n  Refund order 1042  \n\n").value
    other = notebook("%%durable bot\nRefund order  1042").value
    assert first.execution_id == spaced.execution_id != other.execution_id
    assert first.execution_id.startswith("refund-bot-")
    assert len(first.execution_id) == len("refund-bot-") + 8


def test_new_starts_a_run_of_its_own_each_time_and_says_so(notebook: Notebook, bot: Agent) -> None:
    cell = "%%durable bot --id refund-1042 --new\nRefund order 1042"
    names = [notebook(cell).value.execution_id for _ in range(3)]
    assert names == ["refund-1042", "refund-1042-2", "refund-1042-3"]
    assert "--new" in notebook(cell).card


def test_another_agents_run_is_refused(notebook: Notebook, bot: Agent) -> None:
    notebook(CELL)
    notebook.names["other"] = Agent("other-bot", ScriptedModel(["hello"]))
    ran = notebook("%%durable other --id refund-1042\nRefund order 1042")
    assert isinstance(ran.error, AgentMismatch)


def test_a_cell_that_was_refused_changes_nothing_of_who_drives_the_run(
    notebook: Notebook, bot: Agent
) -> None:
    notebook(CELL)
    notebook.names["other"] = Agent("other-bot", ScriptedModel(["hello"]))
    notebook("%%durable other --id refund-1042\nRefund order 1042")
    notebook("%%durable other --id refund-1042\nAnother prompt")
    assert notebook("%durable approve refund-1042 --pause 3").value.status == "completed"


def test_an_unknown_agent_is_named_beside_those_that_there_are(
    notebook: Notebook, bot: Agent
) -> None:
    ran = notebook("%%durable bott\nhello")
    assert isinstance(ran.error, UnknownAgent)
    assert str(ran.error) == (
        "no agent 'bott' is defined here; run the cell that defines it. There are bot "
        "('refund-bot'); did you mean bot?"
    )


def test_two_agents_of_one_name_have_to_be_told_apart(notebook: Notebook, bot: Agent) -> None:
    notebook.names["twin"] = Agent("refund-bot", ScriptedModel(["hello"]))
    ran = notebook("%%durable refund-bot\nhello")
    assert isinstance(ran.error, InvalidInput)
    assert str(ran.error).startswith("2 agents here are named 'refund-bot': bot and twin; ")
    assert "%%durable bot" in str(ran.error)
    assert "--agent bot" in str(ran.error)


def test_an_agent_with_another_store_is_refused_with_the_command_that_helps(
    notebook: Notebook, tmp_path: Any
) -> None:
    theirs = SQLiteCheckpointer(tmp_path / "theirs.sqlite3")
    notebook.names["bot"] = Agent("bot", ScriptedModel(["hello"]), checkpointer=theirs)
    error = notebook("%%durable bot --id a\nhello").error
    assert isinstance(error, InvalidInput)
    command = f"%durable use {tmp_path / 'theirs.sqlite3'}"
    assert command in str(error)
    assert "runs.sqlite3" in str(error)
    assert notebook(command).error is None
    assert notebook("%%durable bot --id a\nhello").value.output == "hello"
    theirs.close()


def test_a_store_without_a_path_is_chosen_by_its_agents_variable(notebook: Notebook) -> None:
    memory = MemoryCheckpointer()
    notebook.names["bot"] = Agent("bot", ScriptedModel(["hello"]), checkpointer=memory)
    assert "%durable use bot" in str(notebook("%%durable bot --id a\nhello").error)
    assert notebook("%durable use bot").error is None
    assert notebook("%%durable bot --id a\nhello").value.output == "hello"


def test_stop_raises_at_a_pause_in_one_line(notebook: Notebook, bot: Agent) -> None:
    ran = notebook("%%durable bot --id refund-1042 --on-pause stop\nRefund order 1042\n")
    assert isinstance(ran.error, RunPaused)
    assert len(ran.error._render_traceback_()) == 1
    assert "waiting for you" in ran.card


def test_a_handle_can_be_printed_when_its_run_is_gone(notebook: Notebook, bot: Agent) -> None:
    handle = notebook(CELL).value
    default_store().cancel("refund-1042")
    default_store().delete_execution("refund-1042")
    assert repr(handle) == "<run 'refund-1042': UnknownExecution>"


def test_an_interrupted_cell_leaves_its_run_live_until_its_async_tool_has_left(
    notebook: Notebook, effects: Ledger
) -> None:
    inside, go = threading.Event(), threading.Event()

    async def refund(order: str) -> str:
        """Pay an order back."""
        inside.set()
        try:
            await asyncio.sleep(0 if effects.lines else 3600)
        finally:
            while not go.is_set():
                await asyncio.sleep(0.001)
            effects.add(order)
        return "paid"

    def interrupt_kernel() -> None:
        assert inside.wait(30)
        os.kill(os.getpid(), signal.SIGINT)

    llm = ScriptedModel([call("refund", order="1042"), ANSWER])
    notebook.names["bot"] = Agent("refund-bot", llm, [refund])
    threading.Thread(target=interrupt_kernel).start()
    try:
        assert isinstance(notebook(CELL).error, KeyboardInterrupt)
        assert [run.status for run in default_store().runs()] == ["running"]
    finally:
        go.set()
    notebook.names["bot"].resume("refund-1042")
    assert effects.lines == ["1042", "1042"]


@pytest.mark.parametrize("name", ["1x", "class", "a.b", "''"])
def test_a_name_that_no_variable_can_have_is_refused_before_anything_runs(
    notebook: Notebook, bot: Agent, name: str
) -> None:
    for line in (f"%%durable bot --id refund-1042 -o {name}", f"%%durable_sql -o {name}"):
        ran = notebook(f"{line}\nselect 1\n")
        assert isinstance(ran.error, InvalidInput)
        assert "variable's name" in str(ran.error)
    assert bot.llm.asked == 0


def test_wait_ends_with_a_clear_error_at_its_timeout(notebook: Notebook, bot: Agent) -> None:
    line = "%%durable bot --id refund-1042 --on-pause wait"
    assert isinstance(notebook(f"{line}\nRefund order 1042").error, InvalidInput)
    ran = notebook(f"{line} --timeout 0.3\nRefund order 1042")
    assert isinstance(ran.error, RunPaused)
    assert "nobody decided within 0.3 s" in str(ran.error)
    assert "This cell waits" not in ran.card


def test_wait_sees_a_decision_that_was_made_elsewhere(
    notebook: Notebook, bot: Agent, store: Checkpointer, effects: Ledger
) -> None:
    from durable_nb import Resume

    def decide() -> None:
        eventually(lambda: any(each.status == "paused" for each in store.runs()))
        bot.resume("refund-1042", resume_value=Resume(approved=True, by="alice"))

    other = threading.Thread(target=decide)
    other.start()
    cell = "%%durable bot --id refund-1042 --on-pause wait --timeout 60\nRefund order 1042"
    ran = notebook(cell)
    other.join()
    assert ran.value.status == "completed"
    assert "approved by alice" in ran.card
    assert effects.lines == ["1042 500"]


def test_quiet_shows_a_card_only_where_a_person_is_needed(notebook: Notebook, bot: Agent) -> None:
    notebook.names["calm"] = Agent("calm", ScriptedModel(["hello"]))
    assert notebook("%%durable calm --id a --quiet\nhello").shown == []
    paused = notebook("%%durable bot --id b --quiet\nRefund order 1042")
    assert "waiting for you" in paused.card
    notebook("%durable approve b")
    assert "completed" in paused.card


@pytest.mark.parametrize("body", ["", "\n", "   \n\n"])
def test_an_empty_prompt_is_refused_and_stores_nothing(
    notebook: Notebook, bot: Agent, store: Checkpointer, body: str
) -> None:
    ran = notebook(f"%%durable bot --id a\n{body}" if body else "%%durable bot --id a")
    assert isinstance(ran.error, InvalidInput)
    assert not store.runs()


def test_a_huge_prompt_is_refused_and_stores_nothing(
    notebook: Notebook, bot: Agent, store: Checkpointer
) -> None:
    ran = notebook("%%durable bot --id a\n" + "x" * 10_000_001)
    assert isinstance(ran.error, InvalidInput)
    assert not store.runs()
