"""Copies of runs on another machine: a courier drains a store's outbox to a plane over HTTP, and a
run is restored from there. The names resolve on first use, and need the extra durable_nb[plane].

A plane keeps rows and serves them back. It never runs a step and never decides a pause.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from durable_nb.replica import plane
    from durable_nb.replica.courier import Courier, Status, connect
    from durable_nb.replica.restore import restore_from_plane

__all__ = ["Courier", "Status", "connect", "plane", "restore_from_plane"]

_HOMES = {
    "Courier": "courier",
    "Status": "courier",
    "connect": "courier",
    "restore_from_plane": "restore",
}
_EXTRA = ("httpx", "starlette", "uvicorn")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        home = import_module(f"{__name__}.{_HOMES.get(name, name)}")
    except ModuleNotFoundError as error:
        if error.name in _EXTRA:
            raise ImportError("a plane needs the extra durable_nb[plane]; install it") from error
        raise
    value = getattr(home, name, home)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
