"""A page in front of a kernel, as JupyterLab is one: it keeps what each cell shows, follows the
widgets' models, and sends clicks as comm messages, to a subshell where the kernel has them.

A cell counts as done when its reply is here too: ipykernel 7.0 to 7.3 lose a request that arrives
just as they send a reply (so says a comment in 7.4, which does not).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

PATIENCE = 60  # seconds without a word after which a kernel is taken to hang
VIEW = "application/vnd.jupyter.widget-view+json"
DISPLAYS = ("display_data", "execute_result", "update_display_data")


@dataclass
class Cell:
    """A cell that was sent, and what it shows by now."""

    source: str
    done: bool = False
    printed: str = ""
    errors: list[str] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def shown(self) -> list[dict[str, Any]]:
        """Its displays, but for those that were erased."""
        return [each for each in self.outputs if each]

    @property
    def text(self) -> str:
        """All that it shows to somebody who reads text."""
        return "\n".join([self.printed, *(str(each.get("text/plain", "")) for each in self.shown)])

    @property
    def views(self) -> list[str]:
        """The models of the widgets that it shows."""
        return [each[VIEW]["model_id"] for each in self.shown if VIEW in each]


class FrontEnd:
    """One kernel, and all that it has published."""

    def __init__(self, folder: Path, name: str = "python3", specs: Path | None = None) -> None:
        found = KernelSpecManager()
        if specs is not None:
            found.kernel_dirs = [str(specs / "kernels")]
        self.manager = KernelManager(kernel_name=name, kernel_spec_manager=found)
        self.manager.start_kernel(cwd=str(folder))
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE)
        self.models: dict[str, dict[str, Any]] = {}
        self.unseen: list[dict[str, Any]] = []
        """What was published for no cell: JupyterLab has it in its log console alone."""
        self._cells: dict[str, Cell] = {}
        self._displays: dict[str, list[tuple[Cell, int]]] = {}
        self._subshell = self._made_subshell()

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()

    def start(self, source: str) -> Cell:
        """Send a cell."""
        cell = Cell(source)
        self._cells[self.client.execute(source, allow_stdin=True)] = cell
        return cell

    def run(self, source: str) -> Cell:
        """Run a cell that must work, to its end."""
        cell = self.start(source)
        self.until(lambda: cell.done)
        assert not cell.errors, cell.errors
        return cell

    def until(self, holds: Callable[[], object]) -> None:
        """Listen until something holds."""
        while not holds():
            try:
                self._take(self.client.get_iopub_msg(timeout=PATIENCE))
            except Empty:
                raise AssertionError(f"the kernel says nothing: {self._cells}") from None

    def interrupt(self, cell: Cell) -> None:
        self.manager.interrupt_kernel()
        self.until(lambda: cell.done)

    def buttons(self, cell: Cell) -> dict[str, str]:
        """The buttons that a cell shows and that can be clicked: their models by their names."""
        models = ((name, self.models[name]) for view in cell.views for name in self._tree(view))
        return {
            model["description"]: name
            for name, model in models
            if model.get("_model_name") == "ButtonModel" and not model.get("disabled")
        }

    def click(self, cell: Cell, name: str) -> None:
        """Click once the button is there and can be clicked."""
        self.until(lambda: name in self.buttons(cell))
        self.press(self.buttons(cell)[name])

    def press(self, button: str) -> None:
        """What a click sends, whether or not the button is there by now."""
        self._tell(button, {"method": "custom", "content": {"event": "click"}})

    def type_note(self, cell: Cell, note: str) -> None:
        """Type into the cell's only field of text."""
        models = [name for view in cell.views for name in self._tree(view)]
        (text,) = [each for each in models if self.models[each]["_model_name"] == "TextModel"]
        self._tell(text, {"method": "update", "state": {"value": note}, "buffer_paths": []})

    def _tree(self, model: str) -> Iterator[str]:
        yield model
        for child in self.models[model].get("children", ()):
            yield from self._tree(child.removeprefix("IPY_MODEL_"))

    def _tell(self, model: str, data: dict[str, Any]) -> None:
        message = self.client.session.msg("comm_msg", {"comm_id": model, "data": data})
        if self._subshell is not None:
            message["header"]["subshell_id"] = self._subshell
        self.client.shell_channel.send(message)

    def _made_subshell(self) -> str | None:
        info = self.client.kernel_info(reply=True, timeout=PATIENCE)["content"]
        if "kernel subshells" not in info.get("supported_features", ()):
            return None
        control = self.client.control_channel
        control.send(self.client.session.msg("create_subshell_request"))
        made: str = control.get_msg(timeout=PATIENCE)["content"]["subshell_id"]
        return made

    def _take(self, message: dict[str, Any]) -> None:
        content, kind = message["content"], message["msg_type"]
        cell = self._cells.get(message["parent_header"].get("msg_id", ""))
        match kind:
            case "comm_open":
                self.models[content["comm_id"]] = dict(content["data"]["state"])
            case "comm_msg" if content["data"].get("method") == "update":
                self.models[content["comm_id"]].update(content["data"]["state"])
            case "update_display_data":
                for owner, at in self._displays[content["transient"]["display_id"]]:
                    owner.outputs[at] = content["data"]
            case "status" | "execute_input" | "comm_msg" | "comm_close":
                if cell is not None and content.get("execution_state") == "idle":
                    self._await_reply(message["parent_header"]["msg_id"])
                    cell.done = True
            case _ if cell is None:
                self.unseen.append({"type": kind, **content})
            case _:
                self._show(cell, kind, content)

    def _await_reply(self, request: str) -> None:
        reply = None
        while reply != request:
            reply = self.client.get_shell_msg(timeout=PATIENCE)["parent_header"].get("msg_id")

    def _show(self, cell: Cell, kind: str, content: dict[str, Any]) -> None:
        match kind:
            case "stream":
                cell.printed += content["text"]
            case "error":
                cell.errors.append(content["ename"])
            case "display_data" | "execute_result":
                if name := content.get("transient", {}).get("display_id"):
                    self._displays.setdefault(name, []).append((cell, len(cell.outputs)))
                cell.outputs.append(content["data"])
