"""Which name was meant by one that is none of those there are: for errors."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

_LONG = 200  # characters and names beyond which nobody is helped by waiting
_MANY = 1000


def did_you_mean(wanted: str, names: Iterable[str]) -> str:
    """`; did you mean X?`, or nothing where no name is like it."""
    from difflib import get_close_matches

    known = [name for name in islice(names, _MANY) if len(name) <= _LONG]
    near = get_close_matches(wanted, known, n=1, cutoff=0.5) if len(wanted) <= _LONG else []
    return f"; did you mean {near[0]}?" if near else ""
