"""R7: conversations are listed, finished and continued; a run remembers where it works."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from durable_nb import (
    Checkpointer,
    DurableError,
    InvalidInput,
    Resume,
    RunIsLive,
    RunPaused,
    ScriptedModel,
    UnknownExecution,
    call,
    current,
    interrupt,
)
from durable_nb.core.state import state_of
from tests.support.agents import bot, nodes, told


def note_with(effects):
    def note(text: str) -> str:
        effects.add(text)
        return f"noted {text}"

    return note


def test_a_prompt_after_the_end_begins_the_next_run_of_the_session(store: Checkpointer):
    script = ["first", "second", "third"]
    bot(store, script).run("one", execution_id="talk")
    second = bot(store, script).resume("talk", prompt="two")
    third = bot(store, script).resume("talk", prompt="three")
    assert [(each.execution_id, each.output) for each in (second, third)] == [
        ("talk-2", "second"),
        ("talk-3", "third"),
    ]
    said = [(message.role, message.content) for message in third.messages]
    assert said[::2] == [("user", "one"), ("user", "two"), ("user", "three")]
    assert nodes(store, "talk-3") == [("turn:0", "completed"), ("run_end", "completed")]
    (session,) = store.sessions()
    assert (session.session, session.newest, session.runs, session.prompt) == (
        "talk", "talk-3", 3, "one",
    )  # fmt: skip
    assert list(store.session("talk-2")) == ["talk", "talk-2", "talk-3"]


def test_any_run_of_a_session_stands_for_it(store: Checkpointer):
    script = ["first", "second", "third"]
    bot(store, script).run("one", execution_id="talk")
    bot(store, script).resume("talk", prompt="two")
    assert bot(store, script).resume("talk-2", prompt="three").execution_id == "talk-3"


def test_a_suffix_that_is_taken_is_passed_over(store: Checkpointer):
    bot(store, ["taken"]).run("other", execution_id="talk-2")
    bot(store, ["first", "second"]).run("one", execution_id="talk")
    assert bot(store, ["first", "second"]).resume("talk", prompt="two").execution_id == "talk-3"
    assert len(store.sessions()) == 2


def test_a_prompt_to_a_failed_run_goes_on_in_it(store: Checkpointer):
    script = [OSError("503"), "answer"]
    with pytest.raises(OSError, match="503"):
        bot(store, script).run("one", execution_id="talk")
    result = bot(store, ["answer"]).resume("talk", prompt="and two")
    assert (result.execution_id, result.output) == ("talk", "answer")
    assert [message.content for message in result.messages] == ["one", "and two", "answer"]


def test_calls_are_settled_before_the_prompt_is_said(store: Checkpointer, effects):
    note = note_with(effects)

    def dies(text: str) -> str:
        if text == "b":
            raise KeyboardInterrupt
        return note(text)

    dies.__name__ = "note"
    script = [[call("note", text=text) for text in "abc"], "done"]
    with pytest.raises(KeyboardInterrupt):
        bot(store, script, dies).run("go", execution_id="talk")
    result = bot(store, script, note).resume("talk", prompt="hurry")
    assert effects.lines == ["a", "b", "c"]
    roles = [message.role for message in result.messages]
    assert roles == ["user", "assistant", "tool", "tool", "tool", "user", "assistant"]


def test_a_cancelled_run_is_followed_with_its_open_calls_settled(store: Checkpointer, effects):
    note = note_with(effects)

    def dies(text: str) -> str:
        raise KeyboardInterrupt

    dies.__name__ = "note"
    script = [[call("note", text="a"), call("note", text="b")], "done"]
    with pytest.raises(KeyboardInterrupt):
        bot(store, script, dies).run("go", execution_id="talk")
    store.cancel("talk", by="ann")
    result = bot(store, script, note).resume("talk", prompt="leave it")
    assert (result.execution_id, result.output) == ("talk-2", "done")
    assert told(result) == ["[not run: cancelled]"] * 2
    assert effects.lines == []


def test_a_paused_session_takes_no_prompt(store: Checkpointer):
    def ask() -> str:
        return interrupt("why").by

    agent = bot(store, [call("ask"), "done"], ask)
    agent.run("go", execution_id="talk")
    with pytest.raises(RunPaused):
        agent.resume("talk", prompt="well?")
    with pytest.raises(InvalidInput, match="pause first"):
        agent.resume("talk", resume_value=Resume(True), prompt="well?")
    for empty in ("", "  ", "x" * 10_000_001):
        with pytest.raises(InvalidInput):
            agent.resume("talk", prompt=empty)
    with pytest.raises(UnknownExecution):
        agent.resume("nope", prompt="well?")
    assert store.get_last("talk").step_type == "hitl_pause"


def test_of_two_callers_with_a_prompt_one_wins(store: Checkpointer, opened):
    bot(store, ["first"]).run("one", execution_id="talk")
    stores = [opened() for _ in range(4)]
    barrier = threading.Barrier(4)
    outcomes: list[str] = []

    def go_on(mine: Checkpointer) -> None:
        def slowly(messages):
            go.wait(20)
            return "second"

        barrier.wait()
        try:
            outcomes.append(bot(mine, slowly).resume("talk", prompt="two").execution_id)
        except RunIsLive:
            outcomes.append("refused")
            if outcomes.count("refused") == 3:
                go.set()

    go = threading.Event()
    threads = [threading.Thread(target=go_on, args=[each]) for each in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["refused", "refused", "refused", "talk-2"]
    assert list(store.session("talk")) == ["talk", "talk-2"]


def test_a_run_remembers_where_it_works(store: Checkpointer, tmp_path: Path):
    def where() -> str:
        interrupt("why")
        return str(current().workdir)

    here, there = tmp_path / "here", tmp_path / "there"
    script = [call("where"), "done"]
    bot(store, script, where).run("go", execution_id="r1", workdir=here)
    with pytest.raises(InvalidInput, match="move=True"):
        bot(store, script, where).resume("r1", resume_value=Resume(True), workdir=there)
    same = os.path.join(here, "..", "here")
    result = bot(store, script, where).resume("r1", resume_value=Resume(True), workdir=same)
    assert told(result) == [str(here)]


def test_a_move_that_is_meant_is_recorded(store: Checkpointer, tmp_path: Path):
    def where() -> str:
        interrupt("why")
        return str(current().workdir)

    script = [call("where"), "done", "more"]
    bot(store, script, where).run("go", execution_id="r1", workdir=tmp_path / "here")
    there = tmp_path / "there"
    result = bot(store, script, where).resume(
        "r1", resume_value=Resume(True), workdir=there, move=True
    )
    assert told(result) == [str(there)]
    assert state_of(store.load("r1")).workdir == str(there)
    bot(store, script, where).resume("r1", prompt="go on")
    assert store.load("r1-2").run.workdir == str(there)


def test_sessions_come_newest_first_and_in_pages(store: Checkpointer):
    for number in range(5):
        bot(store, ["done", "more"]).run(f"prompt {number}", execution_id=f"s{number}")
    bot(store, ["done", "more"]).resume("s1", prompt="again")
    names = [session.session for session in store.sessions()]
    assert names == ["s1", "s4", "s3", "s2", "s0"]
    pages = [store.sessions(limit=2, offset=offset) for offset in (0, 2, 4, 6)]
    for odd in ({"limit": -1}, {"offset": -1}, {"limit": 2**70}, {"limit": "3"}, {"offset": None}):
        with pytest.raises(InvalidInput):
            store.sessions(**odd)
    assert [[each.session for each in page] for page in pages] == [
        ["s1", "s4"], ["s3", "s2"], ["s0"], [],
    ]  # fmt: skip


def test_a_prompt_that_loses_its_run_is_refused_whole(store: Checkpointer):
    agent = bot(store, ["first"])
    agent.run("one", execution_id="talk")
    agent.llm = ScriptedModel([])
    with pytest.raises(DurableError):
        agent.resume("talk", prompt="two")
    assert {run.execution_id: run.status for run in store.runs()} == {
        "talk": "completed", "talk-2": "failed",
    }  # fmt: skip
