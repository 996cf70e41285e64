"""fold, decide, advance and explain: each rule of DESIGN section 2 as a line of a table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from durable_nb import Call, Message, Usage
from durable_nb.core.advance import advance, identify
from durable_nb.core.changes import changes
from durable_nb.core.decide import decide
from durable_nb.core.explain import call_text, explain, rejection
from durable_nb.core.nodes import node_id, status, step_type
from durable_nb.core.state import State, fold
from durable_nb.model.commands import AskModel, EndRun, RunTool, Stop, TellModel, Wait
from durable_nb.model.entries import Answer, End, Entry, Pause, Reentry, Row, ToolCall, Turn
from durable_nb.model.events import Interrupted, Replied, Returned, Stopped
from durable_nb.model.values import digest, dumps

PROMPT = Message("user", "Refund order 1042")
ASKED = Message("assistant", "", (Call("refund", {"amount": 5000}, "c1"), Call("note", {}, "c2")))
OPENING = Turn(0, (PROMPT,))
STEP = ToolCall(0, "refund", "c1", {"amount": 5000}, (ASKED,), Usage(7, 3))
GATE = Pause(0, "refund", "manager", {"amount": 5000}, digest({"amount": 5000}))
SKIP = replace(GATE, on_reject="skip")
DOUBT = Pause(0, "refund", "in doubt", None, digest(None), asks="in_doubt")
YES = Answer(0, "refund", pause=3, approved=True, by="ann")
NO = Answer(0, "refund", pause=3, approved=False, by="ann", reason="too much")
EDITED = replace(YES, edited={"amount": 90})
HAPPENED = replace(YES, outcome="happened", result="paid")
STOPPED = replace(NO, outcome="stop")
CRASH = Reentry(0, "refund", of=2, by="bob")
FAILED = End(1, "failed", error="ValueError: no")
DONE = End(1, "completed", "done")


def state_of(*entries: Entry) -> State:
    return fold(Row(number, 10 + number, 1, entry) for number, entry in enumerate(entries, 1))


def result(call_id: str, content: str) -> Message:
    return Message("tool", content, tool_call_id=call_id)


# --- fold -----------------------------------------------------------------------------------------


def test_a_fold_grown_by_one_row_is_the_fold_of_all() -> None:
    entries = [OPENING, STEP, GATE, YES, CRASH, Turn(1, (result("c1", "ok"),)), FAILED, CRASH, DONE]
    for count in range(1, len(entries)):
        row = Row(count + 1, 11 + count, 1, entries[count])
        assert state_of(*entries[:count]).plus(row) == state_of(*entries[: count + 1])


@pytest.mark.parametrize(
    ("entries", "at", "claim", "says"),
    [
        ([OPENING], 1, 1, "open"),
        ([OPENING, STEP], 2, 1, "open"),
        ([OPENING, STEP, CRASH], 2, 3, "open"),
        ([OPENING, STEP, GATE], 3, 1, "paused"),
        ([OPENING, STEP, GATE, YES], 4, 4, "open"),
        ([OPENING, STEP, GATE, YES, CRASH], 4, 5, "open"),
        ([OPENING, FAILED], 1, 1, "failed"),
        ([OPENING, FAILED, Reentry(0, None, of=1, by="bob")], 1, 3, "open"),
        ([OPENING, STEP, FAILED], 2, 1, "failed"),
        ([OPENING, DONE], 2, 1, "completed"),
        ([OPENING, End(1, "cancelled")], 2, 1, "cancelled"),
    ],
)
def test_the_newest_entry_that_counts_is_the_program_counter(
    entries: list[Entry], at: int, claim: int, says: str
) -> None:
    state = state_of(*entries)
    assert (state.at.number, state.claim.number, state.status) == (at, claim, says)
    assert state.number == len(entries)


def test_answers_belong_to_their_step_and_end_with_it() -> None:
    answered = state_of(OPENING, STEP, GATE, YES)
    assert [(each.pause, each.answer) for each in answered.answers] == [(GATE, YES)]
    assert state_of(OPENING, STEP, GATE, YES, Turn(1)).answers == ()
    assert state_of(OPENING, STEP, GATE, YES, replace(STEP, call_id="c2")).answers == ()


def test_usage_and_messages_add_up() -> None:
    state = state_of(
        OPENING, STEP, Turn(1, (result("c1", "ok"),)), replace(DONE, usage=Usage(1, 2))
    )
    assert state.usage == Usage(8, 5)
    assert list(state.transcript) == [PROMPT, ASKED, result("c1", "ok")]


# --- decide ---------------------------------------------------------------------------------------

COMMANDS = [
    ([OPENING], AskModel(0, state_of(OPENING).transcript)),
    ([OPENING, STEP], RunTool(STEP, {"amount": 5000})),
    ([OPENING, STEP, CRASH], RunTool(STEP, {"amount": 5000}, in_doubt=True)),
    ([OPENING, STEP, GATE], Wait(GATE)),
    ([OPENING, STEP, SKIP, NO], TellModel(STEP, "refund was not run")),
    ([OPENING, STEP, DOUBT, HAPPENED], TellModel(STEP, "paid")),
    ([OPENING, STEP, DOUBT, STOPPED], EndRun("ann")),
    ([OPENING, DONE], Stop(DONE)),
]


@pytest.mark.parametrize(("entries", "command"), COMMANDS)
def test_the_entry_at_the_counter_picks_the_command(entries: list[Entry], command: object) -> None:
    assert decide(state_of(*entries)) == command


@pytest.mark.parametrize(
    ("answer", "arguments"),
    [(YES, {"amount": 5000}), (NO, {"amount": 5000}), (EDITED, {"amount": 90})],
)
def test_an_answer_runs_the_tool_from_the_top_with_what_was_decided(answer, arguments) -> None:
    state = state_of(OPENING, STEP, GATE, answer)
    assert decide(state) == RunTool(STEP, arguments, state.answers)
    approved_skip = state_of(OPENING, STEP, SKIP, YES)
    assert decide(approved_skip) == RunTool(STEP, {"amount": 5000}, approved_skip.answers)


def test_a_reentry_is_never_at_the_counter() -> None:
    state = state_of(OPENING, STEP)
    with pytest.raises(AssertionError, match="never at the program counter"):
        decide(replace(state, at=Row(9, 1, 1, CRASH)))


# --- advance --------------------------------------------------------------------------------------


def test_a_reply_without_calls_ends_the_run() -> None:
    said = Message("assistant", "done")
    assert advance(state_of(OPENING), Replied(said, Usage(1, 2))) == End(
        1, "completed", "done", messages=(said,), usage=Usage(1, 2)
    )


def test_a_reply_with_calls_leads_to_the_first_that_can_run() -> None:
    first = advance(state_of(OPENING), Replied(ASKED, Usage(7, 3)))
    assert first == STEP
    refused = advance(state_of(OPENING), Replied(ASKED, refused={"c1": "Error: no"}))
    assert refused == ToolCall(0, "note", "c2", {}, (ASKED, result("c1", "Error: no")))
    none = advance(state_of(OPENING), Replied(ASKED, refused={"c1": "a", "c2": "b"}))
    assert none == Turn(1, (ASKED, result("c1", "a"), result("c2", "b")))


def test_a_result_leads_to_the_next_call_and_then_to_the_next_turn() -> None:
    after_first = advance(state_of(OPENING, STEP), Returned("ok"))
    assert after_first == ToolCall(0, "note", "c2", {}, (result("c1", "ok"),))
    after_second = advance(state_of(OPENING, STEP, after_first), Returned("noted"))
    assert after_second == Turn(1, (result("c2", "noted"),))


NOT_RUN = "[not run: refund waited for a person; ask again if needed]"


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        (YES, "ok"),
        (NO, "[rejected by ann: too much]\nok"),
        (replace(NO, reason=None), "[rejected by ann]\nok"),
        (EDITED, "[approved with edits: amount=90]\nok"),
        (replace(NO, source="timeout", reason="nobody came"), "[expired: nobody came]\nok"),
    ],
)
def test_after_a_pause_the_model_reads_the_verdict_and_no_sibling_runs(answer, content) -> None:
    entry = advance(state_of(OPENING, STEP, GATE, answer), Returned("ok"))
    assert entry == Turn(1, (result("c1", content), result("c2", NOT_RUN)))


def test_a_pause_about_a_call_in_doubt_changes_nothing_for_its_siblings() -> None:
    entry = advance(state_of(OPENING, STEP, DOUBT, HAPPENED), Returned("paid"))
    assert entry == ToolCall(0, "note", "c2", {}, (result("c1", "paid"),))


def test_an_interrupt_leads_to_a_pause_with_its_digest() -> None:
    event = Interrupted("manager", {"amount": 5000}, 1, "skip")
    assert advance(state_of(OPENING, STEP), event) == replace(SKIP, position=1)


def test_a_stop_leads_to_the_end() -> None:
    entry = advance(state_of(OPENING, STEP), Stopped("ann said so"))
    assert entry == End(1, "cancelled", error="ann said so")


def test_each_call_gets_an_id_of_its_own() -> None:
    calls = (Call("a", {}, "x"), Call("b", {}, "x"), Call("c"), Call("d"), Call("e", {}, "c1"))
    state = state_of(OPENING, STEP, Turn(1))
    message, repeated = identify(Message("assistant", "", calls), state)
    ids = [each.id for each in message.tool_calls]
    assert ids == ["x", "call_3_1", "call_3_2", "call_3_3", "call_3_4"]
    assert repeated == {"call_3_1"}
    assert [each.tool for each in message.tool_calls] == ["a", "b", "c", "d", "e"]


# --- in words -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([OPENING], "Resume asks the model again for turn 0"),
        (
            [OPENING, STEP, CRASH],
            "Resume runs refund(amount=5000) again from the top, with its saved",
        ),
        ([OPENING, STEP, GATE], "Approve runs refund(amount=5000) again from the top, with your"),
        ([OPENING, STEP, GATE, EDITED], "refund(amount=90) again from the top, with the recorded"),
        ([OPENING, STEP, SKIP, NO], "Resume tells the model what was decided about refund"),
        ([OPENING, STEP, DOUBT], "refund(amount=5000) had begun when its process died"),
        ([OPENING, STEP, DOUBT, STOPPED], "Resume ends the run, as ann decided"),
        ([OPENING, DONE], "The run is completed. There is nothing to resume."),
    ],
)
def test_what_a_click_will_do_is_said_in_a_sentence(entries: list[Entry], words: str) -> None:
    assert words in explain(state_of(*entries))


@pytest.mark.parametrize("entries", [[OPENING, STEP], [OPENING, STEP, GATE, EDITED, CRASH]])
@pytest.mark.parametrize(
    ("on_crash", "words"),
    [
        ("rerun", "Resume runs refund"),
        ("ask", "Resume asks a person what became of refund"),
        ("fail", "Resume tells the model that refund"),
    ],
)
def test_what_a_resume_does_with_a_call_in_doubt_is_as_its_tool_says(
    entries: list[Entry], on_crash: str, words: str
) -> None:
    assert explain(state_of(*entries), lambda tool: on_crash).startswith(words)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "refund()"),
        ({"order": "1042", "amount": 20}, 'refund(order="1042", amount=20)'),
        ({"note": 'say "hi"'}, "refund(note='say \"hi\"')"),
        ({"note": "it's"}, 'refund(note="it\'s")'),
        ({"note": "a\nb"}, 'refund(note="a\\nb")'),
        ({"tags": ["a"], "x": None}, "refund(tags=['a'], x=None)"),
    ],
)
def test_a_call_reads_as_python_would_write_it(arguments: dict[str, object], text: str) -> None:
    assert call_text("refund", arguments) == text


def test_a_long_call_is_cut_to_a_line() -> None:
    assert len(call_text("refund", {"note": "x" * 10_000})) < 220


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        (OPENING, ("turn:0", "llm_call", "completed")),
        (STEP, ("turn:0/tool:refund", "tool_call", "completed")),
        (GATE, ("turn:0/tool:refund", "hitl_pause", "interrupted")),
        (YES, ("turn:0/tool:refund", "resume", "completed")),
        (CRASH, ("turn:0/tool:refund", "resume", "completed")),
        (Reentry(3, None, of=1, by="bob"), ("turn:3", "resume", "completed")),
        (DONE, ("run_end", "run_end", "completed")),
        (FAILED, ("run_end", "run_end", "failed")),
    ],
)
def test_an_entry_is_shown_by_its_node(entry: Entry, shown: tuple[str, str, str]) -> None:
    assert (node_id(entry), step_type(entry), status(entry)) == shown


def test_what_changed_of_an_agent_is_named() -> None:
    before = {"system_prompt": None, "model": "m", "tools": {"a": "def a", "b": "def b"}}
    cases = [
        ({}, ()),
        ({"system_prompt": "be brief"}, ("prompt",)),
        ({"model": "other"}, ("model",)),
        ({"tools": {"a": "def a2", "c": "def c"}}, ("tool a", "tool b", "tool c")),
    ]
    for edit, expected in cases:
        assert changes(dumps(before), dumps({**before, **edit})) == expected
    assert changes("{}", dumps(before)) == ("model", "tool a", "tool b")


def test_a_person_is_told_what_a_rejection_does() -> None:
    skips = Pause(0, "refund", "why", {}, "d", on_reject="skip")
    assert rejection(skips) == "Reject does not run refund again."
    assert "decision.approved is False" in rejection(replace(skips, on_reject="run"))
