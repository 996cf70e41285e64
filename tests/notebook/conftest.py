"""A notebook in the process: a real shell, and what its cells show in the end."""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from durable_nb import Agent, Checkpointer, ScriptedModel, Tool, call, interrupt
from durable_nb.stores.open import _opened as opened
from durable_nb.stores.open import default_store, use_store
from tests.support.ledger import Ledger

ANSWER = "Refund for order 1042 is on its way."


@dataclass
class Ran:
    """One cell that ran: its value, what it printed, its error, and its own displays."""

    value: Any
    printed: str
    error: BaseException | None
    screen: dict[str, dict[str, str]]
    ids: list[str] = field(default_factory=list)

    @property
    def shown(self) -> list[dict[str, str]]:
        """What this cell shows now: later updates included, erased displays left out."""
        return [self.screen[each] for each in self.ids if self.screen[each]]

    @property
    def card(self) -> str:
        """The text of this cell's only card."""
        (card,) = [each["text/plain"] for each in self.shown if "text/html" in each]
        return card

    @property
    def buttons(self) -> list[dict[str, str]]:
        return [each for each in self.shown if any("widget-view" in kind for kind in each)]


class Notebook:
    """Cells one after the other, in a shell of their own."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.screen: dict[str, dict[str, str]] = {}
        self.names = shell.user_ns

    def __call__(self, source: str) -> Ran:
        with capture_output() as captured:
            result = self.shell.run_cell(source, store_history=True)
        error = result.error_in_exec or result.error_before_exec
        ran = Ran(result.result, captured.stdout, error, self.screen)
        for output in captured.outputs:
            self._take(output, ran)
        return ran

    def _take(self, output: Any, ran: Ran) -> None:
        name = (output.transient or {}).get("display_id") or f"anonymous {len(self.screen)}"
        if not output.update:
            ran.ids.append(name)
        self.screen[name] = output.data

    def while_capturing(self, act: Callable[[], object]) -> None:
        """Do something between two cells, as a click does."""
        with capture_output() as captured:
            act()
        for output in captured.outputs:
            self._take(output, Ran(None, "", None, self.screen))


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    """A shell with the extension loaded, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=config)
    notebook = Notebook(shell)
    notebook("%load_ext durable_nb")
    yield notebook
    use_store(None)
    close_all()
    shell.history_manager.end_session()
    atexit.unregister(shell.atexit_operations)  # else each shell collects garbage at the very end
    InteractiveShell.clear_instance()


@pytest.fixture
def store(notebook: Notebook) -> Checkpointer:
    """The store that the notebook uses."""
    return default_store()


@pytest.fixture
def bot(notebook: Notebook, effects: Ledger) -> Agent:
    """The variable `bot`: an agent named refund-bot that asks a person above 100."""

    def refund(order: str, amount: int) -> str:
        """Pay an order back."""
        if amount > 100:
            context = {"order": order, "amount": amount}
            if not interrupt("manager_approval", context).approved:
                return "not paid"
        effects.add(f"{order} {amount}")
        return "paid"

    llm = ScriptedModel([call("refund", order="1042", amount=500), ANSWER])
    agent = notebook.names["bot"] = Agent("refund-bot", llm, [refund])
    return agent


def close_all() -> None:
    """Close what this process has opened by path: it would hold three files for each test."""
    for store in opened.values():
        store.close()
    opened.clear()


def eventually(holds: Callable[[], object], seconds: float = 30) -> None:
    """Wait until something that happens elsewhere has happened."""
    give_up = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < give_up, "it never happened"
        time.sleep(0.02)


def wire_of(effects: Ledger, *, dies: bool) -> Tool:
    """A tool that pays, or dies before it does; what became of it is asked of a person."""

    def wire(amount: int) -> str:
        """Send money."""
        if dies:
            raise KeyboardInterrupt
        effects.add(f"wired {amount}")
        return "sent"

    return Tool(wire, on_crash="ask", source="def wire(amount): ...")
