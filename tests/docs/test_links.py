"""What a page of ours links to is there: files, folders and headings. Elsewhere is not asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from tests.docs.outputs import NOTEBOOKS

CHECKOUT = NOTEBOOKS.parent
PAGES = [
    CHECKOUT / "README.md",
    *sorted(NOTEBOOKS.rglob("*.md")),
    *sorted(NOTEBOOKS.glob("*.ipynb")),
]
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    """A page's Markdown without what stands there as code."""
    if page.suffix == ".md":
        return CODE.sub("", page.read_text())
    cells = nbformat.read(page, as_version=4).cells
    return CODE.sub("", "\n\n".join(c.source for c in cells if c.cell_type == "markdown"))


def headings(page: Path) -> Iterator[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = page.read_text() if page.suffix == ".md" else prose(page)
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(CHECKOUT).as_posix())
def test_every_link_to_a_file_or_a_heading_of_ours_leads_there(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        if ":" in link:
            continue  # a page elsewhere
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in headings(target), link


def test_there_are_links_to_look_at() -> None:
    assert any(LINK.search(prose(page)) for page in PAGES[:1])
