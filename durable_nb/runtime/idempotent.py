"""`@idempotent`: a side effect that a run remembers (DESIGN R4)."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import threading
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar, get_args, overload

from durable_nb.model.errors import IdempotencyError, InvalidInput, NotStorable
from durable_nb.model.values import Json, digest, freeze, thaw
from durable_nb.runtime.scope import Scope, is_driving, scope
from durable_nb.stores.protocol import Begun, Kept

P = ParamSpec("P")
R = TypeVar("R")
KeyFunction: TypeAlias = Callable[..., object]
InDoubt: TypeAlias = Literal["rerun", "ask"]

_inside: ContextVar[tuple[str, ...]] = ContextVar("durable_nb keys in flight", default=())


@overload
def idempotent(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def idempotent(
    *, key_fn: KeyFunction | None = None, in_doubt: InDoubt = "rerun"
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def idempotent(
    function: Any = None,
    /,
    *,
    key_fn: KeyFunction | None = None,
    in_doubt: InDoubt = "rerun",
) -> Any:
    """Remember a function's result by run and arguments, so that a run has its effect once.

    Inside a run, a call whose key has a result returns that result and never runs the body. The
    key is the function's name with its arguments, or what `key_fn(*args, **kwargs)` returns. The
    result comes back in its stored form on the first pass too. Outside a run the body runs every
    time. A call that raises is not remembered.

    A call that had begun in a process that is gone, and left no result, is in doubt. It runs again,
    or with `in_doubt="ask"` pauses the run for a person who says what became of it.

    Raises `IdempotencyError` for an argument (before the body) or a result (after it) that cannot
    be stored, and `StaleLog` where another process has taken the run over.
    """
    if in_doubt not in get_args(InDoubt):
        raise InvalidInput(f"in_doubt is 'rerun' or 'ask', not {in_doubt!r}")
    wrap = functools.partial(_wrap, key_fn=key_fn, in_doubt=in_doubt)
    return wrap if function is None else wrap(function)


def _wrap(
    function: Callable[..., Any], *, key_fn: KeyFunction | None, in_doubt: InDoubt
) -> Callable[..., Any]:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidInput(
            f"@idempotent cannot remember {function.__qualname__}: a generator has no one result; "
            "return a list"
        )
    if getattr(function, "__name__", "<lambda>") == "<lambda>":
        raise InvalidInput(
            f"@idempotent remembers a function by its name, and {function!r} has none of its own; "
            "define one with def"
        )
    call_of = _call_of(function, key_fn, in_doubt)

    @functools.wraps(function)
    def once(*args: Any, **kwargs: Any) -> Any:
        with call_of(args, kwargs) as call:
            if call.is_new():
                call.keep(function(*args, **kwargs))
            return call.result()

    @functools.wraps(function)
    async def once_async(*args: Any, **kwargs: Any) -> Any:
        async with call_of(args, kwargs) as call:
            if call.is_new():
                call.keep(await function(*args, **kwargs))
            return call.result()

    return once_async if inspect.iscoroutinefunction(function) else once


def _call_of(
    function: Callable[..., Any], key_fn: KeyFunction | None, in_doubt: InDoubt
) -> Callable[[tuple[Any, ...], dict[str, Any]], _Call | _Plain]:
    """What stands for one call of the function: remembered within a run, plain outside of one."""
    name = f"{function.__module__}.{function.__qualname__}"
    signature = inspect.signature(function)

    def call_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call | _Plain:
        inner = scope()
        if inner is None:
            return _Plain(name)
        if key_fn is not None:
            key = _stored(key_fn(*args, **kwargs), f"the key of {name}")
            return _Call(inner, name, digest([name, "key", key]), {"key": thaw(key)}, in_doubt)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = {
            argument: _stored(value, f"argument {argument!r} of {name}")
            for argument, value in bound.arguments.items()
        }
        key = digest([name, "arguments", arguments])
        return _Call(inner, name, key, thaw(arguments), in_doubt)

    return call_of


class _Plain:
    """A call outside of any run: nothing is remembered."""

    def __init__(self, name: str) -> None:
        self._value: Any = None
        if is_driving():
            warnings.warn(
                f"{name} was called outside of a run's tool while this process drives a run: "
                "nothing is remembered. In a thread that a tool starts, call carry(function)",
                stacklevel=4,
            )

    def is_new(self) -> bool:
        return True

    def keep(self, value: Any) -> None:
        self._value = value

    def result(self) -> Any:
        return self._value

    def __enter__(self) -> _Plain:
        return self

    def __exit__(self, *raised: object) -> None:
        return None

    async def __aenter__(self) -> _Plain:
        return self

    async def __aexit__(self, *raised: object) -> None:
        return None


class _Call:
    """One call inside a run. The same key in flight twice runs once: the second waits."""

    def __init__(
        self, inner: Scope, name: str, key: str, arguments: object, in_doubt: InDoubt
    ) -> None:
        if inner.process != os.getpid():
            raise IdempotencyError(
                f"{name} was called in a process that the tool forked, where nobody sees to it that "
                "the same call runs once; call it in the tool's own process"
            )
        self._inner, self._name, self._key = inner, name, key
        self._arguments, self._in_doubt = arguments, in_doubt
        self._flight = inner.flights.setdefault(key, threading.Lock())
        self._frozen: Json = None

    def is_new(self) -> bool:
        """Whether the body has to run; marks it as begun."""
        inner = self._inner
        known = inner.store.effect(inner.lease, self._key)
        if isinstance(known, Kept):
            self._frozen = known.value
            return False
        if isinstance(known, Begun) and self._in_doubt == "ask" and self._happened(known):
            return False
        inner.store.begin(inner.lease, self._key, self._name, at=inner.ports.clock())
        return True

    def _happened(self, begun: Begun) -> bool:
        """Whether a person said that the call in doubt took effect; asks, if nobody was asked
        since it had begun. An answer is good for one attempt."""
        for answered in reversed(self._inner.answers):
            if answered.pause.key == self._key and answered.number > begun.number:
                if answered.answer.outcome == "happened":
                    self.keep(answered.answer.result)
                    return True
                return False
        raise self._inner.doubt(self._name, self._arguments, self._key)

    def keep(self, value: Any) -> None:
        """Put the result on disk."""
        inner = self._inner
        self._frozen = _stored(value, f"the result of {self._name}")
        inner.store.keep(inner.lease, self._key, self._frozen, at=inner.ports.clock())

    def result(self) -> Any:
        return thaw(self._frozen)

    def __enter__(self) -> _Call:
        self._refuse_itself()
        self._flight.acquire()
        return self._entered()

    async def __aenter__(self) -> _Call:
        self._refuse_itself()
        while not self._flight.acquire(blocking=False):
            await asyncio.sleep(0.005)
        return self._entered()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _inside.reset(self._token)
        self._flight.release()

    async def __aexit__(self, *raised: Any) -> None:
        self.__exit__(*raised)

    def _entered(self) -> _Call:
        self._token = _inside.set((*_inside.get(), self._key))
        return self

    def _refuse_itself(self) -> None:
        if self._key in _inside.get():
            raise IdempotencyError(
                f"{self._name} calls itself with the same arguments; it would wait for itself"
            )


def _stored(value: object, what: str) -> Json:
    try:
        return freeze(value, what)
    except NotStorable as error:
        raise IdempotencyError(f"@idempotent: {error}") from error
