"""The magics. Each parses its line, calls one function and returns an object.

What reads a line is imported when the first one is typed, so that loading the extension is quick.
"""

from __future__ import annotations

from argparse import Namespace
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import traitlets
from IPython.core.magic import Magics, cell_magic, line_cell_magic, magics_class

from durable_nb.model.errors import InvalidInput
from durable_nb.notebook.config import SETTINGS, Decided, checked, decided
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


class _Said(traitlets.Any):
    """What `%config` says. A wrong value is refused in our words, and the one before stays."""

    def validate(self, obj: object, value: object) -> object:
        return checked(cast(str, self.name), value)


def _setting(name: str) -> Any:
    """A trait for `%config`."""
    help = f"{SETTINGS[name].meaning}; None: nothing is said here"
    return _Said(None, help=help).tag(config=True)


def _whole_manual() -> str:
    from durable_nb.notebook.typed import manual

    return manual.whole()


def _manual_of_sql() -> str:
    from durable_nb.notebook.typed import grammar, manual

    return manual.of(grammar.SQL)


@magics_class
class DurableMagics(Magics):
    """`%durable`, `%%durable` and `%%durable_sql`. `config` says who decides what."""

    on_pause = _setting("on_pause")
    timeout = _setting("timeout")
    quiet = _setting("quiet")
    headless = _setting("headless")
    live = _setting("live")
    store = _setting("store")

    _desk: Desk | None = None

    @property
    def desk(self) -> Desk:
        from durable_nb.notebook.desk import Desk

        if self._desk is None:
            shell = cast("InteractiveShell", self.shell)
            self._desk = Desk(shell.user_ns, Screen(shell, self._decided))
        return self._desk

    def look_again(self, _: object = None) -> None:
        """After a cell: what had no buttons for want of its agent has them if that is here now."""
        if self._desk is not None:
            self._desk.look_again()

    @traitlets.observe("store")
    def _use(self, change: dict[str, Any]) -> None:
        """`%config DurableMagics.store`; None goes back to where it was."""
        from durable_nb.stores.open import open_store, use_store

        place = change["new"]
        use_store(None if place is None else open_store(place))

    @line_cell_magic
    def durable(self, line: str, cell: str | None = None) -> object:
        """Run an agent on a prompt, or look at runs: see `%durable help`."""
        from durable_nb.notebook.typed.parse import HelpAsked

        try:
            return self._look(line) if cell is None else self._run(line, cell)
        except HelpAsked as asked:
            print(asked)  # noqa: T201  # asked for
            return None
        except BaseException as error:
            error.__traceback__ = past_our_frames(error.__traceback__)
            raise

    cast(Any, durable).getdoc = _whole_manual  # what `%durable?` shows

    @cell_magic
    def durable_sql(self, line: str, cell: str) -> object:
        """Query runs with DuckDB: see `%%durable_sql --help`."""
        from durable_nb.notebook.typed.parse import HelpAsked, sql_line

        try:
            return self._query(sql_line(line), cell)
        except HelpAsked as asked:
            print(asked)  # noqa: T201  # asked for
            return None

    cast(Any, durable_sql).getdoc = _manual_of_sql

    def _run(self, line: str, cell: str) -> Handle:
        from durable_nb.notebook.cell import run_cell
        from durable_nb.notebook.typed.parse import run_line
        from durable_nb.notebook.typed.prompt import fill_line

        parsed = run_line(fill_line(line, self.desk.names))
        how = self._decided(
            on_pause=parsed.on_pause, timeout=parsed.timeout, quiet=parsed.quiet or None
        )
        return run_cell(self.desk, parsed, cell, how=how, cell=self._cell_id())

    def _look(self, line: str) -> object:
        from durable_nb.notebook.commands import COMMANDS
        from durable_nb.notebook.typed.hints import hinting
        from durable_nb.notebook.typed.parse import command_line, without_semicolon

        typed, silenced = without_semicolon(line)
        parsed = command_line(typed)
        self._decided()
        with hinting(getattr(parsed, "id", None)):
            value = COMMANDS[parsed.command](self.desk, parsed)
        return None if silenced else value

    def _decided(self, **options: object) -> Decided:
        return decided(lambda name: getattr(self, name), **options)

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
