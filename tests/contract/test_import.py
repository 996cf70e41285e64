"""`import durable_nb` opens nothing and loads nothing that costs (DESIGN section 5)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import durable_nb

HEAVY = {
    "IPython",
    "asyncio",
    "duckdb",
    "filelock",
    "ipywidgets",
    "pandas",
    "pydantic",
    "pydantic_core",
    "sqlite3",
}


def test_importing_the_package_opens_nothing_and_loads_no_dependency(tmp_path: Path) -> None:
    script = "import sys, durable_nb; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "durable_nb" in ran.stdout.split()
    assert HEAVY & set(ran.stdout.split()) == set()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [n for n in durable_nb.__all__ if n not in ("lab", "views")])
def test_every_public_name_resolves_and_is_documented(name: str) -> None:
    assert getattr(durable_nb, name).__doc__
    assert name in dir(durable_nb)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nowhere'"):
        durable_nb.nowhere  # noqa: B018
