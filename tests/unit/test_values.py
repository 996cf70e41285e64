"""Values as JSON: the tagged forms one by one, and what is refused. The laws try everything else."""

from __future__ import annotations

import math
import struct
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from durable_nb import NotStorable
from durable_nb.model.values import DEPTH, digest, dumps, freeze, loads, thaw

EAST = timezone(timedelta(hours=5, minutes=30))
FORMS = [
    (None, "null"),
    (True, "true"),
    (0, "0"),
    (2**63 - 1, "9223372036854775807"),
    (2**63, '{"$int":"8000000000000000"}'),
    (-(2**63), "-9223372036854775808"),
    (-(2**63) - 1, '{"$int":"-8000000000000001"}'),
    (1.5, "1.5"),
    (-0.0, "-0.0"),
    (math.inf, '{"$float":"7ff0000000000000"}'),
    ("plain", '"plain"'),
    ("naïve 名前 🎉", '"naïve 名前 🎉"'),
    ("\\u0000", '"\\\\u0000"'),
    ("a\0b", '{"$text":"YQBi"}'),
    ("\ud800", '{"$text":"7aCA"}'),
    ([1, [2]], "[1,[2]]"),
    ({"a": 1, "b": {"c": []}}, '{"a":1,"b":{"c":[]}}'),
    ({"$a": 1}, '{"$dict":[["$a",1]]}'),
    ({1: "x", (2,): None}, '{"$dict":[[1,"x"],[{"$tuple":[2]},null]]}'),
    ({"\0": 1}, '{"$dict":[[{"$text":"AA=="},1]]}'),
    ((1, "x"), '{"$tuple":[1,"x"]}'),
    ({3, 1, 2}, '{"$set":[1,2,3]}'),
    (frozenset("ba"), '{"$frozenset":["a","b"]}'),
    (b"\x00\xff", '{"$bytes":"AP8="}'),
    (Decimal("1.10"), '{"$decimal":"1.10"}'),
    (UUID(int=1), '{"$uuid":"00000000-0000-0000-0000-000000000001"}'),
    (date(2026, 1, 2), '{"$date":"2026-01-02"}'),
    (time(1, 2, 3, fold=1), '{"$time":["01:02:03",1]}'),
    (datetime(2026, 1, 2, 3, tzinfo=EAST), '{"$datetime":["2026-01-02T03:00:00+05:30",0]}'),
    (timedelta(days=-1, microseconds=7), '{"$timedelta":[-1,0,7]}'),
]


@pytest.mark.parametrize(("value", "text"), FORMS, ids=[text for _, text in FORMS])
def test_a_value_has_one_stored_form_and_comes_back_from_it(value: object, text: str) -> None:
    assert dumps(freeze(value)) == text
    back = thaw(loads(text))
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize("bits", ["7ff8000000000000", "7ff8000000000001", "fff8000000000000"])
def test_a_nan_keeps_its_bits(bits: str) -> None:
    (nan,) = struct.unpack(">d", bytes.fromhex(bits))
    assert struct.pack(">d", thaw(loads(dumps(freeze(nan))))).hex() == bits


def test_what_comes_back_shares_nothing_with_what_went_in() -> None:
    value = {"inner": [1]}
    frozen = freeze(value)
    value["inner"].append(2)
    assert thaw(frozen) == {"inner": [1]}
    thaw(frozen)["inner"].append(3)
    assert thaw(frozen) == {"inner": [1]}


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Text(str):
    __slots__ = ()


@dataclass(frozen=True)
class Order:
    number: str


Point = namedtuple("Point", "x y")
MADRID = ZoneInfo("Europe/Madrid")


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (object(), "value is of type object"),
        (Colour.RED, "value is of type "),
        (Level.LOW, "Level"),
        (Text("x"), "Text"),
        (Order("1"), "Order"),
        (Point(1, 2), "Point"),
        (OrderedDict(a=1), "collections.OrderedDict"),
        (bytearray(b"x"), "bytearray"),
        (1j, "complex"),
        (range(3), "range"),
        (len, "builtin_function_or_method"),
        ({"a": [1, {"b": object()}]}, r"value\['a'\]\[1\]\['b'\] is of type object"),
        ((1, Order("1")), r"value\[1\]"),
        ({Order("1")}, "value member"),
        ({Order("1"): 1}, "value key"),
        ({Text("k"): 1}, "value key 'k'"),
        (datetime(2026, 1, 2, tzinfo=MADRID), "time zone with rules"),
        (time(1, tzinfo=MADRID), "time zone with rules"),
    ],
)
def test_what_has_no_exact_form_is_refused_by_its_place(value: object, path: str) -> None:
    with pytest.raises(NotStorable, match=path):
        freeze(value)


WRAPPERS = {
    "list": lambda inner: [inner],
    "dict": lambda inner: {"k": inner},
    "tuple": lambda inner: (inner,),
    "dict by number": lambda inner: {1: inner},
    "frozenset": lambda inner: frozenset([inner]),
}


def nested(wrap: Callable[[object], object], depth: int) -> object:
    value: object = None
    for _ in range(depth):
        value = wrap(value)
    return value


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_whatever_is_written_can_be_read_however_deep_it_is(wrap) -> None:
    written = 0
    for depth in range(DEPTH + 4):
        try:
            frozen = freeze(nested(wrap, depth))
        except NotStorable:
            continue
        written += 1
        stored = dumps([[[[[[[[frozen]]]]]]]])  # an entry puts a few levels around its values
        assert thaw(loads(stored)[0][0][0][0][0][0][0][0]) == nested(wrap, depth)
    assert 30 < written < DEPTH + 4


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(NotStorable, match=f"more than {DEPTH} levels of JSON"):
        freeze(loop)


def test_equal_values_have_one_digest_and_others_another() -> None:
    assert digest({"a": 1, "b": [{"c": 2, "d": 3}]}) == digest({"b": [{"d": 3, "c": 2}], "a": 1})
    assert digest({1: "x", 2: "y"}) == digest({2: "y", 1: "x"})
    assert digest({1, 2}) == digest({2, 1})
    different = [1, 1.0, True, "1", None, [1], (1,), {1}, frozenset({1}), {"1": 1}, {1: 1}, b"1"]
    assert len({digest(value) for value in different}) == len(different)
    assert digest([1, 2]) != digest([2, 1])
