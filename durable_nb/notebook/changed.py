"""What a card shows of an agent's code that is not as it was when its run stopped: pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from durable_nb.core.compare import Change, line_changes
from durable_nb.notebook.parts import Fold, Lines, Part, Say

SHORT = 14  # changed lines of one text that show at once


def changed_parts(changes: Sequence[Change], since: str) -> Iterator[Part]:
    """A sentence, then for each prompt, model or tool its changed lines."""
    if not changes:
        return
    names = ", ".join(each.key for each in changes)
    yield Say(f"The code has changed since {since}: {names}.")
    for each in changes:
        lines = tuple(line_changes(each))
        yield Lines(f"{each.key} · {each.how}", lines[:SHORT])
        if len(lines) > SHORT:
            yield Fold(f"all {len(lines)} lines of this change", (Lines("", lines),))
