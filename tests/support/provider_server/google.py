"""Google's generateContent: contents of parts, calls that may lack ids, thought signatures."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from durable_nb import Message
from durable_nb.model.messages import Call
from tests.support.provider_server.judge import Malformed, checked, needs, tool_faults
from tests.support.provider_server.script import Said, Script, pieces, signature


def speaks(path: str) -> bool:
    return "enerateContent" in path


def is_streamed(path: str, body: Any) -> bool:
    return ":streamGenerateContent" in path


def replies(body: Any) -> int:
    return sum(content["role"] == "model" for content in body["contents"])


def faults(body: Any, script: Script) -> list[str]:
    found: list[str] = []
    for tool in body.get("tools", ()):
        for each in tool["functionDeclarations"]:
            found += tool_faults(each.get("name"), _schema(each))
    try:
        _check_thoughts(body["contents"], script)
        return found + checked(list(_transcript(body)))
    except Malformed as error_:
        return [*found, str(error_)]


def _schema(declared: Any) -> Any:
    """A tool's schema, in either spelling: Google reads both."""
    return declared.get("parametersJsonSchema", declared.get("parameters_json_schema"))


def _transcript(body: Any) -> Iterator[Message]:
    if "systemInstruction" in body:
        yield Message("system", _text(body["systemInstruction"]["parts"]))
    for number, content in enumerate(body["contents"]):
        parts = content.get("parts")
        needs(bool(parts), f"content {number} has no parts")
        if content["role"] == "model":
            yield _read_reply(parts, number)
        else:
            needs(content["role"] == "user", f"a content of {content['role']!r}")
            yield from _read_user(parts, number)


def _read_user(parts: list[Any], number: int) -> Iterator[Message]:
    """Results are told apart by their calls' ids, or else by their order."""
    results = [part["functionResponse"] for part in parts if "functionResponse" in part]
    for at, result in enumerate(results):
        needs(isinstance(result["response"], dict), f"a response that is no object: {result}")
        said = json.dumps(result["response"])
        yield Message("tool", said, tool_call_id=result.get("id") or f"{number - 1}_{at}")
    if len(parts) > len(results):
        yield Message("user", _text(part for part in parts if "functionResponse" not in part))


def _read_reply(parts: list[Any], number: int) -> Message:
    made = [part["functionCall"] for part in parts if "functionCall" in part]
    for call in made:
        needs(isinstance(call.get("args", {}), dict), f"args that are no object: {call}")
    calls = tuple(
        Call(call["name"], call.get("args", {}), call.get("id") or f"{number}_{at}")
        for at, call in enumerate(made)
    )
    texts = [part for part in parts if "functionCall" not in part and not part.get("thought")]
    return Message("assistant", _text(texts), calls)


def _text(parts: Any) -> str:
    texts = [part.get("text") for part in parts]
    needs(all(texts), f"a part without data: {texts}")
    return "".join(texts)


def _check_thoughts(contents: list[Any], script: Script) -> None:
    """The first call of a reply bears the signature of the thought that led to it."""
    made = iter(script)
    for content in contents:
        if content["role"] != "model":
            continue
        said = next(made, Said())
        calls = [part for part in content["parts"] if "functionCall" in part]
        if said.thinking and calls:
            signed = calls[0].get("thoughtSignature")
            wanted = _signature(said)
            needs(_bytes(signed) == _bytes(wanted), f"no thought_signature, but {signed!r}")


def _bytes(signed: str | None) -> bytes:
    """The signature, in either of the alphabets that are in use."""
    return base64.urlsafe_b64decode((signed or "").replace("+", "-").replace("/", "_"))


def _signature(said: Said) -> str:
    return base64.b64encode(signature(said.thinking).encode()).decode()


def whole(said: Said, number: int) -> Any:
    return _answer(_parts(said, number, at_once=True), said, number, "STOP")


def events(said: Said, number: int, body: Any) -> Iterator[str]:
    parts = _parts(said, number, at_once=False)
    for part in parts[:-1]:
        yield _frame(_answer([part], said, number))
    yield _frame(_answer(parts[-1:], said, number, "STOP"))


def _parts(said: Said, number: int, *, at_once: bool) -> list[Any]:
    thoughts, texts = (
        [text] * bool(text) if at_once else pieces(text) for text in (said.thinking, said.text)
    )
    parts: list[Any] = [{"text": text, "thought": True} for text in thoughts]
    parts += [{"text": text} for text in texts]
    for id_, call in said.named(number):
        named = {"id": id_} if id_ else {}
        part = {"functionCall": {"name": call.tool, "args": call.arguments, **named}}
        parts.append(part)
    if said.thinking:
        signed = next((part for part in parts if "functionCall" in part), parts[-1])
        signed["thoughtSignature"] = _signature(said)
    return parts


def _answer(parts: list[Any], said: Said, number: int, reason: str | None = None) -> Any:
    candidate = {"content": {"parts": parts, "role": "model"}, "index": 0}
    return {
        "candidates": [candidate | ({"finishReason": reason} if reason else {})],
        "usageMetadata": {
            "promptTokenCount": said.usage.input_tokens,
            "candidatesTokenCount": said.usage.output_tokens,
            "totalTokenCount": said.usage.total_tokens,
            "cachedContentTokenCount": said.usage.cached_tokens,
        },
        "modelVersion": "scripted-1",
        "responseId": f"resp-{number}",
    }


_KINDS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED"}


def error(status: int, message: str) -> Any:
    kind = _KINDS.get(status, "UNAVAILABLE")
    return {"error": {"code": status, "message": message, "status": kind}}


def error_event(message: str) -> str:
    return _frame(error(503, message))


def too_long() -> Any:
    said = "The input token count (200) exceeds the maximum number of tokens allowed (100)."
    return error(400, said)


def _frame(body: Any) -> str:
    return f"data: {json.dumps(body)}\r\n\r\n"
