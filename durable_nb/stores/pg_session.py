"""The one session on which a process locks its claims and appends to its runs (DESIGN section 7).

Its advisory locks die with it. A session that is lost while its process lives is opened again and
takes its locks again; until then `processes.seen_at` keeps others away.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any, TypeAlias, TypeVar
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from durable_nb.model.errors import StoreError
from durable_nb.stores import refusals
from durable_nb.stores.pg_process import Process

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
Values: TypeAlias = Sequence[object]
T = TypeVar("T")

MIGRATIONS = (
    "postgres_0001_runs.sql",
    "postgres_0002_places.sql",
    "postgres_0003_outbox.sql",
)
RENEW_SECONDS = 5.0
GONE_SECONDS = 15.0  # a process not heard of for so long is taken as dead
BUSY_SECONDS = 60.0

_KEEPALIVE: dict[str, Any] = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}

_REGISTER = """
insert into processes (id, host, boot, namespace, pid, started) values (%s, %s, %s, %s, %s, %s)
on conflict (id) do update set seen_at = clock_timestamp()
"""

_DRIVEN = """
select d.writer, l.writer is not null, p.host, p.boot, p.namespace, p.pid, p.started,
  p.seen_at > clock_timestamp() - make_interval(secs => %s)
from drivers as d join processes as p on p.id = d.process
left join (
  select (classid::bigint << 32) | objid::bigint as writer from pg_locks
  where locktype = 'advisory' and objsubid = 1
    and database = (select oid from pg_database where datname = current_database())
) as l on l.writer = d.writer
"""


class Session:
    """This process's connection for claims and appends. Opens on first use, again when lost."""

    def __init__(self, dsn: str, schema: str) -> None:
        self.dsn, self.schema = dsn, schema
        self._guard = threading.RLock()
        self._db: Connection | None = None
        self._held: set[int] = set()
        self._pid = os.getpid()
        self._process = uuid4().hex
        self._renewing: threading.Event | None = None
        self._closed = False
        _living.add(self)

    @property
    def place(self) -> str:
        """Where the store is, without the password. A socket's directory is on this machine."""
        try:
            known = conninfo_to_dict(self.dsn)
        except psycopg.Error:
            return "an address that cannot be read"
        host = str(known.get("host") or os.environ.get("PGHOST") or "/")
        host = "localhost" if host.startswith(("/", "@")) else host
        return f"{host}/{known.get('dbname') or 'postgres'}"

    def refuse_if_closed(self) -> None:
        if self._closed:
            raise refusals.closed(f"the PostgreSQL store {self.place}")

    # --- statements --------------------------------------------------------------------------

    def do(self, action: Callable[[Connection], T]) -> T:
        """Perform `action`, once more on a new session where this one turns out to be lost.

        The action has to find out for itself whether its first try was committed.
        """
        give_up = time.monotonic() + BUSY_SECONDS
        with self._guard:
            while True:
                try:
                    return action(self._connected())
                except psycopg.Error as error:
                    lost = self._db is not None and self._db.closed
                    if not lost or time.monotonic() > give_up:
                        raise self.ours(error) from error
                    time.sleep(0.05)

    def change(self, statement: str, values: Values) -> int:
        """One guarded statement in a transaction of its own; how many rows it changed."""
        return self.do(lambda db: db.execute(statement, values).rowcount)

    # --- claims ------------------------------------------------------------------------------

    def hold(self, db: Connection, writer: int) -> None:
        """Lock a claim, as part of the transaction that writes it."""
        self._register(db)
        db.execute("select pg_advisory_lock(%s)", [writer])
        db.execute(
            "insert into drivers values (%s, %s) on conflict do nothing", [writer, self._process]
        )
        self._held.add(writer)
        self._keep_renewing()

    def drop(self, writer: int) -> None:
        """Let go of a claim. What cannot be said to the server, its death will say."""
        with self._guard:
            self._held.discard(writer)
            with contextlib.suppress(StoreError):  # nothing is lost: the lock goes with the session
                self.do(lambda db: self._release(db, writer))

    def driven(self, db: Connection) -> set[int]:
        """The claims whose owners live, as far as anybody can know."""
        rows = db.execute(_DRIVEN, [GONE_SECONDS]).fetchall()
        return {
            writer
            for writer, locked, host, boot, namespace, pid, started, recent in rows
            if locked or (recent and not Process(host, boot, namespace, pid, started).is_gone())
        }

    def close(self) -> None:
        with self._guard:
            self._closed = True
            if self._renewing is not None:
                self._renewing.set()
            if self._db is not None and self._pid == os.getpid():
                self._db.close()
            self._db = None

    def forget(self) -> None:
        """In a forked child: the socket goes, the parent's session stays."""
        if self._db is not None:
            os.close(self._db.fileno())
            _inherited.append(self._db)
        self._guard, self._db, self._held = threading.RLock(), None, set()
        self._pid, self._process, self._renewing = os.getpid(), uuid4().hex, None

    def ours(self, error: psycopg.Error) -> StoreError:
        """A driver's error as one of ours."""
        if isinstance(error, psycopg.errors.LockNotAvailable):
            return refusals.busy(self.place, BUSY_SECONDS)
        if isinstance(error, psycopg.errors.InvalidSchemaName | psycopg.errors.UndefinedTable):
            why, then = "was deleted while in use", "what it held is gone; begin a new one"
        else:
            why = f"cannot be used ({str(error).strip() or type(error).__name__})"
            then = "check the address and that the server runs; nothing was written"
        return refusals.unusable(self.place, why, then)

    # --- inside ------------------------------------------------------------------------------

    def _connected(self) -> Connection:
        self.refuse_if_closed()
        if self._db is None or self._db.closed:
            self._db = connect(self.dsn, self.schema)
            for writer in self._held:
                self._db.execute("select pg_try_advisory_lock(%s)", [writer])
        return self._db

    def _register(self, db: Connection) -> None:
        me = Process.this()
        db.execute(_REGISTER, [self._process, me.host, me.boot, me.namespace, me.pid, me.started])

    def _release(self, db: Connection, writer: int) -> None:
        db.execute("delete from drivers where writer = %s", [writer])
        db.execute("select pg_advisory_unlock(%s)", [writer])

    def _keep_renewing(self) -> None:
        if self._renewing is None:
            self._renewing = threading.Event()
            name, args = "durable_nb lock session", (weakref.ref(self), self._renewing)
            threading.Thread(target=_renew, name=name, args=args, daemon=True).start()

    def renew(self) -> None:
        """Say that this process lives, and mend its session if it is lost."""
        with contextlib.suppress(StoreError):  # said again in a moment
            if self._held:
                self.do(self._register)


