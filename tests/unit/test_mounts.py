"""A store on a network is told from one on a disk by the deepest mount above it."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from durable_nb.stores.mounts import NETWORK, kind_of, network_file_system

MOUNTS = [
    "/dev/vda / ext4 rw 0 0",
    "server:/home /home nfs4 rw 0 0",
    "/dev/vdb /home/ann/local ext4 rw 0 0",
    "//nas/share /mnt/my\\040share cifs rw 0 0",
    "tmpfs /tmp tmpfs rw 0 0",
    "overlay /tmp overlay rw 0 0",
]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/runs.sqlite3", "ext4"),
        ("/home/ann/runs.sqlite3", "nfs4"),
        ("/homes/runs.sqlite3", "ext4"),
        ("/home/ann/local/runs.sqlite3", "ext4"),
        ("/mnt/my share/runs.sqlite3", "cifs"),
        ("/tmp/runs.sqlite3", "overlay"),
    ],
)
def test_the_deepest_mount_decides(path: str, kind: str) -> None:
    assert kind_of(PurePosixPath(path), MOUNTS) == kind


def test_no_mount_is_no_network() -> None:
    assert kind_of(PurePosixPath("/x"), []) is None
    assert {"nfs", "nfs4", "cifs", "fuse.sshfs"} <= NETWORK
    assert not {"ext4", "overlay", "tmpfs", "xfs", "btrfs", "fuse"} & NETWORK


def test_a_system_that_does_not_tell_has_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise OSError

    monkeypatch.setattr(Path, "read_text", refuse)
    assert network_file_system(Path("runs.sqlite3")) is None
