"""Who a process is to others of its machine, so that its death can be proved (DESIGN section 7)."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A process among all that ever were: the same pid later has another `started`."""

    host: str
    boot: str
    namespace: str
    pid: int
    started: str

    @classmethod
    def this(cls) -> Process:
        pid = os.getpid()
        boot, namespace = _machine()
        return cls(socket.gethostname(), boot, namespace, pid, _started(pid))

    def is_gone(self) -> bool:
        """Whether it is certain, from here, that this process has ended."""
        here = bool(self.boot) and (self.boot, self.namespace) == _machine()
        return here and _started(self.pid) != self.started


def _machine() -> tuple[str, str]:
    """This boot of this machine, and the pid namespace; empty where the system does not tell."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return boot, os.readlink(_PROC / "self/ns/pid")
    except OSError:
        return "", ""


def _started(pid: int) -> str:
    """When the process started, in the kernel's ticks; empty if there is none of that pid."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]
