from __future__ import annotations

import pytest

from tests.bench import costs


@pytest.mark.bench
def test_the_costs_are_measured_and_printed_with_the_machine_named() -> None:
    lines = costs.table(costs.measured(rounds=1)).splitlines()
    assert costs.machine() in lines[0]
    assert [line.split("|")[1].strip() for line in lines[2:]] == list(costs.WORK)
    assert all(float(line.split("|")[2]) >= 0 for line in lines[2:])
