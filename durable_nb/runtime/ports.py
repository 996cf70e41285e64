"""Time, ids, chance and the user's name: the only place below the surface that asks for them."""

from __future__ import annotations

import getpass
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass


def _micros() -> int:
    return time.time_ns() // 1000


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user id without a name, as in some containers
        return "unknown"


@dataclass(frozen=True, slots=True)
class Ports:
    """The world as an agent sees it. Tests pass their own.

    `clock` gives microseconds since 1970 (UTC) for people to read; nothing is ordered by it.
    """

    clock: Callable[[], int] = _micros
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    new_id: Callable[[], str] = lambda: f"run-{secrets.token_hex(6)}"
    new_writer: Callable[[], int] = lambda: secrets.randbits(62)
    user: Callable[[], str] = _user


SYSTEM = Ports()
