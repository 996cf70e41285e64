"""How cells behave where nobody says so in the cell, and who decides it.

The first of these that says anything: an option of the cell; `%config DurableMagics.NAME = VALUE`;
the environment, `DURABLE_NB_NAME`; `NAME` in `[tool.durable_nb]` of the nearest pyproject.toml; the
default here. A value that cannot be used is an `InvalidInput` that says where it stands.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from durable_nb.core.near import did_you_mean
from durable_nb.model.errors import InvalidInput
from durable_nb.stores.project import project

POLICIES = ("continue", "stop", "wait")

_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing to decide. `read` raises `ValueError` for what is no such value; `takes` says what
    is, and `spoken` what the default means."""

    name: str
    does: str
    takes: str
    read: Callable[[object], object]
    default: object = None
    spoken: str = ""

    @property
    def meaning(self) -> str:
        """What it decides, what it takes, and what holds if nobody says anything."""
        default = self.spoken or str(self.default).lower()
        return f"{self.does}: {self.takes} (default: {default})"


@dataclass(frozen=True, slots=True)
class Decided:
    """What holds for one cell. `headless` None: nobody said whether somebody is there."""

    on_pause: str
    timeout: float | None
    quiet: bool
    headless: bool | None
    live: bool


def policy(value: object) -> str:
    """What happens at a pause."""
    if value not in POLICIES:
        raise ValueError(value)
    return str(value)


def seconds(value: object) -> float:
    """A length of time to wait for."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(value)
    try:
        number = float(value)
    except OverflowError as error:  # an int of hundreds of digits
        raise ValueError(value) from error
    if not 0 < number < float("inf"):
        raise ValueError(value)
    return number


def switch(value: object) -> bool:
    """Yes or no, also in the words of an environment variable."""
    word = str(value).lower()
    if word not in (*_YES, *_NO):
        raise ValueError(value)
    return word in _YES


def _place(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(value)
    return value


SETTINGS: Mapping[str, Setting] = {
    each.name: each
    for each in (
        Setting(
            "on_pause",
            "what a cell does where a person has to decide",
            "continue, stop or wait",
            policy,
            "continue",
        ),
        Setting(
            "timeout",
            "seconds that a cell waits where on_pause is wait",
            "a number of seconds above 0",
            seconds,
            spoken="none",
        ),
        Setting(
            "quiet",
            "no card, unless somebody has to decide",
            "true or false",
            switch,
            default=False,
        ),
        Setting(
            "headless",
            "nobody is there to click: no buttons, nothing live",
            "true or false",
            switch,
            spoken="where the kernel's user cannot be asked",
        ),
        Setting(
            "live", "a card follows its run while it goes on", "true or false", switch, default=True
        ),
        Setting(
            "store",
            "the store in use; %durable use chooses another",
            "a path or a postgresql:// address",
            _place,
            spoken=".durable/runs.sqlite3",
        ),
    )
}


def decided(configured: Callable[[str], object], **options: object) -> Decided:
    """What holds, from a cell's options and from all that decide where it has none.

    `configured` says what `%config` has for a name, or None. Raises `InvalidInput`.
    """
    _check_names()
    found = {name: _value(each, options.get(name), configured) for name, each in SETTINGS.items()}
    del found["store"]  # `stores.open` looks that up, for whoever is not in a notebook, too
    return Decided(**found)


def checked(name: str, value: object) -> object:
    """What `%config` is told, as it is. Raises `InvalidInput` for what cannot be used."""
    setting = SETTINGS[name]
    try:
        if value is not None:
            setting.read(value)
    except ValueError as error:
        raise InvalidInput(
            f"%config DurableMagics.{name} takes {setting.takes}, not {value!r}; it stays as it was"
        ) from error
    return value


def _value(setting: Setting, option: object, configured: Callable[[str], object]) -> Any:
    if option is not None:
        return option
    for value, where in _said(setting.name, configured):
        try:
            return setting.read(value)
        except ValueError as error:
            raise InvalidInput(
                f"{where} is {value!r}, and {setting.name} takes {setting.takes}; change it there"
            ) from error
    return setting.default


def _said(name: str, configured: Callable[[str], object]) -> Iterator[tuple[object, str]]:
    """What each says that decides, the mightiest first, and where that stands."""
    if (value := configured(name)) is not None:
        yield value, f"%config DurableMagics.{name}"
    variable = f"DURABLE_NB_{name.upper()}"
    if text := os.environ.get(variable):
        yield text, f"the environment's {variable}"
    found = project()
    if found is not None and name in found.said:
        yield found.said[name], found.where(name)


def _check_names() -> None:
    """A project that decides what there is not to decide has misspelt something."""
    found = project()
    if found is None:
        return
    for name in found.said:
        if name not in SETTINGS:
            raise InvalidInput(
                f"{found.where(name)}: there is no such setting{did_you_mean(name, SETTINGS)}; "
                f"there are {', '.join(SETTINGS)}"
            )
