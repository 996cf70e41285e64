"""A run as a picture: what it was at, and what its turns used. Pure SVG with a text twin.

Text has the colour of what is around it, bars have a colour that is seen on light and on dark; what
a colour says is said in words, too. However long a run is, its picture stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate

from durable_nb.core.calls import calls_text, dollars, model_calls, spent
from durable_nb.core.nodes import status_of
from durable_nb.core.text import visible
from durable_nb.model.entries import Log, ToolCall
from durable_nb.model.messages import Usage
from durable_nb.views.spans import LANES, WORK, Bar, Lane, Span, bars, joined, shown_lengths, spans

COLOURS = {"model": "#3b7dd8", "tools": "#2e8b57", "waits": "#c27c0e", "stopped": "#d0453b"}
WIDTH, LEFT, TOP, LANE, CHART = 720, 120, 42, 20, 90
EACH = 150  # spans, or bars, that are drawn one by one, with what they are
COLUMNS, LINES, LONG = 60, 20, 80  # of the text; of an id in a title

_ALONE = "#767676"  # for text where nothing is around it, as in a file
_TEXT = 'font-family="system-ui,sans-serif" font-size="11" fill="currentColor"'


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn. A notebook shows it; `svg()` is a file's text; `str()` is it in words."""

    execution_id: str
    title: str
    spans: Sequence[Span]
    lengths: Sequence[float]
    bars: Sequence[Bar]
    unit: str

    def svg(self, colour: str = _ALONE) -> str:
        head = escape(f"{visible(self.execution_id)[:LONG]}: {self.title}")
        height = TOP + len(LANES) * LANE + (CHART + 44 if any(_values(self)) else 40)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="100%" '
            f'style="max-width:{WIDTH}px;height:auto;color:{colour}" role="img" '
            f'aria-label="{head}"><title>{head}</title><desc>{escape(_words(self))}</desc>'
            f"<g {_TEXT}>{''.join(_timeline(self))}{''.join(_chart(self))}</g></svg>"
        )

    def _repr_html_(self) -> str:
        return self.svg("inherit")

    def _repr_svg_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    __repr__ = __str__


def draw(log: Log, *, cost: bool = False) -> Picture:
    """The picture of a run, with tokens or US dollars a turn."""
    found = spans(log)
    of: Callable[[Usage], float] = _dollars if cost else _tokens
    used = bars(log, of, EACH)
    unit = "US dollars" if cost else "tokens"
    title = _title(log, found)
    return Picture(log.run.execution_id, title, found, shown_lengths(found), used, unit)


def duration(seconds: float) -> str:
    """`340 ms`, `12.5 s`, `7 min`, `3.2 h`, `2.0 days`."""
    for size, name in (86_400, "days"), (3_600, "h"), (60, "min"):
        if seconds >= size:
            return f"{seconds / size:.1f} {name}"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def _title(log: Log, found: Sequence[Span]) -> str:
    tools = sum(isinstance(row.entry, ToolCall) for row in log.own)
    counted = f"{tools} tool call{'' if tools == 1 else 's'}"
    bill = spent(sum((call.usage for call in model_calls(log)), Usage()))
    worked = f"{duration(_total(found, *WORK))} at work"
    facts = (status_of(log), calls_text(model_calls(log)), counted, bill, worked)
    return ", ".join(filter(None, facts))


def _total(found: Sequence[Span], *lanes: Lane) -> float:
    return sum(span.seconds for span in found if span.lane in lanes)


def _tokens(usage: Usage) -> float:
    return usage.total_tokens


def _dollars(usage: Usage) -> float:
    return usage.cost or 0.0


# --- the timeline --------------------------------------------------------------------------------


def _timeline(picture: Picture) -> Iterator[str]:
    yield _label(0, 14, visible(picture.execution_id[:LONG]), weight="bold")
    yield _label(0, 31, picture.title)
    for at, lane in enumerate(LANES):
        y, seconds = TOP + at * LANE, _total(picture.spans, lane)
        yield _label(0, y + 12, f"{lane} {duration(seconds)}" if seconds else lane)
        yield (f'<path d="M{LEFT} {y + 8}H{WIDTH}" stroke="currentColor" stroke-opacity="0.15"/>')
        yield from _drawn(picture, lane, y)


def _said(picture: Picture) -> str:
    return visible(f"{picture.execution_id[:LONG]} · {picture.title}")


def _drawn(picture: Picture, lane: Lane, y: int) -> Iterator[str]:
    """A lane's spans: each with what it is, or, where they are many, what they cover."""
    places = _places(picture, lane, WIDTH - LEFT)
    if len(picture.spans) > EACH:
        d = "".join(f"M{LEFT + x:.1f} {y + 2}h{w:.1f}v12h-{w:.1f}z" for x, w, _ in _merged(places))
        yield f'<path d="{d}" fill="{COLOURS[lane]}"/>' if d else ""
        return
    for x, w, span in places:
        what = escape(visible(f"{span.what}: {duration(span.seconds)}"))
        yield (
            f'<rect x="{LEFT + x:.1f}" y="{y + 2}" width="{w:.1f}" height="12" rx="1" '
            f'fill="{COLOURS[lane]}"><title>{what}</title></rect>'
        )


