"""Keys live in the environment. Whatever a provider says goes through here before anybody reads it.

A key that is echoed back, in an error or elsewhere, is replaced by the name of its variable.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|AUTH(?!OR(?!I))", re.IGNORECASE)
_PLACE = re.compile(r"(?:/|\./|~|https?://[^@]*$)")  # a path or an address, often in errors
_WITH_PASSWORD = re.compile(r"\w+://[^/@\s]+@")
_SHORTEST = 6  # characters; what is shorter hides nothing and would be replaced inside of words


def scrubbed(text: str, more: Iterable[str] = ()) -> str:
    """The text without the values of the environment's keys, nor those of `more`."""
    known = {value: f"[{name}]" for name, value in _keys(os.environ)}
    known |= {value: "[key]" for value in more if len(value) >= _SHORTEST and value not in known}
    for value in sorted(known, key=len, reverse=True):  # one key may begin another
        for form in _forms(value):
            if len(form) >= _SHORTEST:  # blanks around a key may be most of it
                text = text.replace(form, known[value])
    return text


def _forms(value: str) -> Iterator[str]:
    """How a key may be echoed: as it is, in Python, in JSON, in Base64, in an address."""
    yield from (value, value.strip(), repr(value)[1:-1])
    yield from (json.dumps(value)[1:-1], value.replace("/", r"\/"))
    raw = os.fsencode(value)
    yield b64encode(raw).decode()
    for quoted in (quote(raw), quote(raw, safe="")):
        yield quoted
        yield re.sub("%..", lambda digits: digits[0].lower(), quoted)


def _keys(environment: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    for name, value in environment.items():
        named_so = _SECRET_NAME.search(name) and not _PLACE.match(value)
        if len(value) >= _SHORTEST and (named_so or _WITH_PASSWORD.match(value)):
            yield name, value
