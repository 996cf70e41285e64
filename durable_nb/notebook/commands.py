"""What each `%durable COMMAND` calls."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from durable_nb.core.nodes import status_of
from durable_nb.model.decisions import Resume
from durable_nb.notebook import agents
from durable_nb.notebook.banner import store_line
from durable_nb.notebook.desk import Desk
from durable_nb.notebook.handle import Handle
from durable_nb.notebook.inbox.card import Inbox
from durable_nb.notebook.inspector.card import Inspector
from durable_nb.notebook.inspector.diff import Difference, difference_of
from durable_nb.notebook.onward import fork, say
from durable_nb.notebook.portrait import Look
from durable_nb.notebook.words import word
from durable_nb.runtime.ports import SYSTEM
from durable_nb.stores import refusals
from durable_nb.stores.open import default_store, open_store, use_store

if TYPE_CHECKING:
    import pandas as pd


def runs(desk: Desk, line: Namespace) -> pd.DataFrame:
    """All runs, newest first, as people read them: times to the second, tags as a list."""
    from durable_nb import views

    frame = views.runs()
    frame["tags"] = [json.loads(tags) for tags in frame["tags"]]
    _to_the_second(frame)
    return frame.drop(columns="workdir") if frame["workdir"].isna().all() else frame


def pending(desk: Desk, line: Namespace) -> Inbox:
    """What needs a person: runs that paused, and runs whose process died."""
    return desk.pending()


def use(desk: Desk, line: Namespace) -> None:
    """Choose the store by path, or by a variable that holds a store or an agent with one."""
    store = agents.store_of(desk.names.get(line.target))
    store = open_store(line.target) if store is None else store
    _refuse_without_folder(getattr(store, "path", None))
    said = store_line(store)  # reads it, so that a path that cannot be a store is refused now
    use_store(store)
    print(said)  # noqa: T201  # what the cell shows


def show(desk: Desk, line: Namespace) -> Handle:
    """Everything about a run, a page of its steps at a time."""
    run = desk.run(line.id)
    Inspector(run, page=1 if line.page is None else line.page, step=line.step).show()
    return desk.drawn(run)


def diff(desk: Desk, line: Namespace) -> Difference:
    """What changed between two steps."""
    return difference_of(default_store(), line.id, line.a, line.b, other=line.other)


def approve(desk: Desk, line: Namespace) -> Handle:
    decision = Resume(approved=True, reason=line.note, by=line.by, edited=line.edits)
    return _decide(desk, line, decision)


def reject(desk: Desk, line: Namespace) -> Handle:
    return _decide(desk, line, Resume(approved=False, reason=line.note, by=line.by))


def answer(desk: Desk, line: Namespace) -> Handle:
    """What became of a call in doubt."""
    return _decide(desk, line, line.outcome(by=line.by))


def resume(desk: Desk, line: Namespace) -> Handle:
    """Go on with a run that died or failed, or with its conversation."""
    run = desk.run(line.id, line.agent)
    if line.prompt:
        return desk.drawn(say(run, " ".join(line.prompt), take_over=line.take_over))
    run.resume(take_over=line.take_over)
    return desk.drawn(run)


def fork_run(desk: Desk, line: Namespace) -> Handle:
    """Branch a run at a step. The same line again is the same fork."""
    run = desk.run(line.id, line.agent)
    made = fork(run, at=line.at, prompt=line.prompt, edit=line.edits, execution_id=line.new_id)
    return desk.drawn(made)


def cancel(desk: Desk, line: Namespace) -> Handle:
    """End a run. One that is cancelled already stays as it is."""
    run = desk.run(line.id)
    if status_of(run.log()) != "cancelled":
        run.cancel(by=line.by or SYSTEM.user())
    run.faces.show(Look())
    return desk.drawn(run)


class Gone(tuple[str, ...]):
    """Ids of runs that were forgotten, or would be; shown as a sentence."""

    dry_run = False

    def __repr__(self) -> str:
        runs = f"{len(self)} run{'' if len(self) == 1 else 's'}"
        said = f"{runs} would be forgotten" if self.dry_run else f"{runs} forgotten"
        return f"{said}: {', '.join(map(word, self))}" if self else said


def prune(desk: Desk, line: Namespace) -> Gone:
    """Forget runs that ended long ago."""
    gone = Gone(
        default_store().prune(
            line.older_than, tags=line.tag, status=line.status, dry_run=line.dry_run
        )
    )
    gone.dry_run = line.dry_run
    return gone


def export(desk: Desk, line: Namespace) -> None:
    """Copy the store, or write its views as Parquet."""
    from durable_nb import views

    for path in views.export(Path(line.path).expanduser()):
        print(f"durable_nb: {path} · {path.stat().st_size:,} bytes")  # noqa: T201  # as asked


def sessions(desk: Desk, line: Namespace) -> pd.DataFrame:
    """The conversations, the one with the newest run first, as people read them."""
    from durable_nb import views

    return _to_the_second(views.sessions())


def list_agents(desk: Desk, line: Namespace) -> pd.DataFrame:
    """The agents that are defined here."""
    import pandas as pd

    found = agents.defined(desk.names)
    rows = [
        (variable, each.name, ", ".join(tool.name for tool in each.tools), repr(each.checkpointer))
        for variable, each in found.items()
    ]
    return pd.DataFrame(rows, columns=["variable", "agent", "tools", "store"])


def _to_the_second(frame: pd.DataFrame) -> pd.DataFrame:
    for time in ("created_at", "updated_at"):
        frame[time] = frame[time].dt.floor("s")
    return frame


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
    "sessions": sessions,
    "pending": pending,
    "agents": list_agents,
    "use": use,
    "show": show,
    "resume": resume,
    "approve": approve,
    "reject": reject,
    "answer": answer,
    "fork": fork_run,
    "diff": diff,
    "cancel": cancel,
    "prune": prune,
    "export": export,
}
