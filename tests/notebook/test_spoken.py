"""A reply's text is under the newest card while it comes, and nothing of it is left afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

from durable_nb import Agent, Message, Reply, ScriptedModel, call, interrupt
from durable_nb.llm.stream import is_heard, tell
from durable_nb.notebook.portrait import Live
from durable_nb.notebook.render import live
from durable_nb.notebook.words import duration, tail
from tests.notebook.conftest import Notebook, eventually
from tests.notebook.test_clicks import button, click

CELL = "%%durable bot --id a -o h\ngo"
DANGER = "<script>alert(1)</script> </div> \x1b[31m $x^2$ \\(a\\)"
SEEN = "x1b[31m"


class Spoken:
    """Says `text` and answers when `enough` is so, or nobody listens."""

    def __init__(self, text: str, enough: Callable[[], object]) -> None:
        self.text = text
        self.enough = enough
        self.heard: list[bool] = []

    def complete(self, messages: Sequence[Message], tools: object) -> Reply:
        self.heard.append(is_heard())
        if messages[-1].role == "user" and tools:
            return Reply(Message("assistant", tool_calls=(call("gate"),)))
        tell("")
        tell(self.text)
        if is_heard():
            eventually(self.enough)
        return Reply(Message("assistant", "Done."))


class AsyncSpoken(Spoken):
    """The same, on the engine's loop."""

    async def complete(self, messages: Sequence[Message], tools: object) -> Reply:  # type: ignore[override]
        return super().complete(messages, tools)


def gate() -> str:
    """Ask a person."""
    return str(interrupt("sure?").approved)


def drawn(notebook: Notebook) -> list[str]:
    """All that was published while the cell runs, as HTML."""
    outputs = getattr(notebook.shell.display_pub, "outputs", [])
    return [each["data"].get("text/html", "") for each in list(outputs)]


@pytest.fixture
def watched(notebook: Notebook) -> Notebook:
    """Somebody is there."""
    notebook("%config DurableMagics.headless = False")
    return notebook


def spoken(notebook: Notebook, kind: type[Spoken], *tools: Callable[..., object]) -> Spoken:
    """The variable `bot`, whose model goes on speaking until its text is on the screen."""

    def is_seen() -> bool:
        return any(SEEN in html for html in drawn(notebook))

    llm = kind(DANGER, is_seen)
    notebook.names["bot"] = Agent("bot", llm, tools)
    return llm


@pytest.mark.parametrize("kind", [Spoken, AsyncSpoken])
def test_the_text_is_seen_while_it_comes_and_gone_when_it_is_on_disk(
    watched: Notebook, kind: type[Spoken]
) -> None:
    shown: list[str] = []
    llm = spoken(watched, kind)
    seen = llm.enough

    def keep() -> bool:
        shown[:] = drawn(watched)
        return bool(seen())

    llm.enough = keep
    ran = watched(CELL)
    (said,) = [html for html in shown if SEEN in html]
    assert "<script" not in said
    assert "&lt;/div&gt;" in said
    assert "$x" not in said.replace("<span>$</span>", "")
    assert ran.error is None
    assert ran.card.startswith("✓ completed")
    assert [each for each in ran.shown if SEEN in str(each)] == []


@pytest.mark.parametrize("kind", [Spoken, AsyncSpoken])
def test_the_text_of_a_run_that_a_click_started_is_seen_under_its_card(
    watched: Notebook, kind: type[Spoken]
) -> None:
    llm = spoken(watched, kind, gate)
    ran = watched(CELL)
    assert ran.card.startswith("● waiting for you")
    click(watched, button(ran, "Approve"))
    assert llm.heard == [True, True]
    assert ran.card.startswith("✓ completed")
    assert [each for each in ran.shown if SEEN in str(each)] == []


def test_a_run_that_speaks_behind_a_click_holds_up_no_cell(watched: Notebook) -> None:
    """The model goes on only when a later cell says so."""
    go_on = threading.Event()
    llm = spoken(watched, Spoken, gate)
    llm.enough = go_on.is_set
    watched.names["go_on"] = go_on
    ran = watched(CELL)
    watched.while_capturing(button(ran, "Approve").click)
    later = watched("h.status")
    assert later.value == "running"
    watched("go_on.set(); h.wait(60)")
    assert watched("h.output").value == "Done."


