"""`durable-nb plane`: a plane on this machine, for stores here and elsewhere."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from durable_nb.cli import screen
from durable_nb.model.errors import InvalidInput

if TYPE_CHECKING:
    from durable_nb.cli.options import Commands

_KEY = "DURABLE_NB_PLANE_KEY"


def add_plane(commands: Commands) -> None:
    text = "keep copies of runs that stores elsewhere send, and serve them back"
    plane = commands.add_parser(
        "plane",
        help=text,
        description=f"{text.capitalize()}. Whoever asks needs the key in ${_KEY}, if it is set.",
    )
    plane.add_argument(
        "--path", type=Path, default=Path(".durable", "plane.sqlite3"), help="the plane's own file"
    )
    plane.add_argument("--host", default="127.0.0.1", help="another one than this needs a key")
    plane.add_argument("--port", type=int, default=8800, help="0 takes one that is free")
    plane.set_defaults(run=_plane)


def _plane(chosen: argparse.Namespace) -> int:
    try:
        from durable_nb.replica import plane
    except ImportError as error:
        raise InvalidInput(str(error)) from error

    def ready(url: str) -> None:
        screen.show(url)
        screen.say(f"a plane that keeps its rows in {chosen.path}; Ctrl-C ends it")

    key = os.environ.get(_KEY, "").strip() or None
    plane.serve(chosen.path, host=chosen.host, port=chosen.port, key=key, ready=ready)
    return 0
