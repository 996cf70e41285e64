"""What anybody who answers in a plane's place can say."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from durable_nb.llm.retry import Failure
from durable_nb.replica.address import Address


@contextmanager
def saying(kind: str, text: str) -> Iterator[str]:
    """A server on this machine that answers 500 to everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(500)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("charset", ["rot13", "hex", "undefined", "idna", "no-such"])
def test_an_answer_in_whatever_encoding_is_a_failure_in_words(charset: str) -> None:
    with saying(f"text/html; charset={charset}", "Bad gate\xfcway") as url:
        answer = Address(url, None, 20).get("r1")
    assert isinstance(answer, Failure)
    assert answer.why == "500 Internal Server Error: Bad gate\xfcway"


def test_a_key_with_blanks_that_is_echoed_is_not_said() -> None:
    key = 'sesame  "opens" 77'
    with saying("text/plain", f"wrong key: {key}") as url:
        answer = Address(url, key, 20).get("r1")
    assert isinstance(answer, Failure)
    assert "sesame" not in answer.why