def connect(dsn: str, schema: str) -> Connection:
    """A connection that works in the store's schema, which it makes or brings up to date."""
    db = psycopg.connect(dsn, autocommit=True, **_KEEPALIVE)
    try:
        prepare(db, schema)
    except BaseException:
        db.close()
        raise
    return db


def prepare(db: Connection, schema: str) -> None:
    """Make a new connection one of the store's."""
    db.execute(sql.SQL("set search_path to {}").format(sql.Identifier(schema)))
    db.execute(f"set lock_timeout = '{BUSY_SECONDS:.0f}s'")
    if _version(db, schema) < len(MIGRATIONS):
        _migrate(db, schema)


def _version(db: Connection, schema: str) -> int:
    """How many migrations the schema has had."""
    if db.execute("select to_regclass('migrations')").fetchone() == (None,):
        return 0
    rows = db.execute("select coalesce(max(version), 0) from migrations").fetchall()
    version = int(rows[0][0])
    if version > len(MIGRATIONS):
        raise refusals.newer(f"the PostgreSQL schema {schema}", version, len(MIGRATIONS))
    return version


def _migrate(db: Connection, schema: str) -> None:
    """Each migration in a transaction of its own; of several processes, one at a time."""
    db.execute("select pg_advisory_lock(hashtextextended(%s, 0))", [f"durable_nb {schema}"])
    try:
        db.execute(sql.SQL("create schema if not exists {}").format(sql.Identifier(schema)))
        db.execute("create table if not exists migrations (version integer primary key)")
        for number in range(_version(db, schema), len(MIGRATIONS)):
            script = files("durable_nb.stores").joinpath("sql", MIGRATIONS[number])
            with db.transaction():
                db.execute(script.read_text(encoding="utf-8").encode())
                db.execute("insert into migrations values (%s)", [number + 1])
    finally:
        db.execute("select pg_advisory_unlock(hashtextextended(%s, 0))", [f"durable_nb {schema}"])


def _renew(session: weakref.ref[Session], stop: threading.Event) -> None:
    while not stop.wait(RENEW_SECONDS):
        if (living := session()) is None:
            return
        living.renew()
        del living


_living: weakref.WeakSet[Session] = weakref.WeakSet()
_inherited: list[object] = []  # a parent's connections: a forked child must not even close them


def _after_fork_in_child() -> None:
    for session in list(_living):
        session.forget()


with contextlib.suppress(AttributeError):  # a platform without fork
    os.register_at_fork(after_in_child=_after_fork_in_child)
