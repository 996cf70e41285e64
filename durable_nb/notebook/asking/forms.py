"""What a form asks for when a call's arguments are edited, drawn from its tool's JSON schema: pure.

A field holds one argument. What has no plain input of its own (lists, objects, numbers that a
browser would round) is JSON text, so that everything a tool takes can be edited exactly.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from durable_nb.core.text import literal
from durable_nb.notebook.words import head

Kind: TypeAlias = Literal["text", "lines", "whole", "real", "switch", "choice", "json"]
Mode: TypeAlias = Literal["a value", "none", "left out"]
Schema: TypeAlias = Mapping[str, Any]

EXACT = 2**53  # beyond it a browser's number is not the number that was typed
LINE = 60  # characters of a text that one line shows
LONG = 20_000  # characters of a value that a form takes
SHORT = 120  # of a value in a line that says what changes


class Absent:
    """An argument that the call does not have: the function's own default stands."""

    def __repr__(self) -> str:
        return "(left out)"


ABSENT = Absent()


@dataclass(frozen=True, slots=True)
class Field:
    """One argument. `saved` is its value in the call, `start` what its input shows at first, and
    `modes` what it can be set to beside a value."""

    name: str
    kind: Kind
    saved: object
    start: Any
    modes: tuple[Mode, ...]
    required: bool = False
    says: str = ""
    choices: tuple[object, ...] = ()

    @property
    def mode(self) -> Mode:
        """What it is set to at first."""
        return "left out" if self.saved is ABSENT else "none" if self.saved is None else "a value"


def fields_of(schema: Schema, arguments: Mapping[str, object]) -> list[Field]:
    """The fields for a call with these arguments, in the order of the tool's parameters."""
    properties: Mapping[str, Schema] = schema.get("properties", {})
    required = set(schema.get("required", ()))
    return [
        _field(name, properties.get(name, {}), schema, arguments, required=name in required)
        for name in dict.fromkeys((*properties, *arguments))
    ]


def too_long(field: Field) -> bool:
    """Whether its value is more than a form should carry to a browser and back."""
    return isinstance(field.start, str) and len(field.start) > LONG


def parsed(field: Field, shown: Any) -> object:
    """The value that an input shows. Raises `ValueError` in words for what is not JSON."""
    if field.kind == "choice":
        return field.choices[shown]
    if field.kind != "json":
        return shown
    try:
        return json.loads(shown)
    except ValueError as error:
        raise ValueError(f'not JSON: {error}; text needs quotes, as in "text"') from error


def edits_of(fields: Sequence[Field], values: Mapping[str, object]) -> dict[str, object]:
    """Those of the values that are not what the call has."""
    return {
        field.name: values[field.name]
        for field in fields
        if field.name in values and not _same(field.saved, values[field.name])
    }


def edit_lines(arguments: Mapping[str, object], edits: Mapping[str, object]) -> list[str]:
    """`amount: 5000 → 4500`, a line an edit."""
    return [
        f"{name}: {_brief(arguments.get(name, ABSENT))} → {_brief(new)}"
        for name, new in edits.items()
    ]


def _field(
    name: str, spec: Schema, schema: Schema, arguments: Mapping[str, object], *, required: bool
) -> Field:
    saved = arguments.get(name, ABSENT)
    spec = _resolved(spec, schema)
    plain, nullable = _without_null(spec, schema)
    kind, choices = _kind(plain)
    start = saved if saved not in (ABSENT, None) else spec.get("default")
    modes: list[Mode] = ["a value"]
    modes += ["none"] * (nullable or saved is None)
    modes += ["left out"] * (saved is ABSENT and not required)
    says = _says(plain, spec, required=required)
    field = Field(name, kind, saved, None, tuple(modes), required, says, choices)
    return _started(field, start)


def _started(field: Field, start: object) -> Field:
    """The field with what its input shows at first; one that cannot show it exactly is JSON."""
    if start is None:
        return replace(field, start=_EMPTY.get(field.kind, 0 if field.choices else ""))
    if field.kind == "choice":
        places = [at for at, each in enumerate(field.choices) if _same(each, start)]
        if places:
            return replace(field, start=places[0])
    elif _fits(field.kind, start):
        long = isinstance(start, str) and (len(start) > LINE or "\n" in start)
        return replace(field, start=start, kind="lines" if long else field.kind)
    return replace(field, kind="json", start=_json(start))


_EMPTY: Mapping[Kind, object] = {"text": "", "whole": 0, "real": 0.0, "switch": False, "json": ""}


def _fits(kind: Kind, value: object) -> bool:
    match value:
        case bool():
            return kind == "switch"
        case int():
            return kind in ("whole", "real") and abs(value) <= EXACT
        case float():
            return kind == "real" and math.isfinite(value)
        case str():
            return kind == "text" and _sendable(value)
        case _:
            return False


def _sendable(text: str) -> bool:
    """Whether a browser shows the text and gives it back unchanged."""
    return text.isprintable() or all(each.isprintable() or each in "\n\t" for each in text)


def _kind(spec: Schema) -> tuple[Kind, tuple[object, ...]]:
    if "const" in spec:
        return "choice", (spec["const"],)
    if choices := tuple(spec.get("enum", ())):
        return "choice", choices
    return _KINDS.get(str(spec.get("type")), "json"), ()


_KINDS: Mapping[str, Kind] = {
    "string": "text",
    "integer": "whole",
    "number": "real",
    "boolean": "switch",
}


def _resolved(spec: Schema, schema: Schema) -> Schema:
    """What a reference to one of the schema's own definitions stands for."""
    where = spec.get("$ref", "")
    if not where.startswith("#/$defs/"):
        return spec
    meant: Schema = schema.get("$defs", {}).get(where.removeprefix("#/$defs/"), {})
    return {**_resolved(meant, schema), **{key: spec[key] for key in spec if key != "$ref"}}


def _without_null(spec: Schema, schema: Schema) -> tuple[Schema, bool]:
    """The one kind of value that is meant beside null; more than one have no input of their own."""
    either: Sequence[Schema] = spec.get("anyOf") or spec.get("oneOf") or ()
    if isinstance(spec.get("type"), list):
        either = [{**spec, "type": each} for each in spec["type"]]
    if not either:
        return spec, False
    real = [_resolved(each, schema) for each in either if each.get("type") != "null"]
    return real[0] if len(real) == 1 else {}, len(real) < len(either)


def _says(plain: Schema, spec: Schema, *, required: bool) -> str:
    """What stands beside a field: its type, its bounds, whether it is needed, what it is for."""
    said = [str(plain.get("type", "" if plain.get("enum") else "JSON"))]
    said += [f"{words} {literal(plain[key])}" for key, words in _BOUNDS.items() if key in plain]
    said += ["required" if required else "optional"]
    if spec.get("default") is not None:
        said.append(f"default {literal(spec['default'])}")
    about = spec.get("description") or plain.get("description") or ""
    return " · ".join(filter(None, (", ".join(filter(None, said)), head(str(about), 200))))


_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
    "minLength": "length at least",
    "maxLength": "length at most",
    "pattern": "matching",
    "format": "a",
}


def _same(one: object, other: object) -> bool:
    """Equal, and of the same type at every depth: 1 is neither True nor 1.0."""
    return one is other or repr(one) == repr(other)


def _brief(value: object) -> str:
    return repr(value) if value is ABSENT else head(literal(value), SHORT)


def _json(value: object) -> str:
    try:
        return json.dumps(value, indent=2 if len(repr(value)) > LINE else None)
    except (TypeError, ValueError):
        return literal(value)  # nothing that a model asks for: an earlier edit in Python
