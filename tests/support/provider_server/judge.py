"""What every provider checks in a request, whatever format it is in."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from jsonschema import Draft202012Validator, SchemaError

from durable_nb import Message
from durable_nb.model.messages import Call
from tests.support.providers import faults as transcript_faults


class Malformed(Exception):
    """A part of a request that no provider could read."""


def checked(transcript: Sequence[Message]) -> list[str]:
    """The faults of a history that is sent to be answered."""
    found = transcript_faults(transcript)
    if transcript and transcript[-1].role == "assistant":
        found.append("the history ends with the assistant's word, which nobody has to answer")
    return found


def tool_faults(name: Any, schema: Any) -> list[str]:
    """What is wrong with a tool's declaration."""
    found = []
    if not isinstance(name, str) or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        found.append(f"a tool is named {name!r}")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        found.append(f"the schema of {name} is no object's: {schema!r}")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        found.append(f"the schema of {name} is none: {error.message}")
    return found


def read_arguments(tool: str, text: Any, id_: str) -> Call:
    """A call whose arguments are a JSON object as text, as OpenAI writes them."""
    needs(isinstance(text, str), f"arguments that are no text: {text!r}")
    try:
        arguments = json.loads(text, parse_constant=_refused)
    except ValueError:
        raise Malformed(f"arguments that are not JSON: {text!r}") from None
    needs(isinstance(arguments, dict), f"arguments that are no object: {text!r}")
    return Call(tool, arguments, id_)


def _refused(constant: str) -> None:
    """JSON has no NaN and no Infinity."""
    raise ValueError(constant)


def needs(found: bool, fault: str) -> None:
    """Raises `Malformed` where something is not as it has to be."""
    if not found:
        raise Malformed(fault)
