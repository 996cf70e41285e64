"""A DataFrame that an `@idempotent` function returns comes back equal, or is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from durable_nb import Checkpointer, NotStorable, Resume, call, idempotent, interrupt, tool
from durable_nb.model.values import dumps, freeze, loads, thaw
from durable_nb.views import parquet
from tests.support.agents import bot, told

PLAIN = pd.DataFrame({"order": ["a", "b", None], "amount": [1, 2, 3], "share": [0.1, -0.0, np.nan]})
FRAMES = {
    "plain": PLAIN,
    "int columns": pd.DataFrame([[1, 2], [3, 4]]),
    "named index": PLAIN.set_index("order"),
    "unsorted index": PLAIN.iloc[[2, 0, 1]],
    "two levels": PLAIN.set_index(["order", "amount"]),
    "columns in two levels": pd.DataFrame(
        [[1, 2]], columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)], names=["x", "y"])
    ),
    "tuples as labels": pd.DataFrame({("a", 1): [1]}),
    "nullable": pd.DataFrame(
        {"n": pd.array([1, None], "Int64"), "b": pd.array([True, None], "boolean")}
    ),
    "small": pd.DataFrame({"i": np.array([1, 2], "int8"), "f": np.array([1, 2], "float32")}),
    "times": pd.DataFrame({"at": pd.to_datetime([datetime(2026, 1, 2, tzinfo=UTC)]).as_unit("us")}),
    "no rows": PLAIN.iloc[:0],
    "columns with a name": PLAIN.rename_axis(columns="field"),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_comes_back_equal(name):
    frame = FRAMES[name]
    back = thaw(loads(dumps(freeze(frame))))
    pd.testing.assert_frame_equal(frame, back, check_exact=True)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"x": [object()]}),
        pd.DataFrame({"x": [{1, 2}]}),
        pd.DataFrame({"x": [1, "a", None]}, dtype=object),
        pd.DataFrame({"x": pd.Categorical(["a", "b"], ["b", "a"], ordered=True)}),
        pd.DataFrame(),
    ],
    ids=["objects", "sets", "mixed", "ordered categories", "nothing"],
)
def test_a_frame_that_would_change_is_refused(frame):
    with pytest.raises(NotStorable, match=r"value is a DataFrame|value\['x'\]"):
        freeze(frame)


def test_a_frame_over_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(parquet, "MAX_BYTES", 100)
    with pytest.raises(NotStorable, match="the limit is 100"):
        freeze(PLAIN)


def test_an_effect_that_returns_a_frame_is_remembered(store: Checkpointer, effects):
    @idempotent
    def fetch(order: str) -> pd.DataFrame:
        effects.add(order)
        return PLAIN

    @tool(name="look")
    def look(order: str) -> str:
        first = fetch(order)
        interrupt("why")
        pd.testing.assert_frame_equal(first, PLAIN)
        return str(first.amount.sum())

    script = [call("look", order="1"), "done"]
    bot(store, script, look).run("go", execution_id="r1")
    result = bot(store, script, look).resume("r1", resume_value=Resume(True))
    assert told(result) == ["6"]
    assert effects.lines == ["1"]
