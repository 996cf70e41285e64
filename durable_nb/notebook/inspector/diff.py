"""`%durable diff`: two steps compared, to be looked at and to be used by the next cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durable_nb.core.compare import Point, compare, point
from durable_nb.notebook.inspector.page import difference
from durable_nb.notebook.render import html, text

if TYPE_CHECKING:
    import pandas as pd

    from durable_nb.stores.protocol import Checkpointer


class Difference:
    """What changed from one step to another. `changes` are all of it, `df` is a DataFrame of them."""

    def __init__(self, before: Point, after: Point) -> None:
        self.changes = compare(before, after)
        self._card = difference(before, after, self.changes)

    def __repr__(self) -> str:
        return text(self._card)

    def _repr_html_(self) -> str:
        return html(self._card)

    @property
    def df(self) -> pd.DataFrame:
        import pandas as pd

        rows = [(each.key, each.how, each.before, each.after) for each in self.changes]
        return pd.DataFrame(rows, columns=["key", "how", "before", "after"], dtype="str")


def difference_of(
    store: Checkpointer, execution_id: str, a: int | str, b: int | str, *, other: str | None = None
) -> Difference:
    """What changed from step `a` of a run to step `b` of it, or of the run `other`.

    Raises `UnknownExecution`, and `InvalidInput` for what is no step.
    """
    log = store.load(execution_id)
    return Difference(point(log, a), point(log if other is None else store.load(other), b))
