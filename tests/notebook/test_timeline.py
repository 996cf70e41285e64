"""The steps of a card: how far the newest is, what a tool raised, and after what a run went on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from durable_nb import (
    Agent,
    MemoryCheckpointer,
    Message,
    Reply,
    Resume,
    ScriptedModel,
    call,
    interrupt,
)
from durable_nb.core.text import visible
from durable_nb.model.entries import End, Run, Turn
from durable_nb.model.messages import Asked, Trim, Usage
from durable_nb.notebook.portrait import Look, portrait
from durable_nb.notebook.render import html, text
from durable_nb.notebook.timeline import timeline


@pytest.fixture
def store() -> MemoryCheckpointer:
    return MemoryCheckpointer()


def lines(store: MemoryCheckpointer) -> list[str]:
    """The card of run `a`, its outcome and its steps, line by line, with single spaces."""
    log = store.load("a")
    drawn = (
        text(portrait(log, Look())).splitlines()[:1]
        + visible("\n".join(timeline(log))).splitlines()
    )
    return [" ".join(line.split()) for line in drawn]


def line(store: MemoryCheckpointer, step: str) -> str:
    (found,) = [each for each in lines(store) if step in each]
    return found


def risky(x: str) -> str:
    """Raise."""
    raise ValueError(f"bad {x}\nover two lines")


def test_what_a_tool_raised_is_on_its_line_and_counted(store: MemoryCheckpointer) -> None:
    llm = ScriptedModel([call("risky", x="one"), call("nothing"), "Done."])
    Agent("bot", llm, [risky], checkpointer=store).run("go", execution_id="a")
    assert line(store, "tool:risky").endswith(
        "tool_call completed Error: ValueError: bad one over two lines"
    )
    assert line(store, "#2 turn:2").endswith(
        "llm_call completed Error: there is no tool 'nothing'; there are risky"
    )
    assert lines(store)[0].endswith("2 tool errors")


def test_of_two_calls_each_has_the_error_that_is_its_own(store: MemoryCheckpointer) -> None:
    def safe() -> str:
        """Return."""
        return "fine"

    llm = ScriptedModel([[call("risky", x="1"), call("safe")], [call("risky", x="2")], "Done."])
    Agent("bot", llm, [risky, safe], checkpointer=store).run("go", execution_id="a")
    said = lines(store)
    assert [each.split("completed ")[1] for each in said if "tool:risky" in each] == [
        "Error: ValueError: bad 1 over two lines",
        "Error: ValueError: bad 2 over two lines",
    ]
    assert line(store, "tool:safe").endswith("completed")


def test_what_a_rejected_tool_raised_is_on_its_line(store: MemoryCheckpointer) -> None:
    def gate() -> str:
        """Ask, then raise."""
        interrupt("sure?")
        raise LookupError("no such order")

    agent = Agent("bot", ScriptedModel([call("gate"), "Done."]), [gate], checkpointer=store)
    agent.run("go", execution_id="a")
    agent.resume("a", resume_value=Resume(approved=False, by="alice", reason="no"))
    assert line(store, "tool_call").endswith("Error: LookupError: no such order")


def test_the_newest_step_is_in_flight_or_where_the_run_died(store: MemoryCheckpointer) -> None:
    seen: list[str] = []

    def look() -> str:
        """Look at the run from inside, then die."""
        seen.append(line(store, " tool_call "))
        raise KeyboardInterrupt

    agent = Agent("bot", ScriptedModel([call("look")]), [look], checkpointer=store)
    with pytest.raises(KeyboardInterrupt):
        agent.run("go", execution_id="a")
    assert seen[0].endswith("tool_call in flight")
    assert line(store, " tool_call ").endswith("tool_call died here")
    assert line(store, "llm_call").endswith("completed")
    assert store.get_last("a").status == "completed"  # what is stored stays as it is


def test_a_run_goes_on_after_a_crash_or_after_a_failure(store: MemoryCheckpointer) -> None:
    errors: list[BaseException] = [KeyboardInterrupt(), RuntimeError("503")]

    class Flaky:
        name = "flaky"

        def complete(self, messages: object, tools: object) -> object:
            if errors:
                raise errors.pop(0)
            return ScriptedModel(["Done."]).complete([], [])

    agent = Agent("bot", Flaky(), checkpointer=store)
    with pytest.raises(KeyboardInterrupt):
        agent.run("go", execution_id="a")
    with pytest.raises(RuntimeError):
        agent.resume("a")
    agent.resume("a")
    ways = [each.split("by ")[1].split(", ")[1] for each in lines(store) if " resume " in each]
    assert ways == ["after a crash", "after a failure"]


class Costly:
    """Asks for a tool and then answers; it dies the second time that it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def complete(self, messages: Sequence[Message], tools: object) -> Reply:
        self.asked += 1
        if self.asked == 2:
            raise KeyboardInterrupt
        if self.asked == 1:
            wanted = Message("assistant", tool_calls=(call("risky", x="one"),))
            failed = ("503 <b>Unavailable</b>\x1b[31m", "429\nslow down")
            return Reply(wanted, Usage(1180, 24, 900, 0.0031), "m", failed)
        return Reply(Message("assistant", "Done."), Usage(1204, 40, 0, 0.0042), "m")


