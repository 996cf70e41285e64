"""Crashes on purpose: real children, killed where you say. The names resolve on first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from durable_nb.lab.crashes import Crash, crash
    from durable_nb.lab.ledger import Ledger
    from durable_nb.lab.matrix import crash_matrix
    from durable_nb.lab.points import How, When
    from durable_nb.lab.races import race
    from durable_nb.lab.table import Matrix

__all__ = ["Crash", "How", "Ledger", "Matrix", "When", "crash", "crash_matrix", "race"]

_HOMES = {
    "Crash": "crashes",
    "How": "points",
    "Ledger": "ledger",
    "Matrix": "table",
    "When": "points",
    "crash": "crashes",
    "crash_matrix": "matrix",
    "race": "races",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
