"""What went wrong while a model was asked: an exception as a `Failure`, in words without keys."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from math import inf
from typing import Any

import pydantic
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelTimeoutError,
    UnexpectedModelBehavior,
    UserError,
)

from durable_nb.llm.retry import Failure, is_passing, status_words

_GARBLED = (json.JSONDecodeError, UnicodeDecodeError, pydantic.ValidationError)
_TRANSPORTS = ("httpx", "httpx2", "httpcore", "httpcore2")
_PROXIES_SAY = (403, 407, 502, 503, 504)  # and providers do, too
_HINTS: tuple[tuple[type[Exception], str], ...] = (
    (ModelAuthenticationError, "set the key of this provider in the environment"),
    (ModelNotFoundError, "check the model's name"),
    (ModelContextWindowExceededError, "set max_context_tokens on the agent"),
    (ModelQuotaExceededError, "see to the account's quota"),
)


def failure_of(error: Exception) -> Failure:
    """What an exception that left a provider's client means."""
    hint = next((hint for kind, hint in _HINTS if isinstance(error, kind)), "")
    if isinstance(error, ModelAPIError):
        return _answered(error, hint)
    if isinstance(error, UnexpectedModelBehavior) and not isinstance(error, ContentFilterError):
        return Failure(f"the answer was no reply: {_line(error.message)}", passing=True)
    if isinstance(error, _GARBLED):
        return Failure(f"the answer was garbled: {_line(str(error))}", passing=True)
    if isinstance(error, TimeoutError | asyncio.TimeoutError):
        return Failure("timed out", passing=True)
    if _is_transport(error):
        return Failure(_dropped(error), passing=True)
    if isinstance(error, UserError):
        return Failure(f"pydantic-ai refused the request: {_line(error.message)}", passing=False)
    return Failure(_line(f"{type(error).__name__}: {error}"), passing=False)


def by_way_of(proxy: str, failure: Failure) -> Failure:
    """The failure, with the proxy that may be to blame for it, if there is one."""
    is_on_the_way = failure.passing if failure.status is None else failure.status in _PROXIES_SAY
    return replace(failure, why=f"{proxy}: {failure.why}") if proxy and is_on_the_way else failure


def _answered(error: ModelAPIError, hint: str) -> Failure:
    """A failure that pydantic-ai has sorted out."""
    refused = isinstance(error, ModelQuotaExceededError | ModelRequestRejectedError)
    if isinstance(error, ModelHTTPError):
        said = _said(error.body)
        return Failure(
            status_words(error.status_code) + (f": {said}" if said else ""),
            passing=is_passing(error.status_code) and not refused,
            status=error.status_code,
            after=_asked_for(error),
            hint=hint,
        )
    if (status := _redirect(error)) is not None:  # pydantic-ai knows the 4xx and the 5xx
        words = f"{status_words(status)}: {_line(error.message)}"
        return Failure(words, passing=False, status=status, hint="give the address it leads to")
    if isinstance(error, ModelRequestTimeout):
        return Failure(f"timed out after {error.timeout:g} s ({error.setting})", passing=True)
    if isinstance(error, ModelTimeoutError):
        return Failure("timed out", passing=True)
    if isinstance(error, ModelConnectionError):
        return Failure(_dropped(error), passing=True)
    return Failure(_line(error.message), passing=not refused, after=error.retry_after, hint=hint)


def _asked_for(error: ModelHTTPError) -> float | None:
    """Seconds that the provider asks to wait; pydantic-ai passes over fractions."""
    if error.retry_after is not None:
        return error.retry_after
    try:
        seconds = float((error.headers or {}).get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < inf else None


def _redirect(error: ModelAPIError) -> int | None:
    """The status of a redirect. None is followed: it would take the key along."""
    codes = (getattr(error.__cause__, name, None) for name in ("status_code", "code"))
    return next((code for code in codes if isinstance(code, int) and 300 <= code < 400), None)


def _said(body: object) -> str:
    """The provider's own words in the body of an error."""
    if isinstance(body, dict):
        inner: Any = body.get("error", body)
        if isinstance(inner, dict):
            inner = inner.get("message") or inner.get("detail") or inner
        return _line(inner if isinstance(inner, str) else json.dumps(inner, default=repr))
    return _line(str(body)) if body else ""


def _is_transport(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in _TRANSPORTS or isinstance(error, OSError)


def _dropped(error: BaseException) -> str:
    """Where a connection broke, as its innermost cause says."""
    cause: BaseException = error
    while (inner := cause.__cause__ or cause.__context__) is not None:
        cause = inner
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused"
    said = _line(str(cause) or str(error))
    return f"connection lost: {said}" if said else f"connection lost: {type(cause).__name__}"


def _line(text: str) -> str:
    return " ".join(text.split())
