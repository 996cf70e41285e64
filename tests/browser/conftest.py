"""JupyterLab and Notebook 7 as a reader has them: one server for both, and Chromium in front of it.

Each journey has a folder, a kernel and a browser context of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
SETTINGS = {
    "notebook-extension/tracker": {"autoStartDefaultKernel": True},
    "apputils-extension/notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
}
TOKEN = "e2e"
READY = """async () => {
  const app = window.jupyterapp;
  await app.restored;
  let panel;
  for (;;) {
    panel = app.shell.currentWidget;
    if (panel && panel.sessionContext && panel.content) break;
    await new Promise(r => setTimeout(r, 50));
  }
  await panel.context.ready;
  await panel.sessionContext.ready;
  await panel.sessionContext.session.kernel.info;
}"""


def chromium() -> str:
    """The browser's path. Without one this is a skip here, and a failure in CI."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    if os.environ.get("CI"):
        pytest.fail("no Chromium: CI has to install one (apt-get install chromium)")
    pytest.skip("no Chromium on this machine: the browser journey was not tried")


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, headless=True, args=CHROMIUM_FLAGS
        )
        yield browser
        browser.close()


@pytest.fixture
def new_page(browser: Any) -> Iterator[Callable[[], Any]]:
    """Opens another tab."""
    context = browser.new_context(viewport={"width": 1100, "height": 900})
    context.set_default_timeout(60_000)
    yield context.new_page
    context.close()


@pytest.fixture
def page(new_page: Callable[[], Any]) -> Any:
    """An empty page."""
    return new_page()


class Lab:
    """A Jupyter server over a folder, with settings and caches of its own."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.port = _free_port()
        places = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
        dirs = {name: str(home / name.lower()) for name in places}
        _write_settings(Path(dirs["JUPYTER_CONFIG_DIR"]))
        self.log = (home / "server.log").open("w")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root",
             "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={self.port}",
             "--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}",
             f"--ServerApp.root_dir={folder}", "--LabApp.expose_app_in_browser=True",
             "--JupyterNotebookApp.expose_app_in_browser=True",
             "--LabApp.extension_manager=readonly"],
            env={**os.environ, **dirs}, cwd=folder, stdout=self.log, stderr=self.log,
        )  # fmt: skip

    def wait(self) -> None:
        give_up = time.monotonic() + 90
        while not self._answers():
            assert self.process.poll() is None, Path(self.log.name).read_text()
            assert time.monotonic() < give_up, Path(self.log.name).read_text()
            time.sleep(0.2)

    def url(self, path: Path, app: str) -> str:
        """Where the app, `lab` or `notebook`, shows the file."""
        name = path.relative_to(self.folder).as_posix()
        page = f"lab/tree/{name}?reset&" if app == "lab" else f"notebooks/{name}?"
        return f"http://127.0.0.1:{self.port}/{page}token={TOKEN}"

    def close(self) -> None:
        self.process.terminate()  # it shuts its kernels down
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:  # on a busy machine it may wait for a kernel for long
            self.process.kill()
            self.process.wait(20)
        self.log.close()

    def _answers(self) -> bool:
        status = f"http://127.0.0.1:{self.port}/api/status?token={TOKEN}"
        try:
            with urllib.request.urlopen(status, timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A running server over an empty folder."""
    chromium()
    lab = Lab(tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("home"))
    try:
        lab.wait()
        yield lab
    finally:
        lab.close()


@pytest.fixture
def folder(lab: Lab) -> Path:
    """A folder of the journey's own, under the server's."""
    return Path(tempfile.mkdtemp(dir=lab.folder))


class Book:
    """A notebook that is open in a page."""

    def __init__(self, page: Any, lab: Lab, path: Path, app: str = "lab") -> None:
        self.page = page
        self._url = lab.url(path, app)
        self.path = path
        self.open()

    def open(self) -> None:
        self.page.goto(self._url)
        self.page.wait_for_selector(".jp-Notebook .jp-Cell")
        self.page.wait_for_function("() => window.jupyterapp !== undefined")
        self.page.evaluate(READY)

    def run_all(self) -> None:
        self.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells') }")

    def run(self, cell: int) -> None:
        """Run one cell to its end."""
        self.page.evaluate(
            "async n => { const c = window.jupyterapp.shell.currentWidget.content; "
            "c.activeCellIndex = n; c.deselectAll(); "
            "await window.jupyterapp.commands.execute('notebook:run-cell') }",
            cell,
        )

    def interrupt(self) -> None:
        """Interrupt the kernel, and wait until it is idle: what is sent before that it drops."""
        self.page.evaluate(
            "async () => { await window.jupyterapp.shell.currentWidget.sessionContext"
            ".session.kernel.interrupt() }"
        )
        self.page.wait_for_function(
            "() => window.jupyterapp.shell.currentWidget.sessionContext"
            ".session.kernel.status === 'idle'"
        )

    def restart(self) -> None:
        self.page.evaluate(
            "async () => { const c = window.jupyterapp.shell.currentWidget.sessionContext; "
            "await c.session.kernel.restart(); await c.session.kernel.info }"
        )

    def outputs(self, cell: int) -> list[dict[str, Any]]:
        """What the cell's model holds now."""
        found: list[dict[str, Any]] = self.page.evaluate(
            "n => window.jupyterapp.shell.currentWidget.content.widgets[n].model.outputs.toJSON()",
            cell,
        )
        return found

    def text(self, cell: int) -> str:
        return "\n".join(
            "".join(each.get("text", "")) + "".join(each.get("data", {}).get("text/plain", ""))
            for each in self.outputs(cell)
        )

    def until(self, cell: int, said: str) -> None:
        """Wait until a cell's outputs say something."""
        give_up = time.monotonic() + 60
        while said not in self.text(cell):
            assert time.monotonic() < give_up, self.outputs(cell)
            self.page.wait_for_timeout(50)

    def shown(self, cell: int) -> Any:
        """What a cell shows, as people and screen readers find it."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(cell).locator(".jp-OutputArea")

    def button(self, cell: int, name: str) -> Any:
        return self.shown(cell).get_by_role("button", name=name, exact=True)

    def saved(self) -> dict[str, Any]:
        self.page.evaluate(
            "async () => { await window.jupyterapp.commands.execute('docmanager:save') }"
        )
        saved: dict[str, Any] = json.loads(self.path.read_text())
        return saved


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _write_settings(config: Path) -> None:
    for name, values in SETTINGS.items():
        path = config / "lab" / "user-settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
