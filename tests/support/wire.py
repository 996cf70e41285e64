"""A wire to the PostgreSQL server that breaks where a test says: the server did what it was asked
to, and nobody hears that it did."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.postgres import server

_SOCKET = ".s.PGSQL.5432"


class Wire:
    """The address `dsn` leads to the server, and its n-th connection may be `cut`. A store claims
    and appends on its first connection and reads on the second."""

    def __init__(self) -> None:
        self._target = str(Path(conninfo_to_dict(server())["host"], _SOCKET))
        folder = tempfile.mkdtemp()
        self.dsn = make_conninfo(server(), host=folder)
        self._answers: Counter[int] = Counter()
        self._cut: tuple[int, int] | None = None
        self.is_cut = False
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(Path(folder, _SOCKET)))
        self._listener.listen()
        self._open: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, connection: int, answer: int) -> None:
        """From now on, the connection's answer of that number is read from the server and not
        passed on: the connection is closed instead."""
        self._cut = connection, self._answers[connection] + answer

    def close(self) -> None:
        _close(*self._open)

    def _accept(self) -> None:
        with suppress(OSError):  # the listener was closed
            for connection in count(1):
                client, _ = self._listener.accept()
                upstream = socket.socket(socket.AF_UNIX)
                upstream.connect(self._target)
                self._open += [client, upstream]
                _start(self._ask, client, upstream)
                _start(self._answer, upstream, client, connection)

    def _ask(self, client: socket.socket, upstream: socket.socket) -> None:
        with suppress(OSError):  # the other end was closed
            while data := client.recv(65536):
                upstream.sendall(data)
        _close(client, upstream)

    def _answer(self, upstream: socket.socket, client: socket.socket, connection: int) -> None:
        with suppress(OSError):  # the other end was closed
            while data := upstream.recv(65536):
                self._answers[connection] += 1
                if self._cut == (connection, self._answers[connection]):
                    self.is_cut = True
                    break
                client.sendall(data)
        _close(client, upstream)


@contextmanager
def wire() -> Iterator[Wire]:
    """A wire for the time of a test."""
    opened = Wire()
    try:
        yield opened
    finally:
        opened.close()


def _start(target: Callable[..., None], *args: object) -> None:
    threading.Thread(target=target, args=args, daemon=True).start()


def _close(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):  # it is closed already
            end.shutdown(socket.SHUT_RDWR)
        end.close()
