"""Runs as pandas DataFrames and as SQL: one `.sql` file a view, read by both (DESIGN section 6).

Nothing here opens a store's file: what is read comes through `stores.protocol.Readable`.
"""

from durable_nb.views.exports import export
from durable_nb.views.frames import (
    decisions,
    diff,
    idempotency,
    messages,
    pending,
    picture,
    runs,
    sessions,
    steps,
    tool_calls,
    usage,
)
from durable_nb.views.saved import queries, query
from durable_nb.views.statements import sql

__all__ = [
    "decisions",
    "diff",
    "export",
    "idempotency",
    "messages",
    "pending",
    "picture",
    "queries",
    "query",
    "runs",
    "sessions",
    "sql",
    "steps",
    "tool_calls",
    "usage",
]
