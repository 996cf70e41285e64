"""What a crash matrix is: a DataFrame, a row a kill, that shows itself as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from durable_nb.lab.picture import Square, html, text
from durable_nb.lab.points import Point, Written
from durable_nb.lab.verdicts import VERDICTS, Finding, World


@dataclass(frozen=True, slots=True)
class Line:
    """One kill. Without a `finding` it was not tried."""

    row: Written
    point: Point
    finding: Finding | None = None
    world: World = field(default_factory=World)
    wrap: str = ""


class Matrix(pd.DataFrame):
    """What came of each kill. What pandas makes of it is a plain DataFrame.

    `number`, `node` and `step` are the entry's, `when` is the moment; `verdict`, `what` and `wrap`
    are the findings; `effects`, `model_calls`, `output` and `tree` are what the killed and resumed
    run left behind.
    """

    _metadata = ["agent", "notes"]  # noqa: RUF012  # so that pandas keeps them
    agent: str
    notes: tuple[str, ...]

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def assert_exact(self) -> Matrix:
        """Raise `AssertionError`, with the picture as text, unless every verdict is `exact`."""
        __tracebackhide__ = True  # so that pytest shows the line of the test
        if not (self["verdict"] == "exact").all():
            raise AssertionError(f"not every kill leaves the same world behind\n{self}")
        return self

    def __repr__(self) -> str:
        return text(self._title(), self._squares(), self.notes)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return html(self._title(), self._squares(), self.notes)

    def _title(self) -> str:
        counts = self["verdict"].value_counts()
        said = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts.get(verdict)]
        return f"crash matrix of {self.agent}: {len(self)} kills, {', '.join(said) or 'not tried'}"

    def _squares(self) -> list[Square]:
        return [
            Square(*row)
            for row in self[list(Square._fields)].astype(object).fillna("").itertuples(index=False)
        ]


def matrix(agent: str, lines: Sequence[Line], notes: Sequence[str]) -> Matrix:
    """The lines as a frame."""
    frame = Matrix([_cells(line) for line in lines])
    frame["verdict"] = pd.Categorical(frame["verdict"], categories=VERDICTS)
    frame["model_calls"] = frame["model_calls"].astype("Int64")
    frame.agent, frame.notes = agent, tuple(note for note in notes if note)
    return frame


def _cells(line: Line) -> dict[str, object]:
    tried = line.finding is not None
    return {
        "number": line.row.number,
        "node": line.row.node,
        "step": line.row.step_type,
        "when": line.point.when,
        "verdict": line.finding.verdict if line.finding else None,
        "effects": list(line.world.effects) if tried else None,
        "model_calls": line.world.model_calls if tried else None,
        "output": line.world.output,
        "tree": line.world.tree[:12] or None,
        "what": line.finding.words if line.finding else None,
        "wrap": line.wrap if tried else None,
    }
