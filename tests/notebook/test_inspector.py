"""`%durable show`: everything that a run's log holds, in a shell, for runs of every kind."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from durable_nb import (
    Agent,
    Checkpointer,
    InvalidInput,
    ScriptedModel,
    SQLiteCheckpointer,
    UnknownExecution,
    call,
    idempotent,
    interrupt,
)
from durable_nb.core.nodes import Checkpoint
from durable_nb.stores.open import use_store
from tests.notebook.conftest import ANSWER, Notebook

CELL = "%%durable bot --id refund-1042 -o h\nRefund order 1042\n"
SHOW = "%durable show refund-1042"


@pytest.fixture
def approved(notebook: Notebook, bot: Agent) -> None:
    """Run refund-1042 has paused at 3, was approved with 90 by alice and has completed."""
    notebook(CELL)
    notebook("%durable approve refund-1042 --by alice --note 'in stock' --set amount=90")


def mortal(notebook: Notebook, *script: object) -> Callable[[], None]:
    """An agent `bot` whose tool `die` ends its process, as it were, until that is called."""
    deaths = [KeyboardInterrupt()]

    def die(order: str = "7") -> str:
        """Die."""
        if deaths:
            raise deaths[0]
        return "alive"

    notebook.names["bot"] = Agent("mortal", ScriptedModel(list(script)), [die])
    return deaths.clear


def lines(said: str) -> list[str]:
    """With single spaces."""
    return [" ".join(line.split()) for line in said.splitlines()]


@pytest.mark.usefixtures("approved")
def test_each_step_has_a_line_and_under_it_what_was_done(notebook: Notebook) -> None:
    said = lines(notebook(SHOW).card)
    assert said[0].startswith("✓ completed · refund-1042 · refund-bot · 2 model calls")
    assert ANSWER in said
    at = said.index("6 steps")
    told = "[approved with edits: amount=90] paid"
    shown = [line.rsplit(" ", 2)[0] if line.endswith("s") else line for line in said[at + 1 :: 2]]
    assert shown[:6] == [
        "· 1 turn:0 llm_call completed agent:refund-bot",
        "· 2 turn:0/tool:refund tool_call completed agent:refund-bot/tool:refund",
        "● 3 turn:0/tool:refund hitl_pause interrupted agent:refund-bot/tool:refund waited",
        "✓ 4 turn:0/tool:refund resume completed agent:refund-bot/tool:refund",
        "· 5 turn:1 llm_call completed agent:refund-bot",
        "✓ 6 run_end run_end completed agent:refund-bot",
    ]
    assert said[at + 2 : at + 13 : 2] == [
        '→ refund(order="1042", amount=500)',
        f'refund(order="1042", amount=500) → {told}',
        "manager_approval (pause 3)",
        "approved by alice, amount=90: in stock",
        f"→ {ANSWER}",
        ANSWER,
    ]


@pytest.mark.usefixtures("approved")
def test_a_step_opens_to_its_arguments_and_result(notebook: Notebook) -> None:
    said = lines(notebook(f"{SHOW} --step turn:0/tool:refund").card)
    assert {'order: "1042"', "amount: 500", "the model was told", "paid"} <= set(said)


@pytest.mark.usefixtures("approved")
def test_a_pause_opens_to_its_frozen_context(notebook: Notebook, store: Checkpointer) -> None:
    ran = notebook(f"{SHOW} --step 3")
    pause = store.list("refund-1042")[2].entry
    assert f"frozen: digest {pause.digest}" in lines(ran.card)  # type: ignore[union-attr]
    (html,) = [each["text/html"] for each in ran.shown if "text/html" in each]
    assert html.count("<details") == 6 + 2  # the steps, the agent, its tool
    assert html.count('<details style="margin:0" open>') == 1


@pytest.mark.usefixtures("approved")
def test_a_decision_opens_to_who_why_what_was_shown_and_what_ran(
    notebook: Notebook, store: Checkpointer
) -> None:
    said = lines(notebook(f"{SHOW} --step 4").card)
    answer = store.list("refund-1042")[3].entry
    assert {"decision: approved, pause 3", "who: alice, by a person", "note: in stock"} <= set(said)
    digests = f"shown: digest {answer.shown}; ran: digest {answer.ran}"  # type: ignore[union-attr]
    assert f"arguments: {digests}" in said
    assert said[said.index("edited arguments") + 1] == "amount: 90"


def test_an_answer_by_an_agent_that_has_changed_says_what_of_it(
    notebook: Notebook, bot: Agent
) -> None:
    notebook(CELL)
    notebook.names["bot"] = Agent("refund-bot", bot.llm, bot.tools, system_prompt="Be kind.")
    notebook("%durable approve refund-1042")
    said = notebook(f"{SHOW} --step 4").card
    assert "changed since the pause: prompt" in said


def test_a_pause_that_expired_was_answered_by_nobody(notebook: Notebook) -> None:
    def ask() -> str:
        """Ask."""
        return str(interrupt("sure?", expires_in=timedelta(microseconds=1)).approved)

    notebook.names["bot"] = Agent("bot", ScriptedModel([call("ask"), "Done."]), [ask])
    notebook("%%durable bot --id late\ngo\n")
    notebook("%durable resume late")
    said = lines(notebook("%durable show late --step 4").card)
    assert "who: timeout, because nobody had decided in time" in said


def test_a_run_that_died_says_where_and_that_its_call_is_in_doubt(notebook: Notebook) -> None:
    lives = mortal(notebook, call("die"), "Done.")
    notebook("%%durable bot --id dead\ngo\n")
    said = lines(notebook("%durable show dead").card)
    assert any(line.startswith("↯ 2 turn:0/tool:die tool_call died here") for line in said)
    assert "in doubt: it had begun when its process died" in said
    lives()
    notebook("%durable resume dead")
    said = lines(notebook("%durable show dead").card)
    assert any(line.endswith("agent:mortal/tool:die cut off") for line in said)
    assert "in doubt: it had begun when its process died" in said
    assert any(line.endswith("after a crash") for line in said)


def test_a_failed_run_says_why(notebook: Notebook) -> None:
    notebook.names["bot"] = Agent("bot", ScriptedModel([RuntimeError("503"), "Done."]))
    notebook("%%durable bot --id broken\ngo\n")
    said = lines(notebook("%durable show broken").card)
    assert said[0].startswith("✗ failed · broken")
    assert any(line.startswith("✗ 2 run_end run_end failed") for line in said)
    assert "RuntimeError: 503" in said


def test_what_idempotent_remembers_is_there_and_what_is_in_doubt_comes_first(
    notebook: Notebook,
) -> None:
    @idempotent
    def charge(order: str) -> str:
        if order == "2":
            raise KeyboardInterrupt
        return order

    def pay() -> str:
        """Pay."""
        return charge("1") + charge("2")

    notebook.names["bot"] = Agent("bot", ScriptedModel([call("pay")]), [pay])
    notebook("%%durable bot --id r\ngo\n")
    said = lines(notebook("%durable show r").card)
    at = said.index("@idempotent remembers 1, 1 in doubt")
    assert said[at + 2].endswith("in doubt: begun, no result")
    assert " kept " in said[at + 3]


def test_a_fork_and_a_follow_up_lead_to_where_they_come_from_and_back(
    notebook: Notebook, bot: Agent
) -> None:
    notebook(CELL)
    notebook("%durable reject refund-1042")
    notebook("%durable fork refund-1042 --at 2 --id other")
    notebook.names["bot"] = Agent("refund-bot", ScriptedModel(lambda _: "More."), bot.tools)
    notebook("%durable resume refund-1042 and then")
    said = notebook(SHOW).card
    assert "2 related runs: %durable show other (fork, after entry 2), " in said
    assert "%durable show refund-1042-2 (of the same conversation)" in said
    fork = notebook("%durable show other").card
    assert "%durable show refund-1042 (this run is a fork of it, after entry 2)" in fork
    assert "by " in fork
    assert ", in a fork" in fork
    follow_up = notebook("%durable show refund-1042-2").card
    assert "%durable show refund-1042 (this run goes on from it, after entry 6)" in follow_up
    ran = notebook("%durable show other --step 1")
    assert isinstance(ran.error, InvalidInput)
    assert "%durable show refund-1042 --step 1" in str(ran.error)


@pytest.mark.usefixtures("approved")
def test_the_agent_that_drove_it_is_there_with_the_text_of_its_tools(notebook: Notebook) -> None:
    ran = notebook(SHOW)
    assert "made of: model ScriptedModel; 1 tool: refund" in lines(ran.card)
    (html,) = [each["text/html"] for each in ran.shown if "text/html" in each]
    assert "Pay an order back." in html


@pytest.mark.usefixtures("approved")
def test_the_handle_that_is_returned_goes_on_from_what_is_seen(notebook: Notebook) -> None:
    handle = notebook(SHOW).value
    assert handle.output == ANSWER
    steps = handle.frame()
    assert list(steps["node_id"])[:2] == ["turn:0", "turn:0/tool:refund"]
    assert list(handle.frame("messages")["role"]) == ["user", "assistant", "tool", "assistant"]
    found = handle.diff(2, 4)
    assert list(found.columns) == ["key", "how", "before", "after"]
    changed = found.set_index("key").loc["arguments.amount"]
    assert list(changed) == ["changed", "500", "90"]
    with pytest.raises(InvalidInput, match="no frame 'step'; did you mean steps"):
        handle.frame("step")


@pytest.mark.parametrize(
    ("typed", "error"),
    [
        ("show refund-1042 --page 2", "has 1 page; there is no page 2"),
        ("show refund-1042 --page 0", "there is no page 0"),
        ("show refund-1042 --step 9", "has no step 9; there are numbers from 1 to 6"),
        ("show refund-1042 --step turn:7", "has no step 'turn:7'"),
        ("show refund-1042 --page x", "invalid number"),
        ("diff refund-1042 1 99", "has no entry 99"),
        ("diff refund-1042 1", "required: B"),
    ],
)
@pytest.mark.usefixtures("approved")
def test_a_page_or_step_that_is_not_there_is_refused_and_nothing_is_shown(
    notebook: Notebook, typed: str, error: str
) -> None:
    ran = notebook(f"%durable {typed}")
    assert isinstance(ran.error, InvalidInput)
    assert error in str(ran.error)
    assert ran.shown == []


def test_an_unknown_run_is_refused(notebook: Notebook) -> None:
    for typed in ("show nothing", "diff nothing 1 2"):
        assert isinstance(notebook(f"%durable {typed}").error, UnknownExecution)


@pytest.mark.usefixtures("approved")
def test_two_steps_are_compared_as_html_and_as_text(notebook: Notebook) -> None:
    ran = notebook("d = %durable diff refund-1042 turn:0/tool:refund 4\nd")
    said = repr(ran.value).splitlines()
    assert said[0].startswith("≠ compared · refund-1042 · step 2, turn:0/tool:refund · with step 4")
    assert "arguments.amount 500 90" in lines(repr(ran.value))
    assert notebook("d.df.shape[1]").value == 4
    assert "arguments.amount" in ran.value._repr_html_()
    same = notebook("%durable diff refund-1042 4 4").value
    assert "Nothing of the state and no message differs." in repr(same)


@pytest.mark.usefixtures("approved")
def test_a_fork_is_compared_with_its_parent(notebook: Notebook) -> None:
    notebook("%durable fork refund-1042 --at 2 --set amount=40 --id small")
    found = notebook("%durable diff refund-1042 run_end run_end --with small").value
    said = lines(repr(found))
    assert "with step 5, run_end of small" in said[0]
    assert said[said.index("message 3 (tool), changed") + 1] == "- [approved with edits: amount=90]"
    assert "%durable diff refund-1042 6 5 --with small (again)" in said


def test_hostile_texts_are_compared_as_text(notebook: Notebook) -> None:
    evil = "</div><script>alert(1)</script>\x1b[31m $$x$$"
    notebook.names["bot"] = Agent("bot", ScriptedModel([evil]))
    notebook("%%durable bot --id r\ngo\n")
    found = notebook("%durable diff r 1 2").value
    assert "<script" not in found._repr_html_()
    for form in (found._repr_html_(), repr(found)):
        assert "\x1b" not in form


def test_a_long_text_is_folded_where_it_is_compared_and_whole_in_the_frame(
    notebook: Notebook,
) -> None:
    letter = "\n".join(f"line {number}" for number in range(300))
    notebook.names["bot"] = Agent("bot", ScriptedModel([letter]))
    notebook("%%durable bot --id r\ngo\n")
    found = notebook("d = %durable diff r 1 2\nd").value
    assert "… and 284 more lines" in repr(found)
    html = found._repr_html_()
    assert "284 more lines" in html
    assert html.index("<details>") < html.index("+ line 299")
    assert found.df.set_index("key").loc["message 2 (assistant)", "after"] == letter


@pytest.fixture
def long(notebook: Notebook) -> None:
    """Run long has 5,000 steps."""

    def work(n: int) -> str:
        """Work."""
        return f"result {n}"

    turns = 2_499
    llm = ScriptedModel([*(call("work", n=n) for n in range(turns)), "Done."])
    use_store(SQLiteCheckpointer("long.sqlite3", synchronous="NORMAL"))
    Agent("bot", llm, [work], max_turns=turns + 1).run("go", execution_id="long")


@pytest.mark.usefixtures("long")
def test_of_5000_steps_a_page_is_drawn_and_the_others_are_named(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []
    monkeypatch.setattr(Checkpoint, "__init__", lambda *_, **__: listed.append("drawn"))
    first = notebook("%durable show long")
    said = lines(first.card)
    assert "steps 4,951–5,000 of 5,000, page 1 of 100" in said
    assert any(line.startswith("· 4951 turn:2475 llm_call") for line in said)
    assert any(line.startswith("✓ 5000 run_end") for line in said)
    assert not any(line.startswith("· 4950 ") for line in said)
    assert "%durable show long --page 2 (older steps)" in said
    assert not [line for line in said if "newer steps" in line]
    last = lines(notebook("%durable show long --page 100").card)
    assert "steps 1–50 of 5,000, page 100 of 100" in last
    assert "%durable show long --page 99 (newer steps)" in last
    there = lines(notebook("%durable show long --step turn:1200").card)
    assert any(line.startswith("· 2401 turn:1200 llm_call") for line in there)
    sizes = [len(each["text/html"]) for each in first.shown if "text/html" in each]
    assert sizes[0] < 400_000
    assert listed == []  # what is not shown was not made either


@pytest.mark.usefixtures("approved")
def test_while_nothing_happens_a_log_is_read_once(
    notebook: Notebook, store: Checkpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook(SHOW)
    reads: list[str] = []
    load = type(store).load

    def counted(self: Checkpointer, execution_id: str) -> object:
        reads.append(execution_id)
        return load(self, execution_id)

    monkeypatch.setattr(type(store), "load", counted)
    for _ in range(3):
        notebook(SHOW)
    assert reads == []
    notebook("%durable fork refund-1042 --at 1 --id b")
    reads.clear()
    notebook(SHOW)
    assert reads.count("refund-1042") == 1
