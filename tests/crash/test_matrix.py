"""Each cell of the kill matrix is what the plan calls for."""

from __future__ import annotations

import pytest

from tests.crash import matrix


@pytest.mark.parametrize(("entry", "when"), matrix.POINTS)
def test_a_kill_repeats_the_step_in_flight_and_nothing_else(
    kind: str, entry: str, when: matrix.When, tmp_path
) -> None:
    again = matrix.AGAIN.get((entry, when), ())
    assert matrix.kill(tmp_path, kind, entry, when) == matrix.Cell(again, ())


def test_a_cell_is_red_where_something_is_lost_or_repeated() -> None:
    assert str(matrix.Cell(("charge",), ())) == "again: charge"
    assert str(matrix.Cell((), ("lost: charge",))) == "WRONG: lost: charge"
    assert str(matrix.Cell((), ())) == "exact"
