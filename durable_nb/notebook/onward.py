"""One run out of another: a fork, or what a conversation says next.

As in a cell of its own, the same again is the same run: it is shown or gone on with, and nothing of
it is repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

from durable_nb.core.branch import Branch, branch
from durable_nb.model.entries import Log, Pause, Reentry
from durable_nb.model.values import dumps, freeze
from durable_nb.notebook.portrait import prompt_of
from durable_nb.notebook.reading import stored

if TYPE_CHECKING:
    from durable_nb.notebook.local import LocalRun
    from durable_nb.stores.protocol import Checkpointer


def fork(
    run: LocalRun,
    *,
    at: str | int | None,
    prompt: str | None,
    edit: Mapping[str, object] | None,
    execution_id: str | None,
) -> LocalRun:
    """Branch the run as `Agent.fork` does and drive the branch here. Without an `execution_id` it
    has one made of run, step, edits and prompt."""
    from durable_nb.runtime.begin import start_fork

    source = run.execution_id
    point = branch(source, run.log().rows, at=at, prompt=prompt, edit=edit, by="")
    name = execution_id or _fork_id(source, point)
    other, before = run.beside(name), stored(run.store, name)
    if before is not None and _is_that_fork(before, source, point):
        other.forward((f"This fork of {source} was made before; nothing of it was repeated.",))
        return other
    started = start_fork(run.agent(), source, at=at, prompt=prompt, edit=edit, execution_id=name)
    other.drive_here(started, notes=(_forked(source, point),))
    return other


def say(run: LocalRun, prompt: str, *, take_over: bool = False) -> LocalRun:
    """Go on with the run's conversation, in its newest run or in the next one, and drive that here.
    What was said after this run before is not said again."""
    from durable_nb.runtime.claim import Wish, claim

    before = _said_before(run.store, run.execution_id, prompt)
    if before is not None:
        other = run.beside(before)
        other.forward(("This was said before; to say it again, name the run that it follows.",))
        return other
    claimed = claim(run.agent(), run.execution_id, Wish(prompt=prompt, take_over=take_over))
    other = run.beside(claimed.lease.execution_id)
    other.drive_here(claimed)
    return other


def _fork_id(source: str, point: Branch) -> str:
    first = _first(point)
    name = f"{source}-fork-{first.of}"
    if first.edited is None and first.prompt is None:
        return name
    text = dumps(freeze([dict(first.edited or {}), first.prompt]))
    return f"{name}-{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def _is_that_fork(log: Log, source: str, point: Branch) -> bool:
    first = log.own[0].entry
    if not isinstance(first, Reentry):
        return False
    wanted = _first(point)
    made = (log.run.parent, log.run.base, first.of, dict(first.edited or {}), first.prompt)
    return made == (source, point.base, wanted.of, dict(wanted.edited or {}), wanted.prompt)


def _first(point: Branch) -> Reentry:
    (first,) = (each for each in point.opening if not isinstance(each, Pause))
    return first


def _forked(source: str, point: Branch) -> str:
    effects = "it remembers nothing of what that run's tools did, so effects may repeat"
    return f"A fork of {source} at its entry {_first(point).of}; {effects}."


def _said_before(store: Checkpointer, execution_id: str, prompt: str) -> str | None:
    """The run of the conversation that said so, of this one and those after it."""
    session = store.session(execution_id)
    for name in session[session.index(execution_id) :]:
        log = store.load(name)
        said = [row.entry.prompt for row in log.own if isinstance(row.entry, Reentry)]
        if name != execution_id:
            said.append(prompt_of(log))
        if prompt in said:
            return name
    return None
