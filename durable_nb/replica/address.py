"""A plane as its clients see it: one HTTP address, a key, and what its answers mean.

A key comes from an argument or from the environment, travels in a header, and is never said.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import httpx

from durable_nb.llm.retry import Failure, status_words
from durable_nb.llm.secrets import scrubbed
from durable_nb.model.errors import InvalidInput
from durable_nb.replica.parcel import pack
from durable_nb.stores.replicated import Replica

KEY = "DURABLE_NB_PLANE_KEY"
ROWS = "/v1/rows"
HERE = ("127.0.0.1", "localhost", "::1")
TIMEOUT = 30.0  # seconds for a plane to answer

_ABSENT = b'{"unknown":'  # how a plane's answer begins that does not have a run
_DENIED = (401, 403)
_REFUSED = (400, 409, 413, 422)  # anything else may be a proxy's, and is no reason to lose a row
_LONGEST = 300  # characters of what a plane says


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The plane has written the rows."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The plane will never take the rows as they are."""

    reason: str


@dataclass(frozen=True, slots=True)
class Denied:
    """The plane does not know us: asking again would change nothing."""

    reason: str


Verdict: TypeAlias = Acknowledged | Refused | Denied | Failure


@dataclass(frozen=True, slots=True)
class Given:
    """What came for a run: its rows as they travel, if it is a plane that gave them."""

    parcel: bytes


@dataclass(frozen=True, slots=True)
class Absent:
    """The plane does not have the run."""

    reason: str


class Address:
    """Where a plane is. One client for any number of threads; it asks once."""

    def __init__(self, url: str, key: str | None, timeout: float) -> None:
        self.url = _checked(url)
        self._key = _usable(os.environ.get(KEY, "") if key is None else key)
        headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
        spared = httpx.URL(self.url).host in HERE
        self._http = httpx.Client(headers=headers, timeout=timeout, trust_env=not spared)

    def __repr__(self) -> str:
        return f"Address({self.url!r})"

    def post(self, rows: Sequence[Replica]) -> Verdict:
        """What the plane says to the rows."""
        try:
            answer = self._http.post(self.url + ROWS, content=pack(rows))
        except httpx.HTTPError as error:
            return Failure(self._unreachable(error), passing=True)
        return self._verdict(answer, len(rows))

    def get(self, execution_id: str) -> Given | Absent | Failure:
        """What the plane gives when it is asked for a run."""
        asked = execution_id.encode(errors="backslashreplace").decode()
        try:
            answer = self._http.get(self.url + ROWS, params={"execution_id": asked})
        except httpx.HTTPError as error:
            return Failure(self._unreachable(error), passing=True)
        if answer.status_code == 200:
            return Given(answer.content)
        if answer.status_code == 404 and answer.content.startswith(_ABSENT):
            return Absent(self._said(answer))  # and not a 404 of whoever answers in its place
        return self._failure(answer)

    def close(self) -> None:
        self._http.close()

    def _verdict(self, answer: httpx.Response, count: int) -> Verdict:
        status = answer.status_code
        if status in _DENIED:
            return Denied(self._said(answer))
        if status in _REFUSED:
            return Refused(self._said(answer))
        if 200 <= status < 300 and answer.content == receipt(count):
            return Acknowledged()  # and not a 200 of whoever answers in the plane's place
        return self._failure(answer)

    def _failure(self, answer: httpx.Response) -> Failure:
        status, after = answer.status_code, _after(answer)
        return Failure(self._said(answer), passing=True, status=status, after=after)

    def _said(self, answer: httpx.Response) -> str:
        """An answer in words, without our key. Which encoding it names may be anything."""
        text = scrubbed(answer.content[:10_000].decode(errors="replace"), [self._key])
        return self._scrubbed(f"{status_words(answer.status_code)}: {' '.join(text.split())}")

    def _unreachable(self, error: httpx.HTTPError) -> str:
        return self._scrubbed(f"no answer ({type(error).__name__}: {error})")

    def _scrubbed(self, text: str) -> str:
        return scrubbed(text, [self._key])[:_LONGEST]


def receipt(count: int) -> bytes:
    """What a plane answers once it has written `count` rows."""
    return b'{"acknowledged":%d}' % count


def _after(answer: httpx.Response) -> float | None:
    """How many seconds it asks to wait."""
    seconds = answer.headers.get("retry-after", "")
    return float(seconds) if seconds.isascii() and seconds.isdigit() else None


def _usable(key: str) -> str:
    """The key without blanks around it. Raises `InvalidInput` for what no header can bring."""
    stripped = key.strip()
    if not (stripped.isascii() and stripped.isprintable()):
        raise InvalidInput(f"the key (key=, or {KEY}) has other characters than printable ASCII")
    return stripped


def _checked(url: str) -> str:
    """The address without a slash at its end. Raises `InvalidInput` for what is none."""
    try:
        read = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        read = httpx.URL()
    if read.scheme not in ("http", "https") or not read.host or read.query or read.fragment:
        raise InvalidInput("a plane is named by its address, such as 'http://127.0.0.1:8800'")
    if read.userinfo:
        raise InvalidInput(
            f"the plane's address holds a password; pass it as key=, or set {KEY}, and name the "
            "plane by its address alone"
        )
    return str(read).rstrip("/")
