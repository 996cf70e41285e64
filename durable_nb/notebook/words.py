"""Values and ids as text that cannot be anything but text: pure, and used by `render` and errors."""

from __future__ import annotations

import shlex


def head(text: str, most: int) -> str:
    """The text, or its beginning and how much more there is."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"


def tail(text: str, most: int, lines: int) -> str:
    """The end of a text that grows: some characters, of no more than some lines. What is looked at
    does not grow with it."""
    end = text[-most:]
    kept = "\n".join(end.split("\n")[-lines:])
    return kept if len(kept) == len(text) else f"…{kept}"


def duration(seconds: int) -> str:
    """`12 s`, `3 min 05 s`, `2 h 07 min`."""
    minutes, hours = seconds // 60, seconds // 3600
    if hours:
        return f"{hours} h {minutes % 60:02} min"
    return f"{minutes} min {seconds % 60:02} s" if minutes else f"{seconds} s"


def elapsed(microseconds: int) -> str:
    """`340 µs`, `12 ms`, `1.2 s`, `3 min 05 s`."""
    if microseconds < 1_000:
        return f"{microseconds} µs"
    if microseconds < 1_000_000:
        return f"{microseconds // 1_000} ms"
    if microseconds < 60_000_000:
        return f"{microseconds / 1_000_000:.1f} s"
    return duration(microseconds // 1_000_000)


def word(text: str) -> str:
    """The text as one word of a magic's line: quoted for our parser, to which `-x` alone is an
    option, and safe from IPython, which expands `{name}` everywhere and `$name` outside of single
    quotes."""
    quoted = shlex.quote(text)
    if quoted == text and text.startswith("-"):
        quoted = f"'{text}'"
    return quoted.replace("{", "{{").replace("}", "}}")
