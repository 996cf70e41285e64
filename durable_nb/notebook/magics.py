"""The magics. Each parses its line, calls one function and returns an object."""

from __future__ import annotations

from argparse import Namespace
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from IPython.core.magic import Magics, cell_magic, line_cell_magic, magics_class
from traitlets import Bool, Enum, Float

from durable_nb.model.errors import InvalidInput
from durable_nb.notebook import parse
from durable_nb.notebook.screen import Screen

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from durable_nb.notebook.desk import Desk
    from durable_nb.notebook.handle import Handle

T = TypeVar("T")

OURS = ("durable_nb.notebook", "durable_nb.runtime")


def past_our_frames(trace: TracebackType | None) -> TracebackType | None:
    """What of a traceback is the user's: from the model or tool on that raised."""
    inner = trace
    while inner is not None and inner.tb_frame.f_globals.get("__name__", "").startswith(OURS):
        inner = inner.tb_next
    return inner or trace


@magics_class
class DurableMagics(Magics):
    """`%durable`, `%%durable` and `%%durable_sql`."""

    on_pause = Enum(
        parse.POLICIES,
        default_value="continue",
        help="Where a person has to decide: continue with the next cell, stop, or wait.",
    ).tag(config=True)
    timeout = Float(
        None, allow_none=True, help="Seconds that a cell waits where on_pause is 'wait'."
    ).tag(config=True)
    buttons = Bool(
        None, allow_none=True, help="Show buttons; None: where somebody seems to be there."
    ).tag(config=True)

    _desk: Desk | None = None

    @property
    def desk(self) -> Desk:
        from durable_nb.notebook.desk import Desk

        if self._desk is None:
            shell = cast("InteractiveShell", self.shell)
            self._desk = Desk(shell.user_ns, Screen(shell, lambda: self.buttons))
        return self._desk

    @line_cell_magic
    def durable(self, line: str, cell: str | None = None) -> object:
        """Run an agent on a prompt, or look at runs: see `%%durable --help`, `%durable --help`."""
        try:
            return self._look(line) if cell is None else self._run(line, cell)
        except parse.HelpAsked as asked:
            print(asked)  # noqa: T201  # asked for
            return None
        except BaseException as error:
            error.__traceback__ = past_our_frames(error.__traceback__)
            raise

    @cell_magic
    def durable_sql(self, line: str, cell: str) -> object:
        """Query runs with DuckDB: see `%%durable_sql --help`."""
        try:
            return self._query(parse.sql_line(line), cell)
        except parse.HelpAsked as asked:
            print(asked)  # noqa: T201  # asked for
            return None

    def _run(self, line: str, cell: str) -> Handle:
        from durable_nb.notebook.cell import run_cell

        parsed = parse.run_line(line)
        parsed.on_pause = parsed.on_pause or self.on_pause
        parsed.timeout = parsed.timeout or self.timeout
        handle = run_cell(self.desk, parsed, cell, cell=self._cell_id())
        return self._named(parsed.name, handle)

    def _look(self, line: str) -> object:
        from durable_nb.notebook.commands import COMMANDS
        from durable_nb.notebook.hints import hinting

        parsed = parse.command_line(line)
        with hinting(getattr(parsed, "id", None)):
            return COMMANDS[parsed.command](self.desk, parsed)

    def _query(self, line: Namespace, query: str) -> object:
        from durable_nb import views

        missing = [name for name in line.frames if name not in self.desk.names]
        if missing:
            raise InvalidInput(f"--with {missing[0]}: no variable of that name here; run its cell")
        frames = {name: self.desk.names[name] for name in line.frames}
        return self._named(line.name, views.sql(query, frames=frames))

    def _named(self, name: str | None, value: T) -> T:
        if name is not None:
            self.desk.names[name] = value
        return value

    def _cell_id(self) -> str | None:
        """Which cell this is, where the front end says so."""
        kernel: Any = getattr(self.shell, "kernel", None)
        if kernel is None:
            return None
        cell: str | None = kernel.get_parent().get("metadata", {}).get("cellId")
        return cell
