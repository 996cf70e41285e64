"""`llm="local"`: a small real model without a key or a network, asked over HTTP on loopback.

It is SmolLM2 with 135 million parameters: it can pick one of a few tools, fill simple arguments in
and say a sentence. It is slow and not clever, and everything about it is real.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from durable_nb.llm import local_prompts as prompts
from durable_nb.llm.local_server import (
    CONTEXT,
    Served,
    check_installed,
    is_leaving,
    replying,
    serving,
)
from durable_nb.llm.protocol import ToolSpec
from durable_nb.llm.stream import tell
from durable_nb.model.errors import InvalidInput, ModelFailed
from durable_nb.model.messages import Call, Message, Reply, Usage

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

_MODEL = "SmolLM2-135M-Instruct"
_DEFAULTS: Mapping[str, Any] = {"temperature": 0.0, "seed": 1, "max_tokens": 256}


class LocalModel:
    """What `Agent(llm="local")` makes of the name. `settings` may have `temperature` (0 by
    default), `seed` and `max_tokens`, the limit of a reply's length.

    Raises `InvalidInput` where the extra `local` is not installed, and for other settings.
    """

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        check_installed()
        self.name = "local"
        self.settings = dict(settings or {})
        if unknown := [each for each in self.settings if each not in _DEFAULTS]:
            raise InvalidInput(
                f"the local model has no setting {unknown[0]!r}; it has {', '.join(_DEFAULTS)}"
            )

    def __repr__(self) -> str:
        return "LocalModel()" if not self.settings else f"LocalModel({self.settings!r})"

    async def complete(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Reply:
        """A call of one of the tools, or text. Raises `ModelFailed` where the history is too long.

        When this is cancelled the server stops too, within a second.
        """
        tell("")
        try:
            with replying():
                return await self._reply(messages, tools)
        except asyncio.CancelledError:
            if is_leaving():  # the run is left as by a crash: nobody is told
                await asyncio.Event().wait()
            raise

    async def _reply(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Reply:
        served, client = await asyncio.to_thread(_connected)
        async with client:
            asking = _Asking(client, served, {**_DEFAULTS, **self.settings})
            call = await _call(asking, messages, tools)
            if call is not None:
                message = Message("assistant", tool_calls=(call,))
            else:
                message = Message("assistant", await asking.chat(prompts.answer_prompt(messages)))
        return Reply(message, asking.usage, _MODEL)


async def _call(
    asking: _Asking, messages: Sequence[Message], tools: Sequence[ToolSpec]
) -> Call | None:
    """The call that the newest prompt asks for, if it does. The same one twice is none: a model
    this small would go on with it for ever."""
    if not tools:
        return None
    chosen = await asking.complete(
        prompts.choice_prompt(messages, tools), prompts.choice_grammar(tools)
    )
    tool = next((each for each in tools if each.name == chosen.strip()), None)
    if tool is None:
        return None
    text = await asking.chat(
        prompts.arguments_prompt(messages, tool), prompts.arguments_grammar(tool)
    )
    call = Call(tool.name, _arguments(text))
    return None if prompts.was_called(messages, call) else call


class _Asking:
    """The requests that one reply takes, and what they used together."""

    def __init__(self, client: AsyncClient, served: Served, settings: Mapping[str, Any]) -> None:
        self.usage = Usage(cost=0.0)
        self._client = client
        self._settings = settings
        self._headers = {"authorization": f"Bearer {served.key}"}

    async def complete(self, prompt: str, grammar: str) -> str:
        """What the grammar lets come after a text."""
        asked = {"prompt": prompt, "grammar": grammar}
        return "".join([each async for each in self._stream("/v1/completions", asked)])

    async def chat(self, messages: list[dict[str, str]], grammar: str | None = None) -> str:
        """The chat's next message. It is told as it comes if it is free."""
        asked = {"messages": messages, **({"grammar": grammar} if grammar else {})}
        text = ""
        async for piece in self._stream("/v1/chat/completions", asked):
            text += piece
            if grammar is None:
                tell(text)
        return text

    async def _stream(self, path: str, asked: dict[str, Any]) -> AsyncIterator[str]:
        """The pieces of a reply. Whoever asks is seen to have gone only while a reply streams."""
        body = {**self._settings, **asked}
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        async with self._client.stream("POST", path, json=body, headers=self._headers) as response:
            if response.status_code != 200:
                raise await _refused(response)
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    yield self._heard(json.loads(line.removeprefix("data: ")))

    def _heard(self, event: dict[str, Any]) -> str:
        if "error" in event:
            raise ModelFailed(f"the local model failed: {_words(event['error'])}; resume the run")
        if used := event.get("usage"):
            cached = used.get("prompt_tokens_details", {}).get("cached_tokens", 0)
            self.usage += Usage(used["prompt_tokens"], used["completion_tokens"], cached, 0.0)
        for choice in event["choices"]:
            piece: str | None = choice.get("text") or choice.get("delta", {}).get("content")
            return piece or ""
        return ""


def _connected() -> tuple[Served, AsyncClient]:
    """The server and a client of it, for one reply: it belongs to the loop that it is used on.
    No connection is used twice, because the server may close it just then."""
    from httpx2 import AsyncClient, Limits

    served, once = serving(), Limits(max_keepalive_connections=0)
    client = AsyncClient(
        base_url=served.url, limits=once, trust_env=False, verify=False, timeout=None
    )
    return served, client


def _arguments(text: str) -> Mapping[str, object] | str:
    """The arguments as JSON; as text where they are none, for the model to read what is wrong."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, dict) else text


async def _refused(response: Response) -> ModelFailed:
    await response.aread()
    error = response.json()["error"]
    status = response.status_code
    if error.get("type") == "exceed_context_size_error":
        return ModelFailed(
            f"the history has {error['n_prompt_tokens']} tokens and the local model has room for "
            f"{CONTEXT}; set max_context_tokens={CONTEXT // 2} on the agent, then resume the run",
            status=status,
        )
    refusal = f"the local model refused: {_words(error)}; put that right, then resume the run"
    return ModelFailed(refusal, status=status)


def _words(error: Mapping[str, Any]) -> str:
    return str(error.get("message", error))
