"""What to type here about an error that speaks of Python: added to its words, never instead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from durable_nb.core.near import did_you_mean
from durable_nb.core.nodes import open_pause
from durable_nb.model.errors import DurableError, RunPaused, UnknownExecution
from durable_nb.notebook.gates import how_to_decide
from durable_nb.stores.open import default_store

MANY = 500  # of the newest conversations are looked at for a name that was meant


@contextmanager
def hinting(execution_id: str | None) -> Iterator[None]:
    """Errors about that run say how a notebook goes on."""
    try:
        yield
    except (RunPaused, UnknownExecution) as error:
        if execution_id is not None and "%durable" not in str(error):
            error.args = (f"{error}{_hint(error, execution_id)}",)
        raise


def _hint(error: DurableError, execution_id: str) -> str:
    if isinstance(error, UnknownExecution):
        newest = default_store().sessions(limit=MANY)
        names = (name for each in newest for name in (each.newest, each.session))
        return f"{did_you_mean(execution_id, names)}; here: %durable runs"
    waits = open_pause(default_store().load(execution_id))
    if waits is None:  # somebody has just decided
        return ""
    return f"; here: {how_to_decide(waits)}"
