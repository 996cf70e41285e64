"""One SQLite file: its connections, its transactions, and its driver's errors as ours.

Nothing else begins or commits, and nothing but the standard library's `sqlite3` may open the file
in a process that uses this: any other reader drops the locks that SQLite believes it holds, and
commits are lost (DESIGN section 6).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar
from urllib.parse import quote

from durable_nb.model.errors import StoreCorrupt, StoreError
from durable_nb.stores import refusals

DEFAULT = Path(".durable", "runs.sqlite3")  # under the working directory, if nobody says otherwise
BUSY_SECONDS = 60.0  # how long another process may hold the write lock before we give up

Mode: TypeAlias = Literal["rwc", "ro"]
Values: TypeAlias = Sequence[object]
T = TypeVar("T")

_inherited: list[object] = []  # a parent's connections: a forked child must not even close them


class SQLiteFile:
    """A store's file, with a connection a thread. Opens on first use; reading does not create it.

    `prepare` is done once with each new connection. In mode `"ro"` nothing can be written.
    """

    def __init__(
        self, path: Path, prepare: Callable[[sqlite3.Connection], object], *, mode: Mode = "rwc"
    ) -> None:
        self.path = path
        self._prepare = prepare
        self._mode = mode
        self._connections: dict[int, sqlite3.Connection] = {}
        self._pid = os.getpid()
        self._seen: os.stat_result | None = None
        self._log: os.stat_result | None = None  # the write-ahead log, while we are connected
        self._opening = threading.Lock()
        self._closed = False

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction of several statements: all of them are kept, or none."""
        db = self._connection()
        self._patiently(lambda: db.execute("begin immediate"))
        try:
            with self._translated():
                yield db
                db.execute("commit")
                self._refuse_a_lost_log()
        except BaseException:
            if db.in_transaction:
                db.execute("rollback")
            raise

    def change(self, statement: str, values: Values) -> int:
        """One guarded statement in a transaction of its own. Returns how many rows it changed."""
        db = self._connection()
        changed = self._patiently(lambda: db.execute(statement, values).rowcount)
        self._refuse_a_lost_log()
        return changed

    def read(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """All rows of a query. A store that does not exist yet has none."""
        if self._seen is None and not self._closed and self._stat() is None:
            return []
        db = self._connection()
        return self._patiently(lambda: db.execute(statement, values).fetchall())

    def open(self) -> None:
        """Connect, and so make the file what it should be. `read` and `write` do it by themselves."""
        self._connection()

    def truncate(self) -> None:
        """Move what is in the write-ahead log into the file, unless a reader is in the way."""
        db = self._connection()
        db.execute("pragma busy_timeout = 0")
        with contextlib.suppress(sqlite3.OperationalError):  # locked: the next end will do it
            db.execute("pragma wal_checkpoint(truncate)").fetchall()
        db.execute("pragma busy_timeout = 100")

    def close(self) -> None:
        self._closed = True
        if self._pid == os.getpid():
            for db in self._connections.values():
                db.close()
        self._connections = {}

    def _connection(self) -> sqlite3.Connection:
        """This thread's connection to the file that was there from the start."""
        if self._closed:
            raise refusals.closed(f"the store {self.path}")
        if self._pid != os.getpid():
            _inherited.append(self._connections)
            self._connections, self._pid, self._opening = {}, os.getpid(), threading.Lock()
            self._log = None
        self.refuse_a_changed_file()
        me = threading.get_ident()  # a dead thread's number, and so its connection, is used again
        if me not in self._connections:
            self._connections[me] = self._patiently(self._connect)
        return self._connections[me]

    def refuse_a_changed_file(self) -> None:
        """Raise `StoreUnusable` if there was a file and it is gone, or another one is in its place,
        or in that of its write-ahead log."""
        if self._seen is not None:
            now = self._stat()
            if now is None or not os.path.samestat(self._seen, now):
                raise refusals.unusable(
                    self.path,
                    "was deleted or replaced while in use",
                    "what it held is gone; put the file back, or restart and begin a new one",
                )
            self._refuse_a_lost_log()

    def _refuse_a_lost_log(self) -> None:
        """Raise `StoreUnusable` if the write-ahead log is not the one that we write to. Nobody may
        remove it while we are connected, unless our locks are lost: then what we commit is, too."""
        if self._log is not None:
            now = _found(self._log_path)
            if now is None or not os.path.samestat(self._log, now):
                raise refusals.lost_log(self._log_path)

    @property
    def _log_path(self) -> str:
        return f"{self.path}-wal"

    def _stat(self) -> os.stat_result | None:
        """What the path leads to; None where there is nothing."""
        try:
            return _found(self.path)
        except OSError as error:
            raise refusals.unusable(
                self.path,
                f"cannot be reached ({error.strerror})",
                "check the permissions of the directories it is in",
            ) from error

    def _connect(self) -> sqlite3.Connection:
        found = self._stat()
        if found is not None and stat.S_ISDIR(found.st_mode):
            raise refusals.unusable(self.path, "is a directory", "name a file in it")
        mode = "rw" if self._mode == "rwc" and self._seen else self._mode
        if mode == "rwc":
            self._make_folder()
        db = sqlite3.connect(
            f"file:{quote(str(self.path))}?mode={mode}",
            uri=True,
            timeout=0.1,  # short, so that an interrupt is noticed: `_patiently` tries again
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            with self._opening:
                self._prepare(db)
                self._seen = self._seen or os.stat(self.path)
                self._log = self._log or _found(self._log_path)
        except BaseException:
            db.close()
            raise
        return db

    def _make_folder(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise refusals.unusable(
                self.path, f"has no usable directory ({error})", "choose another path"
            ) from error

    def _patiently(self, action: Callable[[], T]) -> T:
        """Do it, waiting for whoever holds the store locked. Raises `StoreBusy` after a minute."""
        give_up = 0.0
        while True:
            try:
                return action()
            except sqlite3.Error as error:
                if _code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise self._ours(error) from error
            give_up = give_up or time.monotonic() + BUSY_SECONDS
            if time.monotonic() > give_up:
                raise refusals.busy(self.path, BUSY_SECONDS)
            time.sleep(0.005)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._ours(error) from error

    def _ours(self, error: sqlite3.Error) -> StoreError:
        if self._closed:
            return refusals.closed(f"the store {self.path}")
        match _code(error):
            case sqlite3.SQLITE_NOTADB:
                why, then = "is not a SQLite file", "choose another path; it was left as it is"
            case sqlite3.SQLITE_READONLY:
                why, then = "is read-only", "make it writable, or copy it to where you may write"
            case sqlite3.SQLITE_CANTOPEN:
                why, then = "cannot be opened", "check that its directory exists and is writable"
            case sqlite3.SQLITE_FULL:
                why, then = "has no room left on its disk", "free some; what was written is safe"
            case sqlite3.SQLITE_CORRUPT:
                return StoreCorrupt(f"the file {self.path} is damaged ({error}); restore a copy")
            case _:
                why, then = f"cannot be used ({error})", "nothing was written"
        return refusals.unusable(self.path, why, then)


def _found(path: str | Path) -> os.stat_result | None:
    """What a path leads to; None where there is nothing."""
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
