"""The HTTP of it: connections, records, and what goes wrong on purpose."""

from __future__ import annotations

import json
import os
import selectors
import socket
import struct
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from tests.support.provider_server import anthropic, chat, google, responses
from tests.support.provider_server.script import Said, Script
from tests.support.provider_server.troubles import Plan, Trouble, planned

PAGE = b"<!doctype html><title>Bad gateway</title>"


class Format(Protocol):
    """A provider's wire format: a module with these functions."""

    def speaks(self, path: str) -> bool:
        """Whether requests to this path are in it."""

    def is_streamed(self, path: str, body: Any) -> bool: ...

    def replies(self, body: Any) -> int:
        """How many replies the history of a request holds."""

    def faults(self, body: Any, script: Script) -> list[str]:
        """What the provider would refuse of a request."""

    def whole(self, said: Said, number: int) -> Any:
        """The reply as one JSON body."""

    def events(self, said: Said, number: int, body: Any) -> Iterator[str]:
        """The reply as the frames of a stream, the last of which ends it."""

    def error(self, status: int, message: str) -> Any:
        """An error's body."""

    def error_event(self, message: str) -> str:
        """An error as a frame of a stream."""

    def too_long(self) -> Any:
        """The body that says that the context is over the model's limit."""


FORMATS: list[Format] = [chat, responses, anthropic, google]


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it came."""

    path: str
    body: Any
    headers: Mapping[str, str]


class ProviderServer:
    """A provider for the time of a `with` block. `delay` is in seconds: before the first byte, and
    before each event of a stream after that.

    `refused` are faults of requests, `answered` the numbers of the replies that went out whole,
    `connections` those that are open. `stalled`: a client waits in vain; `left`: it went away.
    """

    def __init__(
        self,
        script: Script,
        *,
        troubles: Mapping[int, Trouble] | Plan | None = None,
        delay: float = 0.0,
        port: int = 0,
    ) -> None:
        self.script, self.delay = script, delay
        self.plan = planned(troubles)
        self.requests: list[Seen] = []
        self.refused: list[str] = []
        self.answered: list[int] = []
        self.connections: set[_Handler] = set()
        self.stalled, self.left, self.over = (threading.Event() for _ in range(3))
        self._counting = threading.Lock()
        self._http = _Http(("127.0.0.1", port), _Handler)
        self._http.provider = self

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> ProviderServer:
        threading.Thread(target=self._http.serve_forever, args=[0.01], daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._http.shutdown()
        self._http.server_close()

    def count(self, seen: Seen) -> int:
        """Put the request on record; its number, from 1."""
        with self._counting:
            self.requests.append(seen)
            return len(self.requests)


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    provider: ProviderServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client may leave at any time; anything else is a defect of this server."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def setup(self) -> None:
        super().setup()
        self.server.provider.connections.add(self)

    def finish(self) -> None:
        self.server.provider.connections.discard(self)
        super().finish()

    def log_message(self, *_: Any) -> None:
        """Nothing: the record is kept elsewhere."""

    def do_POST(self) -> None:
        provider = self.server.provider
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        trouble = provider.plan(provider.count(Seen(self.path, body, dict(self.headers))))
        wire = next((each for each in FORMATS if each.speaks(self.path)), None)
        if wire is None:
            self._json(404, {"error": {"message": f"no such path: {self.path}"}})
        elif faults := _faults(wire, body, provider.script):
            provider.refused.extend(faults)
            self._json(400, wire.error(400, "; ".join(faults)))
        else:
            provider.over.wait(provider.delay)
            if not self._failed(wire, trouble):
                self._reply(wire, body, trouble)

    def _failed(self, wire: Format, trouble: Trouble | None) -> bool:
        """Fail in place of a reply. False where a reply is to begin."""
        match trouble:
            case Trouble("status", status, retry_after):
                self._json(status, wire.error(status, "try again"), retry_after)
            case Trouble("reset"):
                self._reset()
            case Trouble("html"):
                self._whole(200, "text/html", PAGE)
            case Trouble("echo"):
                self._json(401, wire.error(401, f"Incorrect API key provided: {self._key()}"))
            case Trouble("too long"):
                self._json(400, wire.too_long())
            case _:
                return False
        return True

    def _reply(self, wire: Format, body: Any, trouble: Trouble | None) -> None:
        number = wire.replies(body)
        said = self.server.provider.script[number]
        if wire.is_streamed(self.path, body):
            self._stream(wire, list(wire.events(said, number, body)), number, trouble)
        else:
            self._at_once(json.dumps(wire.whole(said, number)).encode(), number, trouble)

    def _stream(
        self, wire: Format, frames: list[str], number: int, trouble: Trouble | None
    ) -> None:
        """Send the frames, as far as the trouble lets them come."""
        provider = self.server.provider
        self._head(200, "text/event-stream", {"Transfer-Encoding": "chunked"})
        sent = frames if trouble is None else frames[: min(trouble.after, len(frames) - 1)]
        for at, frame in enumerate(sent):
            provider.over.wait(provider.delay if at else 0)
            if frame is frames[-1]:
                provider.answered.append(number)  # before a client can have seen it
            self._chunk(frame)
        match trouble:
            case Trouble("cut"):
                self._reset()
                return
            case Trouble("stall"):
                self._stall()
            case Trouble("garbage"):
                self._chunk('data: {"half a\n\n')
            case Trouble("event"):
                self._chunk(wire.error_event("overloaded"))
        self.wfile.write(b"0\r\n\r\n")

    def _at_once(self, data: bytes, number: int, trouble: Trouble | None) -> None:
        if trouble is None:
            self.server.provider.answered.append(number)
            self._whole(200, "application/json", data)
        elif trouble.kind in ("stall", "cut"):
            self._head(200, "application/json", {"Content-Length": str(len(data))})
            self.wfile.write(data[: len(data) // 2])
            if trouble.kind == "stall":
                self._stall()
            self._reset()
        else:
            self._whole(200, "application/json", data[: len(data) // 2])

    def _stall(self) -> None:
        """Never another byte, until the client leaves."""
        provider = self.server.provider
        provider.stalled.set()
        with selectors.DefaultSelector() as selector:  # whatever the number of the file is
            selector.register(self.connection, selectors.EVENT_READ)
            while not provider.over.is_set():
                if selector.select(0.02):
                    provider.left.set()
                    return

    def _json(self, status: int, body: Any, retry_after: str | None = None) -> None:
        more = {} if retry_after is None else {"Retry-After": retry_after}
        self._whole(status, "application/json", json.dumps(body).encode(), more)

    def _whole(
        self, status: int, kind: str, data: bytes, more: Mapping[str, str] | None = None
    ) -> None:
        self._head(status, kind, {"Content-Length": str(len(data)), **(more or {})})
        self.wfile.write(data)

    def _head(self, status: int, kind: str, more: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **more}.items():
            self.send_header(name, value)
        self.end_headers()

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _reset(self) -> None:
        """Close so that the client's end is told of a reset, not of an end."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())

    def _key(self) -> str:
        names = ("Authorization", "x-api-key", "x-goog-api-key")
        return next((self.headers[name] for name in names if name in self.headers), "none")


def _faults(wire: Format, body: Any, script: Script) -> list[str]:
    """What is wrong with a request, the script's end included."""
    found = wire.faults(body, script)
    if not found and wire.replies(body) >= len(script):
        found.append(f"the script has no reply {wire.replies(body)}")
    return found
