"""Environments that differ from this one in their ipykernel alone.

Each is a venv without packages that looks for what it lacks in this one, so that making it takes
seconds. They are kept between sessions, one a version and interpreter.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from hashlib import sha256
from pathlib import Path

import pytest

OLDER = ("6.31.0", "7.3.0")


def kernel(version: str, cache: Path) -> Path:
    """A folder to look for kernels in: it has the kernel `ipykernel-VERSION`.

    Where it cannot be installed this is a skip here, and a failure in CI.
    """
    folder = cache / f"ipykernel-{version}-{_key()}"
    if not folder.exists():
        try:
            _make(version, folder)
        except subprocess.CalledProcessError as error:
            shutil.rmtree(folder, ignore_errors=True)
            _cannot(f"ipykernel {version} could not be installed: {error.stderr}")
    return folder


def _key() -> str:
    """Which interpreter and packages this environment stands for."""
    return sha256(f"{sys.prefix} {sys.version}".encode()).hexdigest()[:8]


def _make(version: str, folder: Path) -> None:
    place = folder / "environment"
    venv.create(place, symlinks=True)
    python = place / "bin" / "python"
    (packages,) = place.glob("lib/*/site-packages")
    ours = sysconfig.get_path("purelib")
    (packages / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet",
         "--disable-pip-version-check", f"ipykernel=={version}"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    spec = folder / "kernels" / f"ipykernel-{version}" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps(_spec(version, python)))


def _spec(version: str, python: Path) -> dict[str, object]:
    launch = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    return {
        "argv": [*launch, "--HistoryManager.enabled=False"],
        "display_name": f"Python, ipykernel {version}",
        "language": "python",
        "env": {"PYTHONPATH": ""},  # what is there would come before the environment's own
    }


def _cannot(why: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)
