"""Values and ids as text that cannot be anything but text: pure, and used by `render` and errors."""

from __future__ import annotations

import shlex

from durable_nb.core.text import literal, visible


def head(text: str, most: int) -> str:
    """The text, or its beginning and how much more there is."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"


def readable(value: object) -> str:
    """A value of a frozen context: text of several lines as it is, since somebody has to read it."""
    return visible(value) if isinstance(value, str) and "\n" in value else literal(value)


def word(text: str) -> str:
    """The text as one word of a magic's line: quoted for our parser, and safe from IPython, which
    expands `{name}` everywhere and `$name` outside of single quotes."""
    return shlex.quote(text).replace("{", "{{").replace("}", "}}")
