"""Rows as they travel, as JSON: what a courier posts and what a plane gives back.

Whoever unpacks trusts nothing: types, sizes and the checksum of each entry are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from durable_nb.model.codec import Stored, is_intact
from durable_nb.model.entries import Run
from durable_nb.model.errors import InvalidInput
from durable_nb.stores.replicated import Copied, Remembered, Replica

_LARGEST = 2**63  # no column holds more

Index: TypeAlias = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class Parcel:
    """`rows` say by its place in `runs` which run they are of, and with which definition."""

    runs: tuple[Run, ...]
    rows: tuple[tuple[Index, Copied, str], ...]


_PARCELS = TypeAdapter(Parcel)


def pack(rows: Sequence[Replica]) -> bytes:
    places: dict[str, int] = {}
    for each in rows:
        places.setdefault(each.run.execution_id, len(places))
    runs = {each.run.execution_id: each.run for each in rows}
    packed = tuple((places[run.execution_id], row, text) for run, row, text in rows)
    return _PARCELS.dump_json(Parcel(tuple(runs.values()), packed))


def unpack(parcel: bytes) -> Sequence[Replica]:
    """The rows that were packed. Raises `InvalidInput` for anything else."""
    try:
        opened = _PARCELS.validate_json(parcel, strict=True)
        rows = [Replica(opened.runs[run], row, text) for run, row, text in opened.rows]
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InvalidInput(f"this is no parcel of rows: {place}: {first['msg']}") from None
    except IndexError:
        raise InvalidInput("this is no parcel of rows: a row of a run that is not in it") from None
    for run, row, _ in rows:
        _check(run, row)
    return rows


def _check(run: Run, row: Copied) -> None:
    """Raise `InvalidInput` for what no store can have written."""
    numbers = (run.created_at, run.base, *(value for value in row if isinstance(value, int)))
    if not all(-_LARGEST <= number < _LARGEST for number in numbers):
        raise InvalidInput(f"row {row.number} of run {run.execution_id!r} has too large a number")
    if isinstance(row, Stored) and not is_intact(row):
        raise InvalidInput(
            f"entry {row.number} of run {run.execution_id!r} is not what was written: its "
            "checksum differs"
        )
    if isinstance(row, Remembered) and (row.kept is None) != (row.value is None):
        raise InvalidInput(f"the call {row.key!r} of run {run.execution_id!r} is half kept")
