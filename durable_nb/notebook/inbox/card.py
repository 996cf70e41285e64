"""`%durable pending`: every run that waits for a person, or died, oldest first, a page at a time.

A row is one more card of its run: it says what every other card of that run says, and decides with
the same buttons. What is listed is read from the store when the inbox is shown and when it is
refreshed. Widgets are made for the rows that are shown, all in one box, so that a saved file has
one display of them, beside the text of it all.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, overload

from durable_nb.core.nodes import moment
from durable_nb.notebook.asking.panel import discard
from durable_nb.notebook.banner import store_name
from durable_nb.notebook.cards import publish, widget
from durable_nb.notebook.handle import Handle
from durable_nb.notebook.inbox.page import Shown, Waiting, overview
from durable_nb.notebook.inbox.row import Row
from durable_nb.notebook.markup import alert
from durable_nb.runtime.ports import SYSTEM
from durable_nb.stores.waiting import what_waits

if TYPE_CHECKING:
    from ipywidgets import Button

    from durable_nb.notebook.local import LocalRun
    from durable_nb.notebook.screen import Screen
    from durable_nb.stores.protocol import Checkpointer

PAGE = 10  # rows at once


class Inbox(Sequence[Handle]):
    """What waits, as handles, the oldest first; shown as rows with buttons. `run` finds a run by
    its id and its agent's name."""

    def __init__(
        self,
        store: Checkpointer,
        run: Callable[[str, str], LocalRun],
        screen: Screen,
        *,
        most: int = PAGE,
    ) -> None:
        self._store, self._run, self._screen = store, run, screen
        self._most = most
        self._waiting = waiting_in(store)
        self._page = 0
        self._rows: dict[Waiting, Row] = {}
        self._box: Any = None
        self._bar: Bar | None = None
        self._text = Text()

    def __len__(self) -> int:
        return len(self._waiting)

    @overload
    def __getitem__(self, at: int) -> Handle: ...
    @overload
    def __getitem__(self, at: slice) -> list[Handle]: ...
    def __getitem__(self, at: int | slice) -> Handle | list[Handle]:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(len(self)))]
        waiting = self._waiting[at]
        return Handle(self._run(waiting.execution_id, waiting.agent))

    def __repr__(self) -> str:
        return f"<{len(self):,} waiting>"

    def refresh(self, turn: int = 0) -> None:
        """Read the store again and show what waits now, `turn` pages on."""
        self._waiting = waiting_in(self._store)
        last = max(0, len(self._waiting) - 1) // self._most
        self._page = min(max(0, self._page + turn), last)
        self._show()

    def close(self) -> None:
        """Leave its text alone in its cell: from now on it is shown elsewhere."""
        for row in self._rows.values():
            row.take_down()
        self._rows = {}
        if self._box is not None:
            publish({}, self._text.beside, update=True)
            discard(self._box)
        self._box = self._bar = None

    def _ipython_display_(self) -> None:
        if not self._waiting:
            print("nothing waits for you")  # noqa: T201  # what the cell shows
            return
        self.close()
        self._text = Text()
        self._show()

    def _show(self) -> None:
        before, self._rows = self._rows, {}
        for each in self._waiting[self._shown.first : self._shown.last]:
            self._rows[each] = before.pop(each) if each in before else self._row(each)
        for gone in before.values():
            gone.take_down()
        for row in self._rows.values():
            row.put_up()
        self._say()
        if not self._waiting:
            self.close()
        elif self._screen.clickable():
            self._show_widgets()

    def _row(self, waiting: Waiting) -> Row:
        return Row(waiting, self._run(waiting.execution_id, waiting.agent), self._say)

    def _show_widgets(self) -> None:
        from ipywidgets import VBox

        if self._box is None:
            self._box = VBox()
            publish(widget(self._box), self._text.beside, update=False)
        bar = self._bar = self._bar or Bar(self.refresh)
        bar.say(self._shown)
        self._box.children = (bar.box, *(row.box for row in self._rows.values()))

    def _say(self) -> None:
        """Draw its text, as its rows are now."""
        rows = [row.as_text for row in self._rows.values() if row.as_text]
        now, folds = moment(SYSTEM.clock()), self._screen.clickable()
        name = store_name(self._store)
        self._text.draw(overview(name, self._waiting, self._shown, rows, now, fold=folds))

    @property
    def _shown(self) -> Shown:
        return Shown(self._page * self._most, self._most, len(self._waiting))


class Text:
    """The inbox as a saved file has it: a display, changed where it stands."""

    def __init__(self) -> None:
        self._id = f"durable-{secrets.token_hex(8)}"
        self._drawn: dict[str, str] = {}
        self._drawing = threading.Lock()

    @property
    def beside(self) -> str:
        """The display of the widgets."""
        return f"{self._id}-rows"

    def draw(self, drawn: dict[str, str]) -> None:
        with self._drawing:
            if drawn != self._drawn:
                publish(drawn, self._id, update=bool(self._drawn))
                self._drawn = drawn


class Bar:
    """The buttons above the rows: refresh, and the pages."""

    def __init__(self, refresh: Callable[[int], None]) -> None:
        from ipywidgets import HTML, HBox

        self._older = self._button("◂ Older", "Runs that wait longer", partial(refresh, -1))
        self._newer = self._button("Newer ▸", "Runs that wait less long", partial(refresh, 1))
        again = self._button("Refresh", "Read again what waits", partial(refresh, 0))
        self._says = HTML()
        self._alone = [again, self._says]
        self._paged = [again, self._older, self._newer, self._says]
        self.box = HBox(self._alone)

    def say(self, shown: Shown) -> None:
        """Which rows there are."""
        self._older.disabled = shown.first == 0
        self._newer.disabled = shown.last == shown.total
        many = shown.total > shown.most
        self._says.value = str(shown) if many else ""
        self.box.children = self._paged if many else self._alone

    def _button(self, name: str, tooltip: str, act: Callable[[], None]) -> Button:
        from ipywidgets import Button

        button = Button(description=name, tooltip=tooltip)
        button.on_click(lambda _: self._guarded(act))
        return button

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001  # nobody sees what a callback raises
            self._says.value = alert(f"{type(error).__name__}: {error}")


def waiting_in(store: Checkpointer) -> list[Waiting]:
    """What waits in a store, the oldest first."""
    pauses, damaged = what_waits(store)
    found = [Waiting(each.execution_id, each.agent, each.asks, each.created_at) for each in pauses]
    found += [Waiting(each.execution_id, each.agent, "damaged", each.since) for each in damaged]
    found += [
        Waiting(each.execution_id, each.agent, "crashed", each.updated_at)
        for each in store.runs()
        if each.status == "crashed"
    ]
    return sorted(found, key=lambda each: each.since)
