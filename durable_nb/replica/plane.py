"""The reference plane: keeps the rows that couriers bring in a SQLite file, and serves them back.

It is a store that others write to, over HTTP. It never runs a step and never decides a pause.
"""

from __future__ import annotations

import hmac
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from durable_nb.model.errors import (
    DurableError,
    ExecutionExists,
    InvalidInput,
    UnknownExecution,
)
from durable_nb.replica.address import HERE, KEY, ROWS, receipt
from durable_nb.replica.parcel import pack, unpack
from durable_nb.stores.replicated import Replica
from durable_nb.stores.sqlite import SQLiteCheckpointer

PORT = 8800


class Plane:
    """The application: `POST` takes rows in, `GET` gives those of a run. With a key, both ask for
    it."""

    def __init__(self, store: SQLiteCheckpointer, *, key: str | None = None) -> None:
        self._store, self._key = store, key
        routes = [Route(ROWS, self._take, methods=["POST"]), Route(ROWS, self._give)]
        self.app = Starlette(routes=routes)

    async def _take(self, request: Request) -> Response:
        if not self._knows(request):
            return _no(401, "wrong key")
        return await run_in_threadpool(self._taken, await request.body())

    def _taken(self, parcel: bytes) -> Response:
        """The rows are written, all or none, before the answer is given."""
        try:
            rows = unpack(parcel)
            self._store.outbox.take_in(rows)
        except InvalidInput as error:
            return _no(422, str(error))
        except ExecutionExists as error:
            return _no(409, str(error))
        except DurableError as error:
            return _no(503, str(error))
        return Response(receipt(len(rows)), media_type="application/json")

    def _give(self, request: Request) -> Response:
        if not self._knows(request):
            return _no(401, "wrong key")
        try:
            found = _whole(self._store, request.query_params.get("execution_id", ""))
        except UnknownExecution as error:
            return _no(404, str(error), what="unknown")
        except DurableError as error:
            return _no(503, str(error))
        return Response(pack(found), media_type="application/json")

    def _knows(self, request: Request) -> bool:
        given = request.headers.get("authorization", "")
        return self._key is None or hmac.compare_digest(
            given.encode(), f"Bearer {self._key}".encode()
        )


def serve(
    path: str | os.PathLike[str],
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    key: str | None = None,
    ready: Callable[[str], object] = lambda url: None,
) -> None:
    """Be a plane that keeps its rows at `path`, until interrupted. `ready` is told the address.

    Raises `InvalidInput` for other machines' eyes without a key, and for a port that is taken.
    """
    with _listening(path, host, port, key) as (server, listening, url):
        ready(url)
        server.run(sockets=[listening])


@contextmanager
def running(path: str | os.PathLike[str], *, key: str | None = None) -> Iterator[str]:
    """A plane on this machine while the block lasts, in a thread; gives its address."""
    with _listening(path, "127.0.0.1", 0, key) as (server, listening, url):
        thread = threading.Thread(
            target=server.run, args=([listening],), name="durable_nb plane", daemon=True
        )
        thread.start()
        try:
            yield url
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def _listening(
    path: str | os.PathLike[str], host: str, port: int, key: str | None
) -> Iterator[tuple[uvicorn.Server, socket.socket, str]]:
    """A server to run on a socket, with its address; in the end both socket and file are closed."""
    if key is None and host not in HERE:
        raise InvalidInput(f"whoever reaches {host} could read every run; set {KEY} first")
    try:
        listening = socket.create_server((host, port))
    except OSError as error:
        raise InvalidInput(f"no plane at {host}:{port} ({error}); choose another port") from error
    with listening, closing(SQLiteCheckpointer(Path(path))) as store:
        config = uvicorn.Config(Plane(store, key=key).app, log_level="warning", lifespan="off")
        yield uvicorn.Server(config), listening, f"http://{host}:{listening.getsockname()[1]}"


def _whole(store: SQLiteCheckpointer, execution_id: str) -> Sequence[Replica]:
    """The rows of a run and of its session, with the runs that they go on from before them: in an
    order in which they can have been written."""
    rows: dict[str, Sequence[Replica]] = {}

    def add(one: str) -> None:
        if one in rows:
            return
        own = store.outbox.copy(one)
        if own and (parent := own[0].run.parent) is not None:
            add(parent)
        rows[one] = own

    for each in store.session(execution_id):
        add(each)
    return [row for own in rows.values() for row in own]


def _no(status: int, why: str, *, what: str = "error") -> Response:
    return Response(json.dumps({what: why}), status, media_type="application/json")
