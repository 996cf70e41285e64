"""Subcommands for a store and what is in it: cancel, prune, export, doctor."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from durable_nb.cli import options, screen, shapes, text
from durable_nb.core.retain import ENDED
from durable_nb.model.errors import StoreCorrupt
from durable_nb.model.values import freeze

if TYPE_CHECKING:
    from durable_nb.stores.doctor import Health


def add_cancel(commands: options.Commands) -> None:
    does = "end a run as cancelled; a live owner stops at its next entry"
    cancel = options.add(commands, "cancel", _cancel, does=does, prints=shapes.CANCEL)
    cancel.add_argument("id", metavar="ID", help="the run's execution_id")
    cancel.add_argument("--by", metavar="NAME", help="who cancels")


def add_prune(commands: options.Commands) -> None:
    does = "forget runs that ended long ago, never one that waits, died or is still needed"
    prune = options.add(commands, "prune", _prune, does=does, prints=shapes.PRUNE)
    prune.add_argument(
        "--older-than", type=options.age, required=True, metavar="AGE", help="such as 30d or 12h"
    )
    prune.add_argument(
        "--tag", action="append", default=[], metavar="TAG", help="only runs that have it"
    )
    prune.add_argument("--status", choices=ENDED, help="only runs that ended so")
    prune.add_argument("--dry-run", action="store_true", help="only say which would go")


def add_export(commands: options.Commands) -> None:
    does = "copy a SQLite store as it is at one moment, while runs go on in it"
    export = options.add(commands, "export", _export, does=does, prints=shapes.EXPORT)
    export.add_argument("path", metavar="PATH", type=Path, help="the copy; never overwritten")


def add_doctor(commands: options.Commands) -> None:
    does = "check every row of a store, and say who drives what and what is in doubt"
    options.add(commands, "doctor", _doctor, does=does, prints=shapes.DOCTOR)


def _cancel(chosen: argparse.Namespace) -> int:
    options.store_of(chosen).cancel(chosen.id, by=chosen.by)
    if chosen.json:
        screen.show_json({"execution_id": freeze(chosen.id), "status": "cancelled"})
    else:
        screen.say(f"run {chosen.id} is cancelled")
    return 0


def _prune(chosen: argparse.Namespace) -> int:
    gone = options.store_of(chosen).prune(
        chosen.older_than, tags=chosen.tag, status=chosen.status, dry_run=chosen.dry_run
    )
    if chosen.json:
        screen.show_json({"removed": [freeze(id_) for id_ in gone], "dry_run": chosen.dry_run})
    else:
        for execution_id in gone:
            screen.show(text.line(execution_id, 10_000))
        runs = f"{len(gone)} run{'' if len(gone) == 1 else 's'}"
        screen.say(f"{runs} would go" if chosen.dry_run else f"{runs} forgotten")
    return 0


def _export(chosen: argparse.Namespace) -> int:
    from durable_nb.stores.export import export

    size = export(options.store_of(chosen), chosen.path.expanduser().absolute())
    if chosen.json:
        screen.show_json({"path": freeze(os.fspath(chosen.path)), "bytes": size})
    else:
        screen.say(f"{chosen.path}: {size:,} bytes")
    return 0


def _doctor(chosen: argparse.Namespace) -> int:
    """Print what was found. Raises `StoreCorrupt` after that if anything is damaged."""
    from durable_nb.stores.doctor import examine

    health = examine(options.store_of(chosen))
    if chosen.json:
        screen.show_json(shapes.record(health))
    else:
        screen.show(_health_text(health))
    if health.faults:
        raise StoreCorrupt(f"{health.store} is damaged, see the report; {_MEND}")
    return 0


_MEND = "restore a copy from before; what can still be shown of its runs is as it was written"


def _health_text(health: Health) -> str:
    known = {
        "store": health.store,
        "version": health.version,
        "runs": health.runs,
        "entries": health.entries,
    }
    if health.wal_bytes is not None:
        known["write-ahead log"] = f"{health.wal_bytes:,} bytes"
    said = [text.facts(known)]
    said += [f"fault     {text.line(fault, 500)}" for fault in health.faults]
    said += [
        f"driven    run {each.execution_id}, at entry {each.number}, by {each.owner}"
        for each in health.driven
    ]
    said += [
        f"in doubt  run {each.execution_id}, entry {each.number}: {each.call} began "
        f"{text.local(each.begun_at)} and left no result"
        for each in health.in_doubt
    ]
    if not health.faults:
        said.append(_well(health))
    return "\n".join(said)


def _well(health: Health) -> str:
    """The last line of a report without faults."""
    locked = "" if health.driven else ", nothing is locked"
    doubt = "" if health.in_doubt else ", nothing is in doubt"
    return f"all is well: every entry is what was written{locked}{doubt}"
