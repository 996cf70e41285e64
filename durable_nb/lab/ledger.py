"""`Ledger`: what a tool did to the world, a line an effect."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

INSTEAD = "DURABLE_NB_LEDGERS"
"""Names the folder that holds all ledgers of this process and of those that it starts."""


class Ledger:
    """A file that tools note their effects in, for teaching and for `lab.crash_matrix`.

    Each line is written by one call of the system, so that processes never mix theirs and a line
    that was written outlives SIGKILL. In a child of a crash matrix it is a file of that kill's own.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    def __call__(self) -> list[str]:
        return self.lines

    def add(self, effect: object) -> None:
        """Note one effect. Line breaks in it show as spaces."""
        line = " ".join(str(effect).splitlines())
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(descriptor, f"{line}\n".encode())
        finally:
            os.close(descriptor)

    @property
    def lines(self) -> list[str]:
        """What has been noted, oldest first."""
        try:
            return self._file.read_text("utf-8", "replace").splitlines()
        except FileNotFoundError:
            return []

    @property
    def _file(self) -> Path:
        folder = os.environ.get(INSTEAD)
        if folder is None:
            return self.path
        digest = hashlib.blake2b(os.fsencode(self.path.parent), digest_size=4).hexdigest()
        return Path(folder, f"{digest} {self.path.name}")


def noted(folder: Path) -> list[str]:
    """What the ledgers of a folder hold, each line under its ledger's name."""
    return [
        f"{path.name.partition(' ')[2]}: {line}"
        for path in sorted(folder.iterdir())
        for line in path.read_text("utf-8", "replace").splitlines()
    ]
