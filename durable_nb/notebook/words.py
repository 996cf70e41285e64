"""Values and ids as text that cannot be anything but text: pure, and used by `render` and errors."""

from __future__ import annotations

import json
import re
import shlex

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    r"""The text with what a screen would act on, or could not show, spelled out: `\x1b[31m`."""
    return _UNSEEN.sub(lambda found: ascii(found.group())[1:-1], text)


def head(text: str, most: int) -> str:
    """The text, or its beginning and how much more there is."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"


def literal(value: object) -> str:
    """A value of a frozen context as JSON or Python would write it; text of several lines as it
    is, since somebody has to read it."""
    if isinstance(value, str) and "\n" in value:
        return visible(value)
    if isinstance(value, dict | list | str) and value:
        try:
            return visible(json.dumps(value, ensure_ascii=False, indent=_indent(value)))
        except (TypeError, ValueError):
            return visible(repr(value))  # a tuple, a Decimal, a key that is not text
    return visible(repr(value))


def _indent(value: object) -> int | None:
    return 2 if len(repr(value)) > 80 else None


def word(text: str) -> str:
    """The text as one word of a magic's line: quoted for our parser, and safe from IPython, which
    expands `{name}` everywhere and `$name` outside of single quotes."""
    return shlex.quote(text).replace("{", "{{").replace("}", "}}")
