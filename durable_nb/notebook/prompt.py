"""A cell's body as a prompt: its holes filled, and the run's id made of it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from durable_nb.model.errors import InvalidInput

OPEN, CLOSE = "{{", "}}"


def fill(body: str, names: Mapping[str, object]) -> str:
    """The body with each `{{ expression }}` replaced by its value's text; all else as it is.

    Raises `InvalidInput` for a hole that is not Python, or that raises.
    """
    before, opened, after = body.partition(OPEN)
    filled = [before]
    while opened:
        expression, after = _hole(after)
        filled.append(_value(expression, names))
        before, opened, after = after.partition(OPEN)
        filled.append(before)
    return "".join(filled).strip()


def automatic_id(agent: str, prompt: str) -> str:
    """Same agent, same prompt, same run."""
    text = f"{agent}\0{prompt}".encode("utf-8", "surrogatepass")
    return f"{agent}-{sha256(text).hexdigest()[:8]}"


def _value(expression: str, names: Mapping[str, object]) -> str:
    try:
        return str(eval(expression, dict(names)))  # the user's own code and kernel
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise InvalidInput(f"the hole {{{{ {expression} }}}}: {what}; nothing was run") from error


def _hole(text: str) -> tuple[str, str]:
    """The expression that `text` begins with, and what follows its `}}`. An expression may hold
    braces itself, so it ends at the first `}}` that leaves it whole."""
    end = text.find(CLOSE)
    shortest = text[: max(end, 0)].strip()
    while end >= 0:
        expression = text[:end].strip()
        if _is_python(expression):
            return expression, text[end + len(CLOSE) :]
        end = text.find(CLOSE, end + 1)
    raise InvalidInput(
        f"the hole {{{{ {shortest or text[:40].strip()} }}}} of the prompt is not a Python "
        "expression; to write two braces as text, use {{ '{{' }}"
    )


def _is_python(expression: str) -> bool:
    try:
        compile(expression, "<prompt>", "eval")
    except (SyntaxError, ValueError):
        return False
    return True
