"""Runs as pandas DataFrames and as SQL: one `.sql` file a view, read by both (DESIGN section 6).

Nothing here opens a store's file: what is read comes through `stores.protocol.Readable`.
"""

from durable_nb.views.frames import messages, pending, runs, steps, usage
from durable_nb.views.query import sql

__all__ = ["messages", "pending", "runs", "sql", "steps", "usage"]
