"""The state of the world: a file that each side effect appends a line to."""

from __future__ import annotations

import os
from pathlib import Path


class Ledger:
    """One line an effect. A line is written by one `write`, so processes never mix theirs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, line: object) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{line}\n".encode())
        os.close(descriptor)

    @property
    def lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []
