"""Two steps compared: what of the state differs by key, and which messages read differently."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from durable_nb import (
    Agent,
    InvalidInput,
    MemoryCheckpointer,
    Message,
    Reply,
    Resume,
    ScriptedModel,
    call,
    interrupt,
)
from durable_nb.core.compare import Change, compare, line_changes, point
from durable_nb.model.messages import Usage

LETTER = "\n".join(f"line {number}" for number in range(1, 41))


def refund(order: str, amount: int) -> str:
    """Pay an order back, above 100 with a person's yes."""
    if amount > 100 and not interrupt("approval", {"order": {"id": order}}).approved:
        return "not paid"
    return f"paid {amount}"


class Costly:
    """Asks for a refund, then answers; each reply has its price."""

    name = "costly"

    def complete(self, messages: Sequence[Message], tools: object) -> Reply:
        if messages[-1].role == "user":
            wanted = Message("assistant", tool_calls=(call("refund", order="1042", amount=500),))
            return Reply(wanted, Usage(1000, 20, 0, 0.01))
        return Reply(Message("assistant", "Done."), Usage(1100, 10, 0, 0.02))


@pytest.fixture
def store() -> MemoryCheckpointer:
    """Its run `a` has paused at 3, was approved with 90 at 4 and has completed."""
    store = MemoryCheckpointer()
    agent = Agent("bot", Costly(), [refund], checkpointer=store)
    agent.run("go", execution_id="a")
    edited = Resume(approved=True, by="alice", reason="in stock", edited={"amount": 90})
    agent.resume("a", resume_value=edited)
    return store


def changes(
    store: MemoryCheckpointer, before: int | str, after: int | str, other: str = "a"
) -> dict[str, tuple[str | None, str | None]]:
    found = compare(point(store.load("a"), before), point(store.load(other), after))
    return {each.key: (each.before, each.after) for each in found}


def test_from_a_turn_to_its_pause_there_are_a_call_its_arguments_and_what_it_asks(
    store: MemoryCheckpointer,
) -> None:
    found = changes(store, 1, 3)
    assert found["status"] == ("running", "paused")
    assert found["node"] == ("turn:0", "turn:0/tool:refund")
    assert found["tool"] == (None, "refund")
    assert found["arguments.order"] == (None, '"1042"')
    assert found["arguments.amount"] == (None, "500")
    assert found["waits for"] == (None, "approval")
    assert found["context.order.id"] == (None, '"1042"')
    assert found["usage.cost"] == (None, "$0.010000")
    assert found["message 2 (assistant)"] == (None, 'refund(order="1042", amount=500)')
    assert "turn" not in found


def test_an_approval_with_edits_changes_the_arguments_and_says_who_decided(
    store: MemoryCheckpointer,
) -> None:
    found = changes(store, 3, 4)
    assert found["arguments.amount"] == ("500", "90")
    assert found["decision on pause 3"] == (None, "approved by alice, with amount=90: in stock")
    assert found["waits for"] == ("approval", None)
    assert not [key for key in found if key.startswith("message")]


def test_a_node_is_its_first_step_and_the_newest_row_has_the_status_of_the_run(
    store: MemoryCheckpointer,
) -> None:
    assert changes(store, "turn:0/tool:refund", "run_end") == changes(store, 2, 6)
    found = changes(store, "turn:0/tool:refund", "run_end")
    assert found["status"] == ("running", "completed")
    assert found["usage.input_tokens"] == ("1,000", "2,100")
    assert found["message 3 (tool)"][1].endswith("paid 90")  # type: ignore[union-attr]
    assert found["message 4 (assistant)"] == (None, "Done.")


def test_a_step_compared_with_itself_has_no_changes(store: MemoryCheckpointer) -> None:
    for number in range(1, 7):
        assert changes(store, number, number) == {}


def test_backwards_what_was_added_is_removed(store: MemoryCheckpointer) -> None:
    forwards, backwards = changes(store, 2, 6), changes(store, 6, 2)
    assert {key: (after, before) for key, (before, after) in forwards.items()} == backwards


def test_a_fork_is_compared_with_its_parent_and_at_rows_that_it_goes_on_from(
    store: MemoryCheckpointer,
) -> None:
    llm = ScriptedModel([call("refund", order="1042", amount=500), "Less."])
    agent = Agent("bot", llm, [refund], checkpointer=store)
    agent.fork("a", at=2, edit={"amount": 40}, execution_id="b")
    found = changes(store, "run_end", "run_end", "b")
    assert found["message 4 (assistant)"] == ("Done.", "Less.")
    assert found["message 3 (tool)"][1] == "paid 40"
    assert not {"message 1 (user)", "status", "agent"} & found.keys()
    inherited = compare(point(store.load("b"), 2), point(store.load("a"), 2))
    assert inherited == ()


def test_a_dead_run_has_crashed_at_its_newest_row_alone() -> None:
    def die() -> str:
        """Die."""
        raise KeyboardInterrupt

    store = MemoryCheckpointer()
    agent = Agent("bot", ScriptedModel([call("die")]), [die], checkpointer=store)
    with pytest.raises(KeyboardInterrupt):
        agent.run("go", execution_id="a")
    assert changes(store, 1, 2)["status"] == ("running", "crashed")


def test_what_is_no_step_is_refused_with_what_there_is(store: MemoryCheckpointer) -> None:
    for nothing in (0, 7, "turn:9", "3"):
        with pytest.raises(InvalidInput, match=r"has no entry .* numbers from 1 to 6"):
            point(store.load("a"), nothing)


def test_of_a_long_text_the_lines_that_changed_are_shown_with_those_beside_them() -> None:
    change = Change("text", "changed", LETTER, LETTER.replace("line 20\n", "line twenty\n"))
    assert line_changes(change) == [
        *("…", "  line 18", "  line 19", "- line 20", "+ line twenty", "  line 21", "  line 22"),
    ]


def test_what_came_and_what_went_is_shown_whole() -> None:
    assert line_changes(Change("text", "added", None, "a\nb")) == ["+ a", "+ b"]
    assert line_changes(Change("text", "removed", "@@ a", None)) == ["- @@ a"]


def test_texts_that_differ_late_say_so() -> None:
    same = "x\n" * 5_000
    assert line_changes(Change("text", "changed", same + "a", same + "b")) == [
        "… they differ after 2,000 lines"
    ]


def test_of_a_long_line_the_sentence_that_changed_is_shown() -> None:
    line = " ".join(f"Sentence {number} is like the others." for number in range(40))
    change = Change("text", "changed", line, line.replace("Sentence 20 is", "Sentence 20 is not"))
    assert line_changes(change, around=0) == [
        *("…", "- Sentence 20 is like the others.", "+ Sentence 20 is not like the others."),
    ]
