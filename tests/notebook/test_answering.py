"""`%durable answer`: what became of a call in doubt, said by typing."""

from __future__ import annotations

import json
import re

import pytest

from durable_nb import (
    Agent,
    AlreadyResumed,
    Checkpointer,
    InvalidInput,
    RunPaused,
    ScriptedModel,
    call,
)
from durable_nb.notebook.typed.completion import offer
from durable_nb.notebook.words import word
from tests.notebook.conftest import Notebook, wire_of
from tests.support.ledger import Ledger

RUN = "it's 1"
TYPED = '%durable answer "it\'s 1" --pause 4'


@pytest.fixture
def doubtful(notebook: Notebook, effects: Ledger) -> Notebook:
    """A notebook whose run asks, at its pause 4, what became of a call of `bank`."""
    llm = ScriptedModel([call("wire", amount=9), "Done."])
    notebook.names["bank"] = Agent("bank", llm, [wire_of(effects, dies=True)])
    notebook(f'%%durable bank --id "{RUN}"\nsend 9')
    notebook.names["bank"] = Agent("bank", llm, [wire_of(effects, dies=False)])
    notebook(f'%durable resume "{RUN}"')
    return notebook


@pytest.mark.parametrize("how", ["--run-again", "--stop"])
def test_the_lines_of_a_card_and_of_the_inbox_answer(
    doubtful: Notebook, effects: Ledger, how: str
) -> None:
    card = doubtful(f'%durable show "{RUN}"').card
    (inbox,) = [
        each["text/plain"] for each in doubtful("%durable pending").shown if "text/html" in each
    ]
    (typed,) = {
        match
        for text in (card, inbox)
        for match in re.findall(rf"%durable answer .* {how}(?=   \()", text)
    }
    assert "agent.resume" not in card + inbox
    done = doubtful(typed)
    status, wired = {"--run-again": ("completed", ["wired 9"]), "--stop": ("cancelled", [])}[how]
    assert (done.error, done.value.status, effects.lines) == (None, status, wired)


@pytest.mark.parametrize(
    ("typed", "returned"),
    [
        ("'\"sent at noon\"'", "sent at noon"),
        ("'{{\"paid\": [9, null]}}'", {"paid": [9, None]}),
        ("null", None),
    ],
)
def test_a_call_that_happened_is_told_with_what_it_returned(
    doubtful: Notebook, store: Checkpointer, effects: Ledger, typed: str, returned: object
) -> None:
    done = doubtful(f"{TYPED} --happened {typed} --by alice")
    assert (done.error, done.value.status, effects.lines) == (None, "completed", [])
    entry = store.list(RUN)[4].entry
    assert (entry.outcome, entry.result, entry.by) == ("happened", returned, "alice")  # type: ignore[union-attr]
    assert "said to have happened by alice" in done.card
    told = store.get_last(RUN).state_snapshot["messages"][-2].content
    assert told == returned or json.loads(told) == returned


def test_the_same_answer_again_shows_what_came_of_it_and_another_is_refused(
    doubtful: Notebook, effects: Ledger
) -> None:
    doubtful(f"{TYPED} --happened 1 --by alice")
    again = doubtful(f"{TYPED} --happened 1")
    assert "alice had answered pause 4 before; nothing was decided now" in again.card
    for other in ("--happened 2", "--run-again", "--stop"):
        assert isinstance(doubtful(f"{TYPED} {other}").error, AlreadyResumed)
    assert effects.lines == []


def test_whatever_refuses_because_a_call_is_in_doubt_says_what_to_type(doubtful: Notebook) -> None:
    says = f"%durable answer {word(RUN)} --pause 4 --run-again (or --stop, or --happened JSON)"
    for cell in (
        f'%durable resume "{RUN}"',
        f'h = %durable show "{RUN}"\nh.output',
        f'%%durable bank --id "{RUN}" --on-pause stop\nsend 9',
    ):
        error = doubtful(cell).error
        assert isinstance(error, RunPaused)
        assert says in str(error)
    unknown = doubtful(f'%durable answer "{RUN}" --pause 2 --stop').error
    assert isinstance(unknown, InvalidInput)
    assert says in str(unknown)


def test_of_the_three_answers_one_is_offered(doubtful: Notebook) -> None:
    def options(line: str) -> set[str]:
        found = offer(line, 0, len(line), doubtful.names)
        return set(found.texts) if found else set()

    three = {"--happened", "--run-again", "--stop"}
    assert options("%durable answer x --") == three | {"--pause", "--by", "--agent"}
    assert not three & options("%durable answer x --stop --")


def test_a_call_to_approve_has_no_such_answer(notebook: Notebook, bot: Agent) -> None:
    bot.run("Refund order 1042", execution_id="a")
    refused = notebook("%durable answer a --pause 3 --run-again").error
    assert isinstance(refused, InvalidInput)
    assert "this pause asks for approval" in str(refused)


def test_a_call_that_is_asked_about_is_not_said_to_run_again(
    notebook: Notebook, effects: Ledger
) -> None:
    llm = ScriptedModel([call("wire", amount=9), "Done."])
    notebook.names["bank"] = Agent("bank", llm, [wire_of(effects, dies=True)])
    died = notebook("%%durable bank --id r\nsend 9").card
    assert "Resume asks a person what became of wire(amount=9)." in died
    card = notebook("%%durable bank --id r\nsend 9").card
    assert "wire(amount=9) is in doubt, and was not run again" in card
    assert effects.lines == []
