"""Time, ids, chance and the user's name, for all that an agent does. What people do to runs from
outside asks for them in `stores/upkeep.py`."""

from __future__ import annotations

import getpass
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from durable_nb.stores.upkeep import now


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user id without a name, as in some containers
        return "unknown"


def _id() -> str:
    return f"run-{secrets.token_hex(6)}"


def _writer() -> int:
    return secrets.randbits(62)


@dataclass(frozen=True, slots=True)
class Ports:
    """The world as an agent sees it. Tests pass their own.

    `clock` gives microseconds since 1970 (UTC) for people to read; nothing is ordered by it.
    """

    clock: Callable[[], int] = now
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    new_id: Callable[[], str] = _id
    new_writer: Callable[[], int] = _writer
    user: Callable[[], str] = _user

    def __repr__(self) -> str:
        return "SYSTEM" if self is SYSTEM else "Ports(...)"


SYSTEM = Ports()
