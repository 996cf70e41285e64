"""A picture of a run says in lengths and bars what its log says, in words too, and stays small."""

from __future__ import annotations

import re
from contextlib import suppress
from xml.etree import ElementTree

import pytest

from durable_nb import Checkpointer, MemoryCheckpointer, Message, Resume, views
from durable_nb.model.entries import Answer, End, Pause, Reentry, Run, ToolCall, Turn
from durable_nb.model.messages import Call, Usage
from durable_nb.views.spans import Span, shown_lengths, spans
from tests.views.runs import STATUS, a_run_of_every_status, bot
from tests.views.test_usage import Priced, driven
from tests.views.test_usage import bot as priced_bot

SVG = "{http://www.w3.org/2000/svg}"
SECOND = 1_000_000


def test_every_run_has_a_picture_that_parses_and_says_its_title(store: Checkpointer) -> None:
    a_run_of_every_status(store)
    for execution_id, status in STATUS.items():
        picture = views.picture(execution_id, store=store)
        root = ElementTree.fromstring(picture._repr_svg_())
        title = root.find(f"{SVG}title").text
        assert title.startswith(f"{execution_id}: {status}, ")
        assert root.get("aria-label") == title
        assert root.get("role") == "img"
        assert "model" in root.find(f"{SVG}desc").text
        assert str(picture).startswith(f"{execution_id} · {status}")
        assert ElementTree.fromstring(picture._repr_html_()).get("style").endswith("color:inherit")


def a_life(store: Checkpointer) -> None:
    """A run whose times are known: it pauses for a day, dies once and fails once."""
    said = (Message("user", "go"),)
    lease = store.create(Run("life", "bot", "go", 0, "life"), Turn(0, said), at=0, writer=1)
    asked = (Message("assistant", "", (Call("gate", {}, "c1"),)),)
    rest = [
        (2, ToolCall(0, "gate", "c1", {}, asked, Usage(100, 20, 0, 0.5))),
        (3, Pause(0, "gate", "sure?", {}, "d")),
        (86_403, Answer(0, "gate", 3, True, "ann")),
        (86_404, Turn(1, (Message("tool", "yes", tool_call_id="c1"),))),
        (86_409, Reentry(1, None, 5, "ann")),
        (86_410, End(1, "failed", error="OSError: 503")),
        (86_420, Reentry(1, None, 5, "ann")),
        (
            86_422,
            End(2, "completed", "ok", messages=(Message("assistant", "ok"),), usage=Usage(9, 1)),
        ),
    ]
    for at, entry in rest:
        store.append(lease, entry, at=at * SECOND)
    store.release(lease)


def test_lengths_are_what_the_rows_times_say(store: Checkpointer) -> None:
    a_life(store)
    assert [(each.lane, each.seconds) for each in spans(store.load("life"))] == [
        ("model", 2.0),
        ("tools", 1.0),
        ("waits", 86_400.0),
        ("tools", 1.0),
        ("stopped", 5.0),
        ("model", 1.0),
        ("stopped", 10.0),
        ("model", 2.0),
    ]


def test_a_wait_of_a_day_does_not_hide_the_work_beside_it(store: Checkpointer) -> None:
    a_life(store)
    found = spans(store.load("life"))
    shown = shown_lengths(found)
    work = sum(
        long for long, each in zip(shown, found, strict=True) if each.lane in ("model", "tools")
    )
    assert work == 7.0
    assert sum(shown) == pytest.approx(14.0)


def test_one_short_rest_is_drawn_as_long_as_it_was() -> None:
    found = [Span("model", "a", 10.0), Span("waits", "b", 1.0), Span("waits", "c", 50.0)]
    assert shown_lengths(found) == [10.0, 1.0, 9.0]
    assert shown_lengths([Span("waits", "b", 3.0)]) == [3.0]
    assert shown_lengths([]) == []


def test_turns_have_bars_of_what_they_used_in_tokens_or_dollars(store: Checkpointer) -> None:
    driven(priced_bot(store, Priced({2: KeyboardInterrupt()})), "a")
    usage = views.usage("a", store=store)
    tokens = views.picture("a", store=store)
    by_turn = (
        (usage.input_tokens.fillna(0) + usage.output_tokens.fillna(0)).groupby(usage.turn).sum()
    )
    assert [(bar.first, bar.value) for bar in tokens.bars] == list(by_turn.items())
    assert [bar.lost for bar in tokens.bars] == [0, 1, 0, 0]
    assert "turn 1" in str(tokens)
    assert "1 asked in vain" in str(tokens)
    cost = views.picture("a", store=store, cost=True)
    assert [bar.value for bar in cost.bars] == [0.25] * 4
    assert "$0.25" in str(cost)


