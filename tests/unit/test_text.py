"""What others wrote reaches a screen as text, whoever shows it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from durable_nb.core.text import aligned, literal, visible

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("two\n\tlines", "two\n\tlines"),
        ("\x1b[2J\x9b\x7f\r", "\\x1b[2J\\x9b\\x7f\\r"),
        ("pay\u202e0001\u200b\u2028", "pay\\u202e0001\\u200b\\u2028"),
        ("\ufeffa\ud800", "\\ufeffa\\ud800"),
        (FAMILY, FAMILY),
        ("ünïcode \\x1b", "ünïcode \\x1b"),
    ],
)
def test_what_a_screen_would_act_on_is_spelled_out(said: str, shown: str) -> None:
    assert visible(said) == shown
    assert visible(shown) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("", '""'),
        ("a\nb\x1b", '"a\\nb\\u001b"'),
        ({"a": [1, None, "ü"]}, '{"a": [1, null, "ü"]}'),
        (None, "None"),
        ((1, "a"), "(1, 'a')"),
        ([Decimal("1.50")], "[Decimal('1.50')]"),
        ({"a": "x" * 80}, '{\n  "a": "' + "x" * 80 + '"\n}'),
    ],
)
def test_a_value_is_shown_as_it_would_be_typed(value: object, shown: str) -> None:
    assert literal(value) == shown


def test_columns_stand_under_each_other() -> None:
    assert aligned([("a", "bb", "c"), ("aaa", "b", "")]) == ["a    bb  c", "aaa  b"]
    assert aligned([]) == []
