"""The steps of a card: how far the newest is, what a tool raised, and after what a run went on."""

from __future__ import annotations

import pytest

from durable_nb import Agent, MemoryCheckpointer, Resume, ScriptedModel, call, interrupt
from durable_nb.notebook.portrait import Look, portrait
from durable_nb.notebook.render import text


@pytest.fixture
def store() -> MemoryCheckpointer:
    return MemoryCheckpointer()


def lines(store: MemoryCheckpointer) -> list[str]:
    """The card of run `a`, line by line, with single spaces."""
    drawn = text(portrait(store.load("a"), Look(opened=True)))
    return [" ".join(line.split()) for line in drawn.splitlines()]


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
