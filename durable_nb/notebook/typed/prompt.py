"""A cell's body as a prompt: its holes filled, and the run's id made of it. And a line's holes."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TypeAlias

from durable_nb.model.errors import InvalidInput

Marks: TypeAlias = tuple[str, str]

BODY: Marks = ("{{", "}}")
LINE: Marks = ("{", "}")


def fill(body: str, names: Mapping[str, object]) -> str:
    """The body with each `{{ expression }}` replaced by its value's text; all else as it is.

    Raises `InvalidInput` for a hole that is not Python, or that raises.
    """
    return _filled(body, names, BODY).strip()


def fill_line(line: str, names: Mapping[str, object]) -> str:
    """A line of `%%durable` with what IPython leaves of `{{ expression }}` there filled, too: it has
    taken one pair of braces away by then. A name that it does not know is an error here."""
    return _filled(line, names, LINE)


def _filled(text: str, names: Mapping[str, object], marks: Marks) -> str:
    before, opened, after = text.partition(marks[0])
    filled = [before]
    while opened:
        expression, after = _hole(after, marks)
        filled.append(_value(expression, names, marks))
        before, opened, after = after.partition(marks[0])
        filled.append(before)
    return "".join(filled)


def automatic_id(agent: str, prompt: str) -> str:
    """Same agent, same prompt, same run."""
    text = f"{agent}\0{prompt}".encode("utf-8", "surrogatepass")
    return f"{agent}-{sha256(text).hexdigest()[:8]}"


def _value(expression: str, names: Mapping[str, object], marks: Marks) -> str:
    try:
        return str(eval(expression, dict(names)))  # the user's own code and kernel
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise InvalidInput(
            f"the hole {_marked(expression, marks)}: {what}; nothing was run"
        ) from error


def _hole(text: str, marks: Marks) -> tuple[str, str]:
    """The expression that `text` begins with, and what follows its closing mark. An expression may
    hold braces itself, so it ends at the first mark that leaves it whole."""
    opening, close = marks
    end = text.find(close)
    shortest = (text[:end] if end >= 0 else text[:40]).strip()
    while end >= 0:
        expression = text[:end].strip()
        if _is_python(expression):
            return expression, text[end + len(close) :]
        end = text.find(close, end + 1)
    literally = f"to write {opening} as text, write {_marked(repr(opening), marks)}"
    if close not in text:
        raise InvalidInput(
            f"the hole {opening} {shortest} is not closed by {close}; close it, or, {literally}"
        )
    raise InvalidInput(
        f"the hole {_marked(shortest, marks)} is not a Python expression; {literally}"
    )


def _marked(expression: str, marks: Marks) -> str:
    return f"{marks[0]} {expression} {marks[1]}"


def _is_python(expression: str) -> bool:
    try:
        compile(expression, "<prompt>", "eval")
    except (SyntaxError, ValueError):
        return False
    return True
