"""`%durable pending`: what waits in the store, decided where it is listed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from durable_nb import Agent, Checkpointer, Resume, ScriptedModel, call, idempotent, interrupt
from durable_nb.core.nodes import moment
from durable_nb.model.entries import Answer
from durable_nb.notebook.inbox import card as inbox
from durable_nb.notebook.inbox.page import Shown, Waiting, ago, overview
from durable_nb.notebook.portrait import Portrait
from durable_nb.runtime.ports import SYSTEM
from tests.notebook.clicking import Clicker, clicker
from tests.notebook.conftest import ANSWER, Notebook, Ran, wire_of
from tests.support.ledger import Ledger

__all__ = ["clicker"]


@pytest.fixture
def waits(bot: Agent) -> Callable[..., None]:
    """Have runs of the bot wait at their pause, number 3."""

    def waits(*names: str) -> None:
        for name in names:
            bot.run("Refund order 1042", execution_id=name)

    return waits


def answers(store: Checkpointer, execution_id: str) -> list[Answer]:
    return [row.entry for row in store.list(execution_id) if isinstance(row.entry, Answer)]


def the_text(ran: Ran) -> str:
    """What the inbox is in a file without a kernel."""
    (text,) = [each["text/plain"] for each in ran.shown if "text/html" in each]
    return text


def test_what_waits_is_listed_oldest_first_and_nothing_runs(
    notebook: Notebook,
    clicker: Clicker,
    bot: Agent,
    waits: Callable[..., None],
    effects: Ledger,
) -> None:
    def die() -> str:
        """Die."""
        raise KeyboardInterrupt

    waits("b")
    notebook.names["mortal"] = Agent("mortal", ScriptedModel([call("die"), "alive"]), [die])
    notebook("%%durable mortal --id dead\nhello")
    waits("a")
    done = notebook.names["plain"] = Agent("plain", ScriptedModel(["hi"]))
    done.run("hello", execution_id="over")
    ran = clicker.sees(notebook("%durable pending"))
    assert [handle.execution_id for handle in ran.value] == ["b", "dead", "a"]
    text = the_text(ran)
    assert text.startswith("● 3 wait for you")
    assert "2 to approve · 1 died in a step" in text
    assert text.index("· b ·") < text.index("· dead ·") < text.index("· a ·")
    assert "over" not in text
    assert clicker.buttons == ["Refresh", *_GATE, "Resume", *_GATE]
    assert (bot.llm.asked, effects.lines) == (2, [])


_GATE = ["Approve", "Reject", "Edit…"]


def test_a_row_says_agent_age_reason_and_context_and_what_a_click_does(
    notebook: Notebook, clicker: Clicker, waits: Callable[..., None]
) -> None:
    waits("refund-1042")
    text = the_text(clicker.sees(notebook("%durable pending")))
    for said in (
        "refund-1042 · refund-bot · waits ",
        "pause 3",
        'manager_approval: order="1042", amount=500',
        'Approve runs refund(order="1042", amount=500) again',
        "%durable approve refund-1042 --pause 3",
        "%durable reject refund-1042 --pause 3 --note 'why'",
    ):
        assert said in text
    assert "manager_approval" in clicker.html
    assert "%durable" not in clicker.html


def test_approving_in_a_row_decides_that_run_alone_and_shows_its_end(
    notebook: Notebook, clicker: Clicker, waits: Callable[..., None], effects: Ledger
) -> None:
    waits("one", "two")
    ran = clicker.sees(notebook("%durable pending"))
    clicker.double_click("Approve", "run two,")
    assert effects.lines == ["1042 500"]
    assert [handle.status for handle in ran.value] == ["paused", "completed"]
    assert ANSWER in clicker.html
    assert ANSWER in the_text(ran)
    assert clicker.buttons == ["Refresh", *_GATE]
    clicker.click("Refresh")
    assert [handle.execution_id for handle in ran.value] == ["one"]
    assert "two" not in clicker.html
    assert the_text(ran).startswith("● 1 waits for you")


def test_a_rejection_takes_the_note_of_its_row_with_it(
    notebook: Notebook, clicker: Clicker, waits: Callable[..., None], store: Checkpointer
) -> None:
    waits("one", "two")
    clicker.sees(notebook("%durable pending"))
    clicker.fill("note on the decision, run two, pause 3", "not in this quarter")
    clicker.click("Reject", "run two,")
    (answer,) = answers(store, "two")
    assert (answer.approved, answer.reason) == (False, "not in this quarter")
    assert answers(store, "one") == []


def test_edited_arguments_are_checked_shown_and_sent_by_another_click(
    notebook: Notebook,
    clicker: Clicker,
    waits: Callable[..., None],
    store: Checkpointer,
    effects: Ledger,
) -> None:
    waits("one")
    clicker.sees(notebook("%durable pending"))
    clicker.click("Edit…")
    amount = "amount of the call in one"
    clicker.fill(amount, 90)
    clicker.double_click("Review")
    assert "amount: 500 → 90" in clicker.html
    assert "Approve runs" in clicker.html
    assert (effects.lines, answers(store, "one")) == ([], [])
    clicker.click("Approve with these")  # too early to be a decision
    assert answers(store, "one") == []
    clicker.click("Change more")
    assert clicker.find(amount).value == 90
    clicker.fill(amount, 80)
    clicker.click("Review")
    clicker.armed("Approve with these")
    clicker.fill("note on the decision, run one, pause 3", "in part")
    clicker.double_click("Approve with these")
    assert effects.lines == ["1042 80"]
    (answer,) = answers(store, "one")
    assert (answer.edited, answer.reason) == ({"amount": 80}, "in part")


def test_an_edit_that_changes_nothing_offers_nothing_to_send(
    notebook: Notebook, clicker: Clicker, waits: Callable[..., None]
) -> None:
    waits("one")
    clicker.sees(notebook("%durable pending"))
    clicker.click("Edit…")
    clicker.click("Review")
    assert "Nothing is changed" in clicker.html
    assert clicker.buttons == ["Refresh", "Change more", "Back"]
    clicker.click("Back")
    assert clicker.buttons == ["Refresh", *_GATE]


def test_the_card_of_a_run_has_the_same_form(
    notebook: Notebook, clicker: Clicker, bot: Agent, effects: Ledger
) -> None:
    clicker.sees(notebook("%%durable bot --id refund-1042\nRefund order 1042"))
    clicker.click("Edit…")
    clicker.fill("amount of the call in refund-1042", 0)
    clicker.fill("order of the call in refund-1042", "7")
    clicker.click("Review")
    clicker.armed("Approve with these")
    clicker.click("Approve with these")
    assert effects.lines == ["7 0"]
    assert "completed" in clicker.text


def test_typing_the_edits_does_the_same(
    notebook: Notebook, waits: Callable[..., None], store: Checkpointer, effects: Ledger
) -> None:
    waits("one")
    notebook("%durable approve one --pause 3 --set amount=4 --set 'order=\"9\"'")
    assert effects.lines == ["9 4"]
    assert answers(store, "one")[0].edited == {"amount": 4, "order": "9"}


def test_the_second_of_two_people_sees_who_decided_and_when(
    notebook: Notebook,
    clicker: Clicker,
    bot: Agent,
    waits: Callable[..., None],
    store: Checkpointer,
    effects: Ledger,
) -> None:
    waits("one", "two")
    clicker.sees(notebook("%durable pending"))
    bot.resume("one", resume_value=Resume(approved=False, by="alice"), pause=3)
    clicker.click("Approve", "run one,")
    assert effects.lines == []
    assert len(answers(store, "one")) == 1
    assert "AlreadyResumed" in clicker.html
    assert "alice rejected pause 3 at" in clicker.html
    assert clicker.buttons == ["Refresh", *_GATE]  # those of the other run


def test_a_card_and_a_row_of_one_run_agree(
    notebook: Notebook, clicker: Clicker, bot: Agent, effects: Ledger
) -> None:
    card = notebook("%%durable bot --id refund-1042\nRefund order 1042")
    clicker.sees(notebook("%durable pending"))
    assert card.buttons != []  # a row does not take the buttons of a card
    clicker.click("Approve")
    assert card.card.startswith("✓ completed")
    assert card.buttons == []
    assert effects.lines == ["1042 500"]


@pytest.fixture
def doubtful(notebook: Notebook, effects: Ledger) -> Agent:
    """The variable `bank`, whose run `wire-1` asks what became of a call."""
    llm = ScriptedModel([call("wire", amount=9), "Done."])
    notebook.names["bank"] = Agent("bank", llm, [wire_of(effects, dies=True)])
    notebook("%%durable bank --id wire-1\nsend 9")
    bank = Agent("bank", llm, [wire_of(effects, dies=False)])
    notebook.names["bank"] = bank
    notebook("%durable resume wire-1")
    return bank


def test_a_call_in_doubt_that_happened_is_told_with_what_it_returned(
    notebook: Notebook,
    clicker: Clicker,
    doubtful: Agent,
    store: Checkpointer,
    effects: Ledger,
) -> None:
    assert "1 in doubt" in the_text(clicker.sees(notebook("%durable pending")))
    assert clicker.buttons == ["Refresh", "It happened…", "Run again", "Stop the run"]
    styles = [each.button_style for each in clicker.widgets if hasattr(each, "button_style")]
    assert styles == [""] * 4  # no answer is offered before another one
    clicker.click("It happened…")
    returned = "what wire returned, as the model is to read it, run wire-1, pause 4"
    clicker.fill(returned, "sent at noon")
    clicker.click("Record it")
    (answer,) = answers(store, "wire-1")
    assert (answer.outcome, answer.result) == ("happened", "sent at noon")
    told = store.get_last("wire-1").state_snapshot["messages"]
    assert "sent at noon" in str(told)
    assert effects.lines == []


@pytest.mark.parametrize(
    ("name", "outcome", "done", "status"),
    [
        ("Run again", "run_again", ["wired 9"], "completed"),
        ("Stop the run", "stop", [], "cancelled"),
    ],
)
def test_a_call_in_doubt_is_run_again_or_the_run_is_stopped(
    notebook: Notebook,
    clicker: Clicker,
    doubtful: Agent,
    store: Checkpointer,
    effects: Ledger,
    name: str,
    outcome: str,
    done: list[str],
    status: str,
) -> None:
    clicker.sees(notebook("%durable pending"))
    clicker.double_click(name)
    assert [each.outcome for each in answers(store, "wire-1")] == [outcome]
    assert effects.lines == done
    assert store.get_last("wire-1").status == status


def test_what_a_function_in_doubt_returned_is_json(
    notebook: Notebook, clicker: Clicker, store: Checkpointer
) -> None:
    dies = [True]

    @idempotent(in_doubt="ask")
    def charge(amount: int) -> dict[str, int]:
        if dies:
            raise KeyboardInterrupt
        return {"paid": amount}

    def pay(amount: int) -> str:
        """Pay."""
        return str(charge(amount)["paid"])

    llm = ScriptedModel([call("pay", amount=9), "Done."])
    notebook.names["bank"] = Agent("bank", llm, [pay])
    notebook("%%durable bank --id pay-1\npay 9")
    dies.clear()
    notebook("%durable resume pay-1")
    clicker.sees(notebook("%durable pending"))
    clicker.click("It happened…")
    returned = "what pay returned, as JSON, run pay-1, pause 4"
    clicker.fill(returned, "paid")
    clicker.click("Record it")
    assert "not JSON" in clicker.html
    assert answers(store, "pay-1") == []
    clicker.fill(returned, '{"paid": 9}')
    clicker.click("Record it")
    assert answers(store, "pay-1")[0].result == {"paid": 9}
    assert store.get_last("pay-1").status == "completed"


def test_a_run_whose_agent_is_not_here_says_which_name_to_define(
    notebook: Notebook, clicker: Clicker, bot: Agent, waits: Callable[..., None]
) -> None:
    waits("one")
    del notebook.names["bot"]
    ran = clicker.sees(notebook("%durable pending"))
    assert clicker.buttons == ["Refresh"]
    assert "no agent 'refund-bot' is defined here" in clicker.text.replace("&#x27;", "'")
    assert "%durable approve one --pause 3" in clicker.html
    notebook.names["bot"] = bot
    clicker.click("Refresh")
    assert clicker.buttons == ["Refresh", *_GATE]
    assert "no agent" not in the_text(ran)


def test_a_live_run_is_not_in_it(
    notebook: Notebook, clicker: Clicker, waits: Callable[..., None]
) -> None:
    seen: list[str] = []

    def look() -> str:
        """Look into the inbox."""
        seen.extend(each.execution_id for each in inbox.waiting_in(agent.checkpointer))
        return "seen"

    agent = Agent("looker", ScriptedModel([call("look"), "done"]), [look])
    waits("one")
    agent.run("look", execution_id="live")
    assert seen == ["one"]


def test_an_expiring_pause_says_until_when_and_an_expired_one_goes_on_as_a_no(
    notebook: Notebook, clicker: Clicker, store: Checkpointer
) -> None:
    def publish(title: str) -> str:
        """Publish."""
        return "out" if interrupt("editor", expires_in=3600).approved else "not published"

    llm = ScriptedModel([call("publish", title="x"), "ok"] * 2)
    late = replace(SYSTEM, clock=lambda: SYSTEM.clock() - 7_200_000_000)
    Agent("editor", llm, [publish], ports=late).run("go", execution_id="late")
    agent = notebook.names["editor"] = Agent("editor", llm, [publish])
    agent.run("go", execution_id="soon")
    ran = clicker.sees(notebook("%durable pending"))
    until = moment(SYSTEM.clock()) + timedelta(hours=1)
    assert f"until {until:%Y-%m-%d}" in the_text(ran)
    assert "● expired · late" in the_text(ran)
    assert "Resume tells publish no, by timeout" in the_text(ran)
    assert clicker.buttons == ["Refresh", "Resume", *_GATE]
    clicker.click("Resume", "run late")
    (answer,) = answers(store, "late")
    assert (answer.approved, answer.source) == (False, "timeout")


def test_a_run_that_came_to_another_gate_waits_again_after_a_refresh(
    notebook: Notebook, clicker: Clicker, effects: Ledger
) -> None:
    def refund(order: str) -> str:
        """Pay an order back."""
        for who in ("manager", "vp"):
            if not interrupt(who, {"order": order}).approved:
                return f"{who} said no"
        effects.add(order)
        return "paid"

    llm = ScriptedModel([call("refund", order="1042"), ANSWER])
    agent = notebook.names["bot"] = Agent("refund-bot", llm, [refund])
    agent.run("go", execution_id="gates")
    ran = clicker.sees(notebook("%durable pending"))
    clicker.double_click("Approve")
    assert ran.value[0].pending["number"] == 5
    assert "vp" in clicker.html
    clicker.double_click("Approve")  # the next question is not answered by an early click
    assert effects.lines == []
    clicker.armed("Approve")
    clicker.click("Approve", "pause 5")
    assert effects.lines == ["1042"]


def test_many_are_shown_a_page_at_a_time(
    notebook: Notebook, clicker: Clicker, waits: Callable[..., None]
) -> None:
    names = [f"run-{number:02}" for number in range(23)]
    waits(*names)
    ran = clicker.sees(notebook("%durable pending"))

    def rows() -> list[str]:
        tips = [each.tooltip for each in clicker.widgets if hasattr(each, "button_style")]
        return [tip.split(", ")[1] for tip in tips if tip.startswith("Approve,")]

    assert rows() == [f"run {name}" for name in names[:10]]
    assert "1 to 10 of 23" in clicker.html
    assert clicker.find("◂ Older").disabled
    assert "Shown: 1 to 10 of 23" in the_text(ran)
    clicker.click("Newer ▸")
    clicker.click("Newer ▸")
    assert rows() == [f"run {name}" for name in names[20:]]
    assert clicker.find("Newer ▸").disabled
    for name in names[20:]:
        clicker.click("Approve", f"run {name},")
    clicker.click("Refresh")
    assert rows() == [f"run {name}" for name in names[10:20]]
    clicker.click("◂ Older")
    assert rows() == [f"run {name}" for name in names[:10]]


def test_only_the_page_that_is_shown_has_widgets(
    notebook: Notebook, clicker: Clicker, bot: Agent, waits: Callable[..., None]
) -> None:
    from ipywidgets.widgets.widget import _instances

    waits(*(f"r{number}" for number in range(60)))
    before = len(_instances)
    ran = clicker.sees(notebook("%durable pending"))
    assert len(ran.value) == 60
    made = len(_instances) - before
    clicker.click("Newer ▸")
    assert len(_instances) - before <= made + 10  # widgets of the page before are gone


def test_shown_again_it_leaves_the_text_alone_in_the_cell_before(
    notebook: Notebook, clicker: Clicker, waits: Callable[..., None], effects: Ledger
) -> None:
    waits("one")
    first = notebook("%durable pending")
    second = clicker.sees(notebook("%durable pending"))
    assert (len(first.buttons), len(second.buttons)) == (0, 1)
    assert the_text(first).startswith("● 1 waits for you")
    clicker.click("Approve")
    assert effects.lines == ["1042 500"]
    clicker.click("Refresh")
    assert second.buttons == []
    assert the_text(second).startswith("✓ nothing waits for you")


def test_without_anything_it_says_so(notebook: Notebook) -> None:
    ran = notebook("%durable pending")
    assert "nothing waits for you" in ran.printed
    assert list(ran.value) == []


def test_with_nobody_there_it_is_text_and_html_with_what_to_type(
    notebook: Notebook, waits: Callable[..., None]
) -> None:
    waits("one", "two")
    ran = notebook("%durable pending")
    assert ran.buttons == []
    (shown,) = ran.shown
    for form in shown.values():
        assert "%durable approve one --pause 3" in form
        assert "%durable approve two --pause 3" in form
    assert "as text" not in shown["text/html"]


def test_it_can_be_asked_for_handles(notebook: Notebook, waits: Callable[..., None]) -> None:
    waits("one", "two", "three")
    notebook("w = %durable pending")
    assert notebook("len(w), w[0].execution_id, w[-1].status").value == (3, "one", "paused")
    assert [each.execution_id for each in notebook("w[1:]").value] == ["two", "three"]
    assert repr(notebook.names["w"]) == "<3 waiting>"


def test_a_run_that_is_gone_since_says_so_in_its_row(
    notebook: Notebook, clicker: Clicker, waits: Callable[..., None], store: Checkpointer
) -> None:
    waits("one", "two")
    clicker.sees(notebook("%durable pending"))
    store.delete_execution("one")
    clicker.click("Approve", "run one,")
    assert "UnknownExecution" in clicker.html
    clicker.click("Refresh")
    assert clicker.buttons == ["Refresh", *_GATE]


def test_what_others_wrote_is_text(notebook: Notebook, clicker: Clicker) -> None:
    def ask(text: str) -> str:
        """Ask."""
        interrupt("<img src=x onerror=alert(1)>", {"<b>": "<script>1</script>", "t": text})
        return "ok"

    llm = ScriptedModel([call("ask", text="$x$ \x1b[31m" + "y" * 100_000), "done"])
    agent = notebook.names["asker"] = Agent("<i>bot</i>", llm, [ask])
    agent.run("go", execution_id="<u>evil</u>")
    ran = clicker.sees(notebook("%durable pending"))
    for html in (clicker.html, ran.shown[0]["text/html"]):
        for tag in ("<img", "<script", "<b>:", "<i>bot", "<u>evil", "\x1b"):
            assert tag not in html
        assert "&lt;u&gt;evil" in html
    assert len(the_text(ran)) < 3_000


def test_ages_are_in_one_unit() -> None:
    ages = [timedelta(seconds=-5), timedelta(seconds=59), timedelta(minutes=90), timedelta(days=9)]
    assert [ago(each) for each in ages] == ["0 s", "59 s", "1 h", "9 d"]


def test_the_head_counts_what_waits() -> None:
    now = datetime(2026, 11, 30, tzinfo=UTC)
    listed = [
        Waiting("a", "bot", "in_doubt", now - timedelta(days=2)),
        Waiting("b", "bot", "crashed", now),
    ]
    row = Portrait("amber", "●", "waiting for you", "a", ("bot",))
    said = overview("runs", listed, Shown(0, 10, 2), [row], now, fold=True)
    assert said["text/plain"].splitlines()[0] == (
        "● 2 wait for you · runs · 1 in doubt · 1 died in a step · the oldest for 2 d"
    )
    assert "<details" in said["text/html"]


@pytest.mark.parametrize("reason", ["word " * 40_000, "line\n" * 40_000])
def test_a_row_stays_short_however_long_the_reason_is(
    notebook: Notebook, clicker: Clicker, reason: str
) -> None:
    def ask(order: str) -> str:
        """Ask."""
        return "done" if interrupt(reason, {"order": order}).approved else "left"

    agent = notebook.names["asks"] = Agent(
        "asks", ScriptedModel([call("ask", order="1"), "x"]), [ask]
    )
    agent.run("hello", execution_id="long")
    ran = clicker.sees(notebook("%durable pending"))
    assert len(the_text(ran)) < 5_000
    assert len(clicker.html) < 20_000


def test_a_call_without_arguments_can_be_given_those_that_its_tool_takes(
    notebook: Notebook, clicker: Clicker, store: Checkpointer
) -> None:
    def report(days: int = 7) -> str:
        """Report."""
        return f"{days} days" if interrupt("send it?").approved else "left"

    def bare() -> str:
        """Do it."""
        return "done" if interrupt("do it?").approved else "left"

    for tool in (report, bare):
        agent = Agent(tool.__name__, ScriptedModel([call(tool.__name__), "x"]), [tool])
        notebook.names[tool.__name__] = agent
        agent.run("hello", execution_id=tool.__name__)
    clicker.sees(notebook("%durable pending"))
    assert clicker.buttons == ["Refresh", *_GATE, "Approve", "Reject"]
    clicker.click("Edit…")
    clicker.fill("whether days of the call in report is given", "a value")
    clicker.fill("days of the call in report", 30)
    clicker.click("Review")
    assert "days: (left out) → 30" in clicker.html
