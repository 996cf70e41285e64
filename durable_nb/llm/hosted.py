"""A model that somebody serves, asked through pydantic-ai: retried, told as it comes, recorded.

What holds connections belongs to one event loop, so there is one client for each that asks. A model
leaves its process as its name and settings, never with a key.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, finalize

from durable_nb.llm.named import Named
from durable_nb.llm.protocol import ToolSpec
from durable_nb.llm.retry import Failure, pause_before
from durable_nb.llm.secrets import scrubbed
from durable_nb.llm.settings import MAX_RETRIES
from durable_nb.llm.stream import tell
from durable_nb.model.errors import ModelFailed
from durable_nb.model.messages import Message, Reply

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from durable_nb.llm.asking import Asker

_LONGEST = 350  # characters of what went wrong


class HostedModel:
    """What `Agent(llm="PROVIDER:MODEL")` makes of the name, or of a model of pydantic-ai's.

    `name` is what the agent's definition records. `settings` are pydantic-ai's `ModelSettings`, in
    which `max_retries` counts the attempts after the first. Of a reply whose server does not tell
    what it took, the tokens are estimated, as those of a history are; the reply is stored with
    `extra["provider"]["usage"]` set to `"estimated"`, and no cost. A server on loopback is asked
    without a proxy, whatever HTTP_PROXY says.
    """

    def __init__(self, name: str, source: Named | Model, settings: Mapping[str, Any]) -> None:
        self.name = name
        self.settings = dict(settings)
        self._source = source
        self._askers: WeakKeyDictionary[asyncio.AbstractEventLoop, Asker] = WeakKeyDictionary()
        self._making = threading.Lock()
        finalize(self, _let_go, self._askers, os.getpid()).atexit = False

    def __repr__(self) -> str:
        return f"HostedModel({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Raises `InvalidInput` for a model of pydantic-ai's whose key is not the environment's."""
        source = self._source
        if not isinstance(source, Named):
            from durable_nb.llm.connect import portable

            source = portable(source)
        return HostedModel, (self.name, source, self.settings)

    async def complete(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Reply:
        """The reply to a transcript, asked for again after what goes by.

        Raises `InvalidInput` where the environment lacks what the provider needs, and `ModelFailed`
        where it refused, or gave no whole answer after all retries.
        """
        asker = await self._asker()
        retries: list[str] = []
        while True:
            outcome = await asker.attempt(messages, tools)
            if isinstance(outcome, Reply):
                return replace(outcome, retries=tuple(retries))
            failure = replace(outcome, why=_short(scrubbed(outcome.why, asker.secrets)))
            if not failure.passing or len(retries) >= self.settings.get("max_retries", MAX_RETRIES):
                raise ModelFailed(_words(self.name, failure, retries), status=failure.status)
            wait = pause_before(len(retries) + 1, failure, random.random())
            retries.append(f"{failure.why}; waited {wait:.1f} s")
            tell(f"{failure.why}; waiting {wait:.1f} s")
            await asyncio.sleep(wait)

    async def _asker(self) -> Asker:
        """The client of this loop. It is made beside the loop, since that imports a lot."""
        loop = asyncio.get_running_loop()
        if loop not in self._askers:
            await asyncio.to_thread(self._make, loop)
        asker = self._askers[loop]
        await asker.open()
        return asker

    def _make(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make that loop's client, once, however many runs begin at once: it takes 0.2 s."""
        from durable_nb.llm.asking import Asker

        with self._making:
            if loop not in self._askers:
                self._askers[loop] = Asker(self._source, self.settings)


def _let_go(askers: Mapping[asyncio.AbstractEventLoop, Asker], process: int) -> None:
    """Close the connections of a model that is gone, each on its loop. A forked child has none."""
    for loop, asker in list(askers.items()):
        if process == os.getpid() and loop.is_running():
            asyncio.run_coroutine_threadsafe(asker.close(), loop)


def _short(text: str) -> str:
    """The text, cut; once no key is in it, as half of one would not be found."""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _words(name: str, failure: Failure, retries: Sequence[str]) -> str:
    if failure.passing:
        times = f"{len(retries) + 1} attempts" if retries else "one attempt"
        return (
            f"{name} gave no reply in {times}: {failure.why}; resume the run when it answers again"
        )
    return f"{name} refused: {failure.why}; {failure.hint or 'put that right'}, then resume the run"
