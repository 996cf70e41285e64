"""An age as people write one: `30d`, `12h`, `2w`."""

from __future__ import annotations

from datetime import timedelta

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def age(text: str) -> timedelta:
    """Raises `ValueError`, saying what an age is."""
    try:
        return timedelta(**{_UNITS[text[-1:]]: float(text[:-1])})
    except (KeyError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{text!r} is not an age; write a number and s, m, h, d or w, such as 30d"
        ) from error