def test_what_nobody_counted_is_said_to_be_unknown(store: Checkpointer) -> None:
    bot(store, "Done.").run("go", execution_id="a")
    picture = views.picture("a", store=store)
    assert "tokens a turn: not known" in str(picture)
    assert "turn 0" not in picture.svg()
    driven(priced_bot(store, Priced({})), "b")
    counted = views.picture("b", store=store).svg()
    assert "turn 0" in counted
    assert _height(picture.svg()) < _height(counted)  # no empty axis, and no room for one


def _height(svg: str) -> int:
    """Of the drawing, as its viewBox has it."""
    return int(ElementTree.fromstring(svg).attrib["viewBox"].split()[3])


def test_names_are_text_whatever_is_in_them(store: Checkpointer) -> None:
    name = '<script>alert(1)</script> $x$ \u202e & "q"'
    with suppress(OSError):
        bot(store, OSError("503")).run("go", execution_id=name)
    picture = views.picture(name, store=store)
    root = ElementTree.fromstring(picture._repr_html_())
    assert root.find(f"{SVG}title").text.startswith('<script>alert(1)</script> $x$ \\u202e & "q":')
    assert not list(root.iter("script"))
    assert "<script" not in picture._repr_html_()
    shown = [text for text in root.iter(f"{SVG}text") if "alert" in "".join(text.itertext())]
    assert [part.text for part in shown[0].iter(f"{SVG}tspan")] == ["$", "$"]
    assert "\u202e" not in str(picture)


def long_run(store: Checkpointer, turns: int) -> None:
    said = (Message("user", "go"),)
    lease = store.create(Run("long", "bot", "go", 1, "long"), Turn(0, said), at=1, writer=1)
    for turn in range(turns):
        asked = (Message("assistant", "", (Call("look", {}, f"c{turn}"),)),)
        called = ToolCall(turn, "look", f"c{turn}", {}, asked, Usage(1000 + turn, 50, 0, 0.01))
        store.append(lease, called, at=(2 * turn + 1) * SECOND)
        seen = (Message("tool", "x", tool_call_id=f"c{turn}"),)
        store.append(lease, Turn(turn + 1, seen), at=(2 * turn + 2) * SECOND)
    store.append(lease, End(turns + 1, "completed", "done"), at=(2 * turns + 2) * SECOND)
    store.release(lease)


def test_a_run_of_5000_steps_is_a_small_picture_with_nothing_left_out() -> None:
    store = MemoryCheckpointer()
    long_run(store, 2500)
    picture = views.picture("long", store=store)
    assert len(picture._repr_html_()) < 60_000
    assert len(str(picture).splitlines()) < 40
    assert (
        sum(bar.value for bar in picture.bars)
        == views.usage("long", store=store)[["input_tokens", "output_tokens"]].sum().sum()
    )
    assert (picture.bars[0].first, picture.bars[-1].last) == (0, 2500)


def test_nothing_is_drawn_outside_the_picture(store: Checkpointer) -> None:
    a_life(store)
    long_run(store, 300)
    for execution_id in ("life", "long"):
        root = ElementTree.fromstring(views.picture(execution_id, store=store).svg())
        width, height = map(float, root.get("viewBox").split()[2:])
        for rect in root.iter(f"{SVG}rect"):
            x, y, w, h = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
            assert 0 <= x <= x + w <= width + 1.01
            assert 0 <= y <= y + h <= height
        for path in root.iter(f"{SVG}path"):
            for x, _y, w in re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)", path.get("d")):
                assert float(x) + float(w) <= width + 1.01


def test_a_fork_shows_its_own_steps_alone(store: Checkpointer) -> None:
    agent = bot(store, "Done.")
    agent.run("go", execution_id="a")
    agent.fork("a", at="turn:0", execution_id="b")
    assert [each.lane for each in views.picture("b", store=store).spans] == ["model"]


def test_a_paused_run_is_drawn_up_to_its_newest_row(store: Checkpointer) -> None:
    a_run_of_every_status(store)
    assert [each.lane for each in views.picture("waits", store=store).spans] == ["model", "tools"]
    bot(store, "Done.", "Done.").resume("waits", resume_value=Resume(approved=False))
    lanes = [each.lane for each in views.picture("waits", store=store).spans]
    assert lanes == ["model", "tools", "waits", "tools", "model"]