def test_where_nobody_watches_nobody_listens(notebook: Notebook) -> None:
    llm = spoken(notebook, Spoken)
    ran = notebook(CELL)
    assert llm.heard == [False]
    assert len(ran.ids) == 1


def test_a_quiet_cell_shows_nothing_of_what_is_said(watched: Notebook) -> None:
    told = threading.Event()

    class Quiet(Spoken):
        def complete(self, messages: Sequence[Message], tools: object) -> Reply:
            tell(DANGER)
            told.set()
            return Reply(Message("assistant", "Done."))

    watched.names["bot"] = Agent("bot", Quiet("", bool))
    ran = watched(CELL.replace("-o h", "-o h --quiet"))
    assert told.is_set()
    assert SEEN not in str(ran.screen)


def test_a_step_that_has_said_nothing_shows_how_long_it_takes(watched: Notebook) -> None:
    """Time is the agent's: its clock is a minute ahead when the tool looks at it."""
    from durable_nb.runtime.ports import SYSTEM, Ports

    ahead = [0]
    waited = threading.Event()

    def late() -> int:
        return SYSTEM.clock() + ahead[0]

    def slow() -> str:
        """Take a minute and more."""
        ahead[0] = 65_000_000
        eventually(lambda: any("slow is running · 1 min 0" in html for html in drawn(watched)))
        waited.set()
        return "slow"

    agent = Agent("bot", ScriptedModel([call("slow"), "Done."]), [slow])
    agent.ports = Ports(clock=late)
    watched.names["bot"] = agent
    ran = watched(CELL)
    assert waited.is_set()
    assert ran.card.startswith("✓ completed")
    assert "is running" not in str(ran.shown)


def test_an_interrupt_leaves_a_card_that_says_how_to_go_on_and_no_text(watched: Notebook) -> None:
    class Stopped(Spoken):
        def complete(self, messages: Sequence[Message], tools: object) -> Reply:
            super().complete(messages, ())
            raise KeyboardInterrupt

    llm = spoken(watched, Stopped)
    assert isinstance(llm, Stopped)
    ran = watched(CELL)
    assert isinstance(ran.error, KeyboardInterrupt)
    assert ran.card.startswith("↯ stopped by you")
    assert "%durable resume a" in ran.card
    assert SEEN not in str(ran.shown)


def test_the_text_of_the_step_before_is_not_that_of_the_next(watched: Notebook) -> None:
    """A model that says something and then asks for a tool: while the tool works it is gone."""

    def is_erased() -> bool:
        shown = drawn(watched)
        newest = max(at for at, html in enumerate(shown) if SEEN in html)
        return "" in shown[newest:]

    def look() -> str:
        """Look, until nothing of what was said is there."""
        eventually(is_erased)
        return "seen"

    class First(Spoken):
        def complete(self, messages: Sequence[Message], tools: object) -> Reply:
            if messages[-1].role == "tool":
                return Reply(Message("assistant", "Done."))
            tell(self.text)
            eventually(self.enough)
            return Reply(Message("assistant", "Let me look.", (call("look"),)))

    spoken(watched, First, look)
    ran = watched(CELL)
    assert ran.error is None
    assert "tool error" not in ran.card


def test_a_text_of_a_megabyte_is_cut_to_its_end() -> None:
    step = Live(None, 3, "a" * 1_000_000 + "\n" * 1_000_000 + "the end")
    both = live(step)
    assert len(both["text/html"]) < 2_000
    assert both["text/plain"].endswith("the end")
    assert both["text/plain"].startswith("asking the model · 3 s\n…")
    assert both["text/plain"].count("\n") <= 9


def test_a_tools_name_is_text() -> None:
    both = live(Live("<b>\x1b[31m", 0))
    assert "&lt;b&gt;<span>\\</span>x1b[31m is running" in both["text/html"]
    assert "\x1b" not in both["text/plain"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("", ""), ("abc", "abc"), ("abcdef", "…cdef"), ("a\nb\nc", "…b\nc"), ("a\nbc", "a\nbc")],
)
def test_the_end_of_a_text_says_that_there_was_more(text: str, shown: str) -> None:
    assert tail(text, 4, 2) == shown


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (59, "59 s"), (65, "1 min 05 s"), (3599, "59 min 59 s"), (7620, "2 h 07 min")],
)
def test_a_duration_is_as_exact_as_anybody_needs(seconds: int, said: str) -> None:
    assert duration(seconds) == said
