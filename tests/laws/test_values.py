"""Any value comes back the same in another process, or is refused when it is written (R9)."""

from __future__ import annotations

import json
import math
import struct
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from durable_nb import Call, Message, NotStorable
from durable_nb.model.codec import decode, encode
from durable_nb.model.entries import Answer, End, Pause, Row, ToolCall, Turn
from durable_nb.model.values import digest, dumps, freeze, loads, thaw

ZONES = st.none() | st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23)))
TEXT = st.text(st.characters(codec=None), max_size=12) | st.sampled_from(
    ["$tuple", "$", "\0", "\ud800", "\\u0000", "🎉", "NaN", "1e400"]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    TEXT,
    st.binary(max_size=8),
    st.decimals(),
    st.uuids(),
    st.dates(),
    st.times(timezones=ZONES),
    st.datetimes(timezones=ZONES),
    st.timedeltas(),
)


def _hashable(scalar: object) -> bool:
    return not (isinstance(scalar, Decimal) and scalar.is_snan())


KEYS = st.recursive(
    SCALARS.filter(_hashable),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=4,
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(TEXT, inner, max_size=4),
        st.dictionaries(KEYS, inner, max_size=3),
        st.sets(KEYS, max_size=3),
        st.frozensets(KEYS, max_size=3),
    ),
    max_leaves=20,
)


def same(a: Any, b: Any) -> bool:
    """Of one type at every depth, floats of the same bits, everything else equal."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack(">d", a) == struct.pack(">d", b)
    if isinstance(a, Decimal):
        return a.as_tuple() == b.as_tuple()
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, set | frozenset):
        return len(a) == len(b) and all(any(same(x, y) for y in b) for x in a)
    return bool(a == b) and repr(a) == repr(b)


def elsewhere(value: object) -> Any:
    """The value as another process reads it."""
    return thaw(loads(dumps(freeze(value)).encode()))


@settings(max_examples=120)
@given(VALUES)
@example({1: {(2,): {frozenset([3.5]): {"$a": [b"", -0.0]}}}})
@example(datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=UTC))
@example([math.nan, -math.nan, 5e-324, 1.7976931348623157e308, 0.1 + 0.2])
@example([Decimal("-0E+5"), Decimal("NaN123"), Decimal("-Infinity")])
def test_a_value_comes_back_the_same(value: object) -> None:
    assert same(elsewhere(value), value)


@settings(max_examples=120)
@given(st.floats(width=64))
def test_a_float_keeps_its_bits(value: float) -> None:
    assert same(elsewhere(value), value)


@settings(max_examples=120)
@given(VALUES)
def test_what_is_stored_is_text_that_every_database_takes(value: object) -> None:
    text = dumps(freeze(value))
    text.encode()  # no lone surrogate
    assert "\0" not in text

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    def no_nul(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert not any("\0" in key for key, _ in pairs)
        return dict(pairs)

    strict = json.loads(text, parse_constant=refuse, object_pairs_hook=no_nul)
    assert "\\u0000" not in json.dumps(strict).replace("\\\\u0000", "")


UNSTORABLE = st.builds(object) | st.just(1j) | st.builds(bytearray) | st.just(len)


@settings(max_examples=120)
@given(VALUES, UNSTORABLE, st.data())
def test_one_thing_that_cannot_be_stored_refuses_the_whole(value, thing, data) -> None:
    wraps = st.sampled_from(
        [lambda v: [value, v], lambda v: {"k": v}, lambda v: (v,), lambda v: {1: v}]
    )
    for wrap in data.draw(st.lists(wraps, max_size=5)):
        thing = wrap(thing)
    with pytest.raises(NotStorable, match="has no exact stored form"):
        freeze(thing)


@settings(max_examples=120)
@given(VALUES)
def test_a_frozen_value_is_its_own_and_its_digest_is_stable(value: object) -> None:
    assert digest(value) == digest(elsewhere(value))
    assert dumps(freeze(elsewhere(value))) == dumps(freeze(value))


@settings(max_examples=60)
@given(st.dictionaries(KEYS, VALUES, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_count_in_a_digest(value, random) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert digest(dict(items)) == digest(value)


ARGUMENTS = st.dictionaries(TEXT, VALUES, max_size=3)
MESSAGES = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    TEXT,
    st.lists(st.builds(Call, TEXT, ARGUMENTS | TEXT, TEXT), max_size=2).map(tuple),
    st.none() | TEXT,
    ARGUMENTS,
)
TOOLS = st.from_regex(r"[a-zA-Z0-9_-]{1,9}", fullmatch=True)  # what `Tool` lets through
SAID = st.lists(MESSAGES, max_size=3).map(tuple)
TURNS = st.integers(0, 99)
ENTRIES = st.one_of(
    st.builds(Turn, TURNS, SAID),
    st.builds(ToolCall, TURNS, TOOLS, TEXT, ARGUMENTS, SAID),
    st.builds(Pause, TURNS, TOOLS, TEXT, VALUES, st.just("d"), TURNS),
    st.builds(
        Answer, TURNS, TOOLS, TURNS, st.booleans(), TEXT, st.none() | TEXT, ARGUMENTS,
        st.none() | ARGUMENTS,
    ),
    st.builds(End, TURNS, st.just("completed"), TEXT, st.none(), SAID),
)  # fmt: skip


@settings(max_examples=120)
@given(ENTRIES, TURNS, st.integers(-(2**40), 2**60))
def test_an_entry_comes_back_the_same(entry, number: int, at: int) -> None:
    row = decode(encode(Row(number, at, 7, entry)), "r1")
    assert (row.number, row.at, row.writer) == (number, at, 7)
    fields = type(entry).__slots__
    assert type(row.entry) is type(entry)
    for name in fields:
        back, value = getattr(row.entry, name), getattr(entry, name)
        if name != "messages":
            assert same(back, value), name
            continue
        assert len(back) == len(value)
        assert all(same_message(*pair) for pair in zip(back, value, strict=True))


def same_message(a: Message, b: Message) -> bool:
    return (
        (a.role, a.content, a.tool_call_id) == (b.role, b.content, b.tool_call_id)
        and same(a.extra, b.extra)
        and len(a.tool_calls) == len(b.tool_calls)
        and all(
            (x.tool, x.id) == (y.tool, y.id) and same(x.arguments, y.arguments)
            for x, y in zip(a.tool_calls, b.tool_calls, strict=True)
        )
    )
