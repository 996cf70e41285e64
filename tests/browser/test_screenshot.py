"""The README's picture is of a real JupyterLab, and can be taken again."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Lab
from tests.docs.screenshot import PICTURE, take


def size(picture: Path) -> tuple[int, int]:
    """Width and height as the file's head has them."""
    head = picture.read_bytes()[:24]
    assert head.startswith(b"\x89PNG\r\n\x1a\n"), head
    width, height = struct.unpack(">II", head[16:])
    return width, height


@pytest.mark.timeout(200)
def test_the_picture_can_be_taken_again_and_shows_a_card_of_the_same_shape(
    new_page: Callable[[], Any], lab: Lab, folder: Path, tmp_path: Path
) -> None:
    page = new_page()
    take(page, lab, folder, tmp_path / "card.png")
    width, height = size(tmp_path / "card.png")
    kept_width, kept_height = size(PICTURE)
    assert width / height == pytest.approx(kept_width / kept_height, rel=0.15)