@pytest.fixture
def costly(store: MemoryCheckpointer) -> Agent:
    """Its run `a` has died at turn 1."""
    agent = Agent("bot", Costly(), [risky], checkpointer=store)
    with pytest.raises(KeyboardInterrupt):
        agent.run("go", execution_id="a")
    return agent


def test_each_call_has_what_it_cost_and_under_it_what_failed_before(
    store: MemoryCheckpointer, costly: Agent
) -> None:
    costly.resume("a")
    said = lines(store)
    at = said.index(line(store, "#0 turn:0 "))
    assert said[at].endswith("llm_call completed 1,204 tokens, $0.0031")
    assert said[at + 1] == "↻ asked 3 times: 503 <b>Unavailable</b>\\x1b[31m, then 429 slow down"
    assert line(store, " resume ").endswith(", after a crash 1,244 tokens, $0.0042")
    drawn = html(portrait(store.load("a"), Look()))
    assert "<b>Unavailable" not in drawn
    assert "5 steps" in drawn


def test_the_call_that_a_crash_wasted_is_shown_as_such(
    store: MemoryCheckpointer, costly: Agent
) -> None:
    assert line(store, "#1 turn:1 ").endswith("llm_call died here")
    assert lines(store)[0].endswith("· 1,204 tokens, $0.0031 · 1 tool error")
    costly.resume("a")
    assert line(store, " turn:1 llm_call").endswith(
        "completed ↯ asked in vain: no reply is on disk"
    )
    assert "· 3 model calls, 1 lost · 1 tool call · 2,448 tokens, $0.0073 ·" in lines(store)[0]


def test_a_card_from_the_store_leaves_what_was_paid_then_to_the_inspector(
    store: MemoryCheckpointer, costly: Agent
) -> None:
    costly.resume("a")
    stored = text(portrait(store.load("a"), Look(stored=True)))
    assert "$" not in stored
    assert "2,448 tokens, $0.0073" in lines(store)[0]


def test_a_trim_is_under_the_call_that_was_not_sent_everything(store: MemoryCheckpointer) -> None:
    run, said = Run("a", "bot", "go", 1, "a"), Message("user", "go")
    lease = store.create(run, Turn(0, (said,)), at=1, writer=7)
    asked = Asked("m", (), Trim(14, 12_000, 9_000, 15))
    answer = (Message("assistant", "Done."),)
    store.append(lease, End(1, "completed", "Done.", None, answer, Usage(9_000, 3), asked), at=2)
    store.release(lease)
    at = lines(store).index(line(store, "#0 turn:0 "))
    assert lines(store)[at].endswith("llm_call completed 9,003 tokens")
    assert lines(store)[at + 1] == (
        "▾ 12,000 tokens of history, 9,000 sent: 14 older messages left out"
    )
