"""The tree of errors: one root, all public, as `model/errors.py` draws it."""

from __future__ import annotations

import re

import durable_nb
from durable_nb.model import errors
from durable_nb.model.errors import DurableError

ALL = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, DurableError)
}


def test_every_error_has_the_one_root_and_is_public() -> None:
    assert len(ALL) > 20
    assert set(ALL) <= set(durable_nb.__all__)
    assert all(getattr(durable_nb, name) is kind for name, kind in ALL.items())
    assert all(kind.__doc__ for kind in ALL.values())


def test_the_drawing_at_the_top_is_the_tree() -> None:
    drawn = re.findall(r"^([│├└─ ]*)([A-Z]\w+)", errors.__doc__ or "", re.MULTILINE)
    names = {name for indent, name in drawn if indent or name == "DurableError"}
    assert names == set(ALL)
    depth = {
        name: len(kind.__mro__[: kind.__mro__.index(DurableError)]) for name, kind in ALL.items()
    }
    assert all(len(indent) // 4 == depth[name] for indent, name in drawn if name in ALL)


def test_an_error_is_one_line_in_a_notebook() -> None:
    assert DurableError("what; what next")._render_traceback_() == [
        "\x1b[31mDurableError\x1b[0m: what; what next"
    ]
