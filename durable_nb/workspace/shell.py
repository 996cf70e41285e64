"""`bash`: a command in a directory, bounded in time and output. It is not confined in any way.

The command is run by a warden, a process of its own that ends whatever the command started: when
the command is over, when its time is, and when this process is gone.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

KEPT = 16_000  # bytes of each end of each stream
MAX_COMMAND = 100_000  # bytes

# Of the environment, what is harmless: no list of secrets is ever complete.
PASSED_ON = frozenset(
    [
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ"),
        *("LANG", "LANGUAGE", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES"),
        *("LC_MONETARY", "LC_NUMERIC", "LC_TIME"),
    ]
)

_WARDEN = str(Path(__file__).with_name("warden.py"))


def bash(directory: str, command: str, seconds: int) -> str:
    """Run a command, and say how it ended and what it wrote."""
    _check(command)
    job = {
        "command": command,
        "shell": _shell(),
        "seconds": seconds,
        "keep": KEPT,
        "asked_by": os.getpid(),
    }
    return _told(_watched(directory, job), seconds)


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """What a command sees of an environment."""
    return {name: value for name, value in environment.items() if name in PASSED_ON}


def _watched(directory: str, job: Mapping[str, object]) -> dict[str, Any]:
    """The warden's report. Whatever ends the waiting ends the command first."""
    with _warden(directory) as warden:
        assert warden.stdin is not None
        assert warden.stdout is not None
        try:
            warden.stdin.write(json.dumps(job).encode() + b"\n")
            warden.stdin.flush()
            answer = warden.stdout.read()
        finally:
            warden.stdin.close()  # the lifeline
            warden.wait()
    if not answer:
        raise RuntimeError(
            "the process that watches over the command was killed, so what became of the command "
            "is not known, and what it started may still run; look before you go on"
        )
    report: dict[str, Any] = json.loads(answer)
    return report


def _warden(directory: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", _WARDEN],
        cwd=directory,
        env=passed_on(os.environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


def _told(report: Mapping[str, Any], seconds: int) -> str:
    """A report as text for the model."""
    out, err = (_stream(*parts) for parts in report["streams"])
    code, left = report["code"], report["left"]
    notes = [f"[stderr]\n{err}"] if err else []
    if code is None:
        notes.append(f"[killed with all it had started: not over after {seconds} s]")
    else:
        notes.append(f"[exit code {code}]" if code >= 0 else f"[killed by signal {-code}]")
    if left and code is not None:
        notes.append(f"[{left} of its processes still ran and were ended]")
    return "\n".join([out.removesuffix("\n"), *notes] if out else notes)


def _stream(head: str, cut: int, tail: str) -> str:
    first, last = (part.encode("latin-1").decode("utf-8", "replace") for part in (head, tail))
    return f"{first}\n[… {cut:,} bytes cut …]\n{last}" if cut else first + last


def _check(command: str) -> None:
    size = len(command.encode())
    if not command.strip() or "\0" in command or size > MAX_COMMAND:
        raise ValueError(
            f"a command is text without NUL, of at most {MAX_COMMAND:,} bytes; this one has {size:,}. "
            "Write a longer one to a file and run that"
        )


def _shell() -> str:
    shell = shutil.which("bash")
    if shell is None:
        raise FileNotFoundError("there is no bash on this machine")
    return shell
