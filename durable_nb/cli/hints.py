"""What to type in a shell about an error that speaks of Python: added to its words, never instead."""

from __future__ import annotations

import argparse
from contextlib import suppress

from durable_nb.cli import options, text
from durable_nb.cli.pauses import ways_to_decide
from durable_nb.core.near import did_you_mean
from durable_nb.core.nodes import open_pause
from durable_nb.model.errors import DurableError, RunPaused, UnknownExecution


def hint(error: DurableError, chosen: argparse.Namespace) -> str:
    """How the shell goes on after an error about a run; nothing where its own words are enough."""
    execution_id = getattr(chosen, "source", None) or getattr(chosen, "id", None)
    if execution_id is None or not isinstance(error, RunPaused | UnknownExecution):
        return ""
    with suppress(DurableError):  # of the store: the error that there is says more
        if isinstance(error, UnknownExecution):
            return _others(execution_id, chosen)
        return _decision(execution_id, chosen)
    return ""


def _others(execution_id: str, chosen: argparse.Namespace) -> str:
    names = (run.execution_id for run in options.store_of(chosen).runs())
    listed = text.command("runs", *options.place_of(chosen))
    return f"{did_you_mean(execution_id, names)}; here: {listed}"


def _decision(execution_id: str, chosen: argparse.Namespace) -> str:
    waits = open_pause(options.store_of(chosen).load(execution_id))
    return f"; here: {ways_to_decide(waits, chosen)[0]}" if waits else ""
