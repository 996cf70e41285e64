"""A provider streams and fails at random while processes that drive a run are killed: at each entry,
and in mid-reply. Nothing shows of it in the end (R3; T1, T5, T8).

Each kill is tried with one provider, in turn; DURABLE_NB_STREAMS=all tries each with all.
"""

from __future__ import annotations

import json
import os
import signal
from itertools import product

import pytest

from durable_nb import views
from tests.crash.streams import (
    ENTRIES,
    LOST,
    SAID,
    SCRIPT,
    TURNS,
    Task,
    When,
    drive,
    messages,
    said,
    undisturbed,
    words,
)
from tests.llm.wire import PROVIDERS
from tests.support.children import Process
from tests.support.provider_server import ProviderServer, Trouble, at_random
from tests.support.providers import assert_all_valid

NAMES = list(PROVIDERS)
KILLS = list(product(ENTRIES, ("before", "after")))
EACH = [(NAMES[at % len(NAMES)], at, *kill) for at, kill in enumerate(KILLS)]
ALL = [(name, seed, *kill) for name in NAMES for seed in (1, 2) for kill in KILLS]
TRIED = ALL if os.environ.get("DURABLE_NB_STREAMS") == "all" else EACH

KILLED = f"signal {signal.SIGKILL.value}"


@pytest.fixture
def judge(file, effects, tmp_path_factory):
    """Holds a run that is over against the plan; `asked` are the replies that the server gave. A
    turn's request is the same, byte for byte, whichever process makes it."""

    def holds(name: str, server: ProviderServer, *, asked: list[int]) -> None:
        transcript = messages(file)
        assert said(transcript) == SAID
        plain = undisturbed(name, tmp_path_factory.mktemp("undisturbed"))
        assert words(transcript, server.url) == plain
        assert effects.lines == ["a", "b", "c"]
        assert server.refused == []
        assert len({json.dumps(seen.body) for seen in server.requests}) == TURNS
        assert sorted(server.answered) == sorted(asked)
        rows = views.usage("r1", store=file)
        sums = rows[["input_tokens", "output_tokens", "cached_tokens"]].sum()
        assert [int(each) for each in sums] == [120, 30, 40]
        assert list(rows.outcome).count("answered") == TURNS
        assert_all_valid(file)

    return holds


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    """What leads the clients of this process to a server is forgotten afterwards."""
    for each in PROVIDERS.values():
        for variable in each.environment(""):
            monkeypatch.setenv(variable, "")


@pytest.mark.parametrize(("name", "seed", "entry", "when"), TRIED)
def test_a_kill_at_any_entry_shows_nowhere_but_in_the_reply_in_flight(
    name: str, seed: int, entry: str, when: When, file, judge, tmp_path
) -> None:
    with ProviderServer(SCRIPT, troubles=at_random(seed)) as server:
        task = Task(name, server.url, tmp_path, ENTRIES.index(entry) + 1, when)
        assert Process(drive, task).ended() == KILLED
        if (entry, when) != ("run_end", "after"):
            assert Process(drive, task._replace(at=0)).ended() == "ended 0"
        lost = [LOST[entry]] if when == "before" and entry in LOST else []
        judge(name, server, asked=[0, 1, 2, *lost])
    was_asked = (when == "after" and entry.startswith("turn")) or lost
    outcomes = list(views.usage("r1", store=file).outcome)
    assert outcomes.count("lost") == bool(was_asked)


@pytest.mark.parametrize("name", NAMES)
def test_a_run_whose_processes_die_after_every_entry_comes_to_its_end(
    name: str, file, judge, tmp_path
) -> None:
    with ProviderServer(SCRIPT, troubles=at_random(7)) as server:
        task = Task(name, server.url, tmp_path, at=1)
        assert Process(drive, task).ended() == KILLED
        for _ in ENTRIES[1:]:  # a claim, and then an entry
            assert Process(drive, task._replace(at=2)).ended() == KILLED
        judge(name, server, asked=[0, 1, 2])
    assert file.runs()[0].status == "completed"


@pytest.mark.parametrize(("name", "reply"), list(zip(NAMES, [0, 1, 2] * 2, strict=True)))
def test_a_kill_in_the_middle_of_a_reply_costs_that_reply(
    name: str, reply: int, file, judge, tmp_path
) -> None:
    stalls = {reply + 1: Trouble("stall", after=3)}
    with ProviderServer(SCRIPT, troubles=stalls) as server:
        task = Task(name, server.url, tmp_path)
        child = Process(drive, task)
        assert server.stalled.wait(60)
        child.kill()
        assert Process(drive, task).ended() == "ended 0"
        judge(name, server, asked=[0, 1, 2])
    assert list(views.usage("r1", store=file).outcome).count("lost") == 1


def test_turns_are_counted_over_all_processes_of_a_run(file, judge, effects, tmp_path) -> None:
    with ProviderServer(SCRIPT, troubles=at_random(3)) as server:
        task = Task("openai", server.url, tmp_path, at=3, turns=2)
        assert Process(drive, task).ended() == KILLED
        assert Process(drive, task._replace(at=0)).ended() == "ended 1"
        assert "TurnLimit" in str(file.load("r1").rows[-1].entry)
        assert (server.answered, effects.lines) == ([0, 1], ["a", "b", "c"])
        assert Process(drive, task._replace(at=0, turns=3)).ended() == "ended 0"
        judge("openai", server, asked=[0, 1, 2])
