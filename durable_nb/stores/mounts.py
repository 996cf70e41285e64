"""Whether a file is on a network, where SQLite's write-ahead log does not work (DESIGN section 7)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePath

NETWORK = frozenset(
    [
        "9p",
        "afs",
        "ceph",
        "cifs",
        "davfs",
        "fuse.glusterfs",
        "fuse.s3fs",
        "fuse.sshfs",
        "gfs2",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "smb3",
        "smbfs",
    ]
)


def network_file_system(path: Path) -> str | None:
    """The kind of the network file system that holds `path`; None for a local one, and where the
    system does not tell."""
    try:
        table = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    kind = kind_of(path.resolve(), table.splitlines())
    return kind if kind in NETWORK else None


def kind_of(path: PurePath, mounts: Iterable[str]) -> str | None:
    """The file system type of the deepest mount point above `path`; of several there, the last."""
    found: tuple[int, str] | None = None
    for line in mounts:
        _, place, kind, *_ = line.split()
        mount = PurePath(place.replace("\\040", " "))
        if path.is_relative_to(mount) and (found is None or len(mount.parts) >= found[0]):
            found = len(mount.parts), kind
    return None if found is None else found[1]