def _places(picture: Picture, lane: Lane, width: int) -> list[tuple[float, float, Span]]:
    """Where a lane's spans begin, and how wide they are: at least so that they are seen."""
    scale = width / (sum(picture.lengths) or 1.0)
    begins = accumulate(picture.lengths, initial=0.0)
    return [
        (min(begin * scale, width - 1.0), max(1.0, length * scale), span)
        for begin, length, span in zip(begins, picture.lengths, picture.spans, strict=False)
        if span.lane == lane
    ]


def _merged(places: Sequence[tuple[float, float, Span]]) -> list[tuple[float, float, Span]]:
    """What touches, as one."""
    merged: list[tuple[float, float, Span]] = []
    for x, w, span in places:
        if merged and x <= merged[-1][0] + merged[-1][1] + 0.5:
            begin, _, first = merged[-1]
            merged[-1] = (begin, max(merged[-1][1], x + w - begin), first)
        else:
            merged.append((x, w, span))
    return merged


# --- what the turns used -------------------------------------------------------------------------


def _chart(picture: Picture) -> Iterator[str]:
    top = TOP + len(LANES) * LANE + 24
    most = max(_values(picture), default=0.0)
    yield _label(0, top - 6, _measure(picture.bars, picture.unit), weight="bold")
    yield _label(0, top + 10, _amount(picture, most) if most else "not known")
    if not most:
        return
    yield f'<path d="M{LEFT} {top + CHART}H{WIDTH}" stroke="currentColor" stroke-opacity="0.4"/>'
    step = (WIDTH - LEFT) / max(len(picture.bars), 12)
    for at, bar in enumerate(picture.bars):
        yield from _bar(picture, bar, LEFT + at * step, step, bar.value / most)
    end = LEFT + len(picture.bars) * step
    yield _label(LEFT, top + CHART + 14, f"turn {picture.bars[0].first}")
    yield _label(end, top + CHART + 14, f"{picture.bars[-1].last}", end=True)


def _values(picture: Picture) -> list[float]:
    return [bar.value for bar in picture.bars]


def _bar(picture: Picture, bar: Bar, x: float, step: float, share: float) -> Iterator[str]:
    base = TOP + len(LANES) * LANE + 24 + CHART
    height, width = share * (CHART - 6), max(0.5, step * 0.8)
    what = f"<title>{escape(_turns(bar))}: {escape(_amount(picture, bar.value))}</title>"
    yield (
        f'<rect x="{x:.1f}" y="{base - height:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'fill="{COLOURS["model"]}">{what}</rect>'
    )
    if bar.lost:
        yield (
            f'<text x="{x:.1f}" y="{base - height - 1:.1f}" fill="{COLOURS["stopped"]}">↯'
            f"<title>{escape(_turns(bar))}: {bar.lost} asked in vain</title></text>"
        )


def _measure(found: Sequence[Bar], unit: str) -> str:
    size = found[0].last - found[0].first + 1 if found else 1
    return f"{unit} a turn" if size == 1 else f"{unit} in {size} turns"


def _turns(bar: Bar) -> str:
    return f"turn {bar.first}" if bar.first == bar.last else f"turns {bar.first} to {bar.last}"


def _amount(picture: Picture, value: float) -> str:
    return f"{value:,.0f}" if picture.unit == "tokens" else dollars(value)


def _label(x: float, y: float, text: str, *, weight: str = "normal", end: bool = False) -> str:
    """Text; a `$` stands in an element of its own, so that no typesetter takes it for mathematics."""
    anchor = ' text-anchor="end"' if end else ""
    safe = escape(text).replace("$", "<tspan>$</tspan>")
    return f'<text x="{x:.1f}" y="{y:.1f}" font-weight="{weight}"{anchor}>{safe}</text>'


# --- the same in words ---------------------------------------------------------------------------


def _words(picture: Picture) -> str:
    return "\n".join(list(_lines(picture))[1:])


def _lines(picture: Picture) -> Iterator[str]:
    yield _said(picture)
    for lane in LANES:
        if places := _places(picture, lane, COLUMNS):
            yield f"{lane:<8} {_strip(places)}  {duration(sum(s.seconds for *_, s in places))}"
    found = joined(picture.bars, LINES)
    most = max((bar.value for bar in found), default=0.0)
    yield f"{_measure(found, picture.unit)}:{'' if most else ' not known'}"
    for bar in found if most else ():
        lost = f"  ↯ {bar.lost} asked in vain" if bar.lost else ""
        row = "▇" * round(bar.value / most * 30)
        yield f"  {_turns(bar):<18} {row} {_amount(picture, bar.value)}{lost}"


def _strip(places: Sequence[tuple[float, float, Span]]) -> str:
    cells = ["·"] * COLUMNS
    for x, w, _ in places:
        for at in range(int(x), min(COLUMNS, max(int(x) + 1, round(x + w)))):
            cells[at] = "█"
    return "".join(cells)
