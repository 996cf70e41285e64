"""The inside of a PostgreSQL store for a doctor: a session that cannot write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from durable_nb.model.codec import Stored
from durable_nb.stores import refusals
from durable_nb.stores.inside import Begun, Inside
from durable_nb.stores.pg_session import Connection, Session

_PART = 20_000  # rows of one short transaction

_ROWS = f"""
select e.seq, coalesce(r.id, '(no run)'), e.number, e.frame, e.kind, e.turn, e.tool, e.at,
  e.writer, e.checksum, e.body
from entries as e left join runs as r on r.key = e.run where e.seq > %s order by e.seq limit {_PART}
"""

_BEGUN = """
select r.id, c.number, c.function, c.begun
from idempotency_cache as c join runs as r on r.key = c.run where c.kept is null
order by c.begun
"""

_OWNERS = """
select d.writer, p.pid, p.host from drivers as d join processes as p on p.id = d.process
"""


@contextmanager
def inside_postgres(dsn: str, schema: str) -> Iterator[Inside]:
    """The store's inside, while there is a session. Raises `StoreUnusable` for a server that cannot be reached or a schema that is not there."""
    session = Session(dsn, schema)
    try:
        with psycopg.connect(dsn, autocommit=True) as db:
            db.execute("set default_transaction_read_only = on")
            db.execute(sql.SQL("set search_path to {}").format(sql.Identifier(schema)))
            yield _read(db, session, schema)
    except psycopg.Error as error:
        raise session.ours(error) from error


def _read(db: Connection, session: Session, schema: str) -> Inside:
    if db.execute("select to_regclass('migrations')").fetchone() == (None,):
        raise refusals.unusable(
            f"{session.place}, schema {schema},", "does not exist", "the first run makes it"
        )
    driven = session.driven(db)
    ((version,),) = db.execute("select max(version) from migrations").fetchall()
    return Inside(
        version=int(version),
        faults=(),
        rows=_rows(db),
        begun=[Begun(*row) for row in db.execute(_BEGUN)],
        owners={
            writer: f"process {pid} on {host}"
            for writer, pid, host in db.execute(_OWNERS)
            if writer in driven
        },
    )


def _rows(db: Connection) -> Iterator[tuple[str, Stored]]:
    after = 0
    while part := db.execute(_ROWS, [after]).fetchall():
        for seq, execution_id, *columns in part:
            yield execution_id, Stored(*columns)
            after = seq
