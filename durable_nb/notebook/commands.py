"""What each `%durable COMMAND` calls."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from durable_nb.model.decisions import Resume
from durable_nb.notebook import agents
from durable_nb.notebook.banner import store_line
from durable_nb.notebook.desk import Desk
from durable_nb.notebook.handle import Handle, Waiting
from durable_nb.notebook.portrait import Look
from durable_nb.stores import refusals
from durable_nb.stores.open import default_store, open_store, use_store

if TYPE_CHECKING:
    import pandas as pd

    from durable_nb.stores.protocol import Checkpointer


def runs(desk: Desk, line: Namespace) -> pd.DataFrame:
    """All runs, newest first, as people read them: times to the second, tags as a list."""
    from durable_nb import views

    frame = views.runs()
    frame["tags"] = [json.loads(tags) for tags in frame["tags"]]
    for time in ("created_at", "updated_at"):
        frame[time] = frame[time].dt.floor("s")
    return frame.drop(columns="workdir") if frame["workdir"].isna().all() else frame


def pending(desk: Desk, line: Namespace) -> Waiting:
    """What needs a person: runs that paused, and runs whose process died."""
    waits = [each for each in default_store().runs() if each.status in ("paused", "crashed")]
    return Waiting(Handle(desk.run(each.execution_id)) for each in waits)


def use(desk: Desk, line: Namespace) -> None:
    """Choose the store by path, or by a variable that holds a store or an agent with one."""
    value = desk.names.get(line.target)
    value = getattr(value, "checkpointer", value)
    is_store = callable(getattr(value, "list_pending_interrupts", None))
    store = cast("Checkpointer", value) if is_store else open_store(line.target)
    _refuse_without_folder(getattr(store, "path", None))
    said = store_line(store)  # reads it, so that a path that cannot be a store is refused now
    use_store(store)
    print(said)  # noqa: T201  # what the cell shows


def show(desk: Desk, line: Namespace) -> Handle:
    """A run's timeline, with buttons if it waits."""
    run = desk.run(line.id)
    run.show(Look(opened=True))
    return desk.drawn(run)


def approve(desk: Desk, line: Namespace) -> Handle:
    decision = Resume(approved=True, reason=line.note, by=line.by, edited=line.edits)
    return _decide(desk, line, decision)


def reject(desk: Desk, line: Namespace) -> Handle:
    return _decide(desk, line, Resume(approved=False, reason=line.note, by=line.by))


def resume(desk: Desk, line: Namespace) -> Handle:
    """Go on with a run that died or failed."""
    run = desk.run(line.id, line.agent)
    run.resume(take_over=line.take_over)
    return desk.drawn(run)


def list_agents(desk: Desk, line: Namespace) -> pd.DataFrame:
    """The agents that are defined here."""
    import pandas as pd

    found = agents.defined(desk.names)
    rows = [
        (variable, each.name, ", ".join(tool.name for tool in each.tools), repr(each.checkpointer))
        for variable, each in found.items()
    ]
    return pd.DataFrame(rows, columns=["variable", "agent", "tools", "store"])


def _refuse_without_folder(path: Path | None) -> None:
    """Raise `StoreUnusable` where the store's directory cannot be made. None is made here."""
    if path is None or path.parent.is_dir():
        return
    missing = [each for each in path.parents if not each.exists()]
    try:
        path.parent.mkdir(parents=True)
    except OSError as error:
        raise refusals.unusable(
            path, f"has no usable directory ({error})", "choose another path"
        ) from error
    finally:
        for each in missing:
            with suppress(OSError):
                each.rmdir()


def _decide(desk: Desk, line: Namespace, decision: Resume) -> Handle:
    run = desk.run(line.id, line.agent)
    run.decide(decision, line.pause)
    return desk.drawn(run)


COMMANDS: dict[str, Callable[[Desk, Namespace], object]] = {
    "runs": runs,
    "pending": pending,
    "use": use,
    "show": show,
    "approve": approve,
    "reject": reject,
    "resume": resume,
    "agents": list_agents,
}
