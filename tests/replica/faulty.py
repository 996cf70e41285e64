"""Real planes behind a front that fails on purpose, in a process of its own.

The address of a plane is `/PLAN/NAME`. The plan says what becomes of each `POST`, one after the
other, and its last word of all that follow: `ok`; a status, such as `500`; `later` (429, asking to
wait 0 s); `cut` (the connection breaks); `lost` (the rows are written, and the answer is not
heard); `portal` (a 200 that is not a plane's, to a `GET` too); `never` (no answer); `picky` (422
for a parcel with entry 2). Each request is a line in `NAME.log`; a plane's own file is
`NAME.sqlite3`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import uvicorn

from durable_nb.replica.plane import Plane
from durable_nb.stores.sqlite import SQLiteCheckpointer
from tests.support.ledger import Ledger

KEY = "sesame-opens-the-plane"


class Front:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._asked: defaultdict[str, int] = defaultdict(int)
        self._planes: dict[str, Plane] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        _, plan, name, rest = scope["path"].split("/", 3)
        body = await _body(receive)
        gives = scope["method"] == "GET" and plan != "portal"
        fate = "ok" if gives else self._fate(plan, name)
        rows = _rows(body) if body else []
        Ledger(self._folder / f"{name}.log").add(f"{scope['method']} {fate} {' '.join(rows)}")
        if fate == "picky":
            fate = "422" if any(row.endswith("/2") for row in rows) else "ok"
        await self._meet(fate, name, {**scope, "path": f"/{rest}"}, body, send)

    def _fate(self, plan: str, name: str) -> str:
        fates = plan.split("-")
        at = min(self._asked[name], len(fates) - 1)
        self._asked[name] += 1
        return fates[at]

    async def _meet(self, fate: str, name: str, scope: Any, body: bytes, send: Any) -> None:
        if fate == "ok":
            await self._plane(name)(scope, _given(body), send)
        elif fate == "lost":
            await self._plane(name)(scope, _given(body), _unheard)
            await _answer(send, 200, length=99)
        elif fate == "cut":
            await _answer(send, 200, length=99)
        elif fate == "never":
            await asyncio.Event().wait()
        elif fate == "later":
            await _answer(send, 429, b"busy", (b"retry-after", b"0"))
        elif fate == "portal":
            await _answer(send, 200, b"<h1>Welcome to our hotel</h1>")
        else:
            await _answer(send, int(fate), f"no, says {fate}, to {_key(scope)}".encode())

    def _plane(self, name: str) -> Any:
        if name not in self._planes:
            store = SQLiteCheckpointer(self._folder / f"{name}.sqlite3")
            key = KEY if name.startswith("locked") else None
            self._planes[name] = Plane(store, key=key)
        return self._planes[name].app


def _rows(parcel: bytes) -> list[str]:
    """The rows by run and number, whether or not they are what was written."""
    opened = json.loads(parcel)
    entries = [(run, row[0]) for run, row, _ in opened["rows"] if len(row) == 9]
    return [f"{opened['runs'][run]['execution_id']}/{number}" for run, number in entries]


async def _body(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        event = await receive()
        body += event.get("body", b"")
        more = event.get("more_body", False)
    return body


def _given(body: bytes) -> Any:
    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _unheard(event: object) -> None:
    """Nobody hears it."""


def _key(scope: Any) -> str:
    """The key that a client sent, as careless servers say it."""
    return dict(scope["headers"]).get(b"authorization", b"nobody").decode()


async def _answer(
    send: Any, status: int, body: bytes = b"", *headers: tuple[bytes, bytes], length: int = -1
) -> None:
    """An answer; one that promises a longer `length` than it has is cut."""
    promised = str(len(body) if length < 0 else length).encode()
    start = [(b"content-length", promised), *headers]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body, "more_body": length >= 0})


def main() -> None:
    """Say the address on stdout, and serve until killed."""
    config = uvicorn.Config(Front(Path(sys.argv[1])), port=0, log_level="critical", lifespan="off")
    listening = config.bind_socket()
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
