"""What others wrote is shown as text, whatever it is; and every card has a plain twin."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from durable_nb import Agent, MemoryCheckpointer, ScriptedModel, call, interrupt
from durable_nb.core.nodes import status_of
from durable_nb.core.text import readable, visible
from durable_nb.notebook.inspector.page import Family, inside
from durable_nb.notebook.inspector.steps import page_of
from durable_nb.notebook.portrait import Look, portrait
from durable_nb.notebook.render import html, text

HOSTILE = [
    "<script>alert(1)</script>",
    "</div></pre></details><h1>approved</h1>",
    "<img src=x onerror=alert(1)>",
    "\x1b[31mred\x1b[0m \x1b]8;;http://evil\x07link",
    "$$\\frac{1}{2}$$ and $x$ and \\(y\\) and \\begin{align}z\\end{align}",
    "[/red] [bold]x[/bold] `code` **md**",
    "list[int], Optional[str]",
    "safe\u202egnp.exe\u202c",
    "\ud800 alone, \x00 NUL",
    "&lt;b&gt; &amp;amp;",
    '" onmouseover="alert(1)',
]
ALLOWED = {"div", "span", "b", "code", "pre", "table", "tr", "th", "td", "details", "summary"}


class Seen(HTMLParser):
    """Tags, attributes and text, as a browser takes them."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def drawn(said: str, *, answered: bool) -> tuple[str, str]:
    """A card that opens to everything, as HTML and as text, of a run that carries `said` wherever others can write."""

    def show(what: str) -> str:
        """Show."""
        if not answered:
            interrupt(visible(said)[:80], {"what": said, said: [said, {said: 1}]})
        return said

    store = MemoryCheckpointer()
    llm = ScriptedModel([call("show", what=said), said])
    Agent("bot", llm, [show], checkpointer=store).run(said, execution_id="a run")
    log = store.load("a run")
    page = page_of(log, step="turn:0/tool:show")
    below = inside(log, page, status_of(log), store.effects("a run"), Family())
    card = portrait(log, Look(notes=(said,)), below)
    return html(card), text(card)


@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("said", HOSTILE)
def test_what_others_wrote_is_text(said: str, answered: bool) -> None:
    markup, plain = drawn(said, answered=answered)
    seen = Seen(markup)
    assert seen.tags <= ALLOWED
    assert seen.attributes <= {"style", "open"}
    assert seen.open == []
    assert visible(said) in seen.text
    assert visible(said) in plain
    for form in (markup, plain):
        form.encode()  # it can be sent
        assert "\x1b" not in form
        assert "\u202e" not in form


@pytest.mark.parametrize("sign", ["$$x$$", "\\(x\\)", "\\[x\\]"])
def test_no_two_signs_of_mathematics_share_a_piece_of_text(sign: str) -> None:
    class Pieces(HTMLParser):
        found: tuple[str, ...] = ()

        def handle_data(self, data: str) -> None:
            self.found += (data,)

    parser = Pieces()
    parser.feed(drawn(sign, answered=True)[0])
    assert all(len(piece) == 1 for piece in parser.found if "$" in piece or "\\" in piece)


def test_a_long_answer_is_folded_and_says_how_to_see_all_of_it() -> None:
    said = "x" * 1_000_000
    for answered in (False, True):
        markup, plain = drawn(said, answered=answered)
        assert len(markup) < 100_000
        assert len(plain) < 10_000
        assert "1,000,0" in markup
    assert "h = %durable show 'a run'" in Seen(markup).text
    assert "h = %durable show 'a run'" in plain


def test_a_context_of_many_fields_is_cut_and_says_so() -> None:
    store = MemoryCheckpointer()

    def show() -> str:
        """Show."""
        interrupt("why", {f"field {n}": n for n in range(1000)})
        return ""

    Agent("bot", ScriptedModel([call("show")]), [show], checkpointer=store).run(
        "go", execution_id="a"
    )
    card = portrait(store.load("a"), Look())
    assert "… and 960 more" in html(card)
    assert "… and 960 more" in text(card)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("1042", '"1042"'),
        (None, "None"),
        (True, "True"),
        (1.5, "1.5"),
        ((1, "a"), "(1, 'a')"),
        ({"a": [1]}, '{"a": [1]}'),
        ("two\nlines", "two\nlines"),
        ("ünïcode", '"ünïcode"'),
    ],
)
def test_values_are_shown_as_they_would_be_typed(value: object, shown: str) -> None:
    assert readable(value) == shown


@pytest.mark.parametrize(
    ("on_reject", "says"),
    [
        ("run", "Reject runs show again, too, and decision.approved is False there."),
        ("skip", "Reject does not run show again."),
    ],
)
def test_a_card_says_which_pause_it_is_and_what_each_answer_does(on_reject: str, says: str) -> None:
    def show() -> str:
        """Show."""
        return str(interrupt("why", on_reject=on_reject).approved)  # type: ignore[arg-type]

    store = MemoryCheckpointer()
    Agent("bot", ScriptedModel([call("show")]), [show], checkpointer=store).run(
        "go", execution_id="a"
    )
    card = text(portrait(store.load("a"), Look()))
    assert card.startswith("● waiting for you · a · bot · pause 3 · since ")
    assert says in card


@pytest.mark.parametrize(("here", "says"), [("a.ipynb", ""), ("b.ipynb", "· from a.ipynb")])
def test_a_stored_card_names_the_notebook_of_its_run_if_it_is_another(here: str, says: str) -> None:
    store = MemoryCheckpointer()
    agent = Agent("bot", ScriptedModel(["Done."]), checkpointer=store)
    agent.run("go", execution_id="a", tags=["notebook:a.ipynb", "my notebook: blue"])
    card = text(portrait(store.load("a"), Look(stored=True, notebook=here)))
    assert ("from" in card.replace("from store", "")) is bool(says)
    assert says in card
