"""`%%crash`: the cell's prompt runs in a real child process, which is ended where the line says.

What is left of a run shows as a card, also where `lab.crash` was called.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from IPython.core.magic import Magics, cell_magic, magics_class

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from durable_nb.lab import Crash, How
    from durable_nb.runtime.agent import Agent


def _manual() -> str:
    from durable_nb.notebook.typed import grammar, manual

    return manual.of(grammar.CRASH)


@magics_class
class CrashMagics(Magics):
    """`%%crash`."""

    @cell_magic
    def crash(self, line: str, cell: str) -> Crash | None:
        """Run a prompt in a child process that is ended on purpose: see `%%crash --help`."""
        from durable_nb.notebook.typed import parse
        from durable_nb.notebook.typed.prompt import fill_line

        names = cast("InteractiveShell", self.shell).user_ns
        try:
            parsed = parse.crash_line(fill_line(line, names))
        except parse.HelpAsked as asked:
            print(asked)  # noqa: T201  # asked for
            return None
        crashed = _crashed(names, parsed, cell)
        if parsed.name is not None:
            names[parsed.name] = crashed
        return crashed

    cast(Any, crash).getdoc = _manual


SHOWN = "durable_nb.lab.crashes", "Crash"
"""The class that `card` draws: named, so that loading the extension imports no lab."""


def card(crash: Crash) -> str:
    """What `str()` of it says, as HTML in the form of a run's card."""
    from durable_nb.notebook.parts import Part, Say, Table
    from durable_nb.notebook.portrait import Portrait
    from durable_nb.notebook.render import html

    rows = ((f"#{row.node_index} {row.node_id}", row.step_type, row.status) for row in crash.rows)
    said: tuple[Part, ...] = (Say(crash.said),) if crash.said else ()
    parts = (*said, Table("", ("row", "step", "status"), tuple(rows)), Say(crash.explain))
    facts = (f"{crash.when} {crash.at}",)
    return html(Portrait("red", "↯", crash.ended, crash.execution_id, facts, parts))


def _crashed(names: Mapping[str, Any], line: Namespace, body: str) -> Crash | None:
    """What is left of the run of this cell. One that is there already is said to be there."""
    from durable_nb.lab import crash
    from durable_nb.notebook import agents
    from durable_nb.notebook.typed.prompt import automatic_id, fill

    agent = agents.find(names, line.agent)
    prompt = fill(body, names)
    execution_id = automatic_id(agent.name, prompt) if line.id is None else line.id
    there = _there(agent, execution_id, prompt)
    if there:
        print(there)  # noqa: T201  # what the cell shows
        return None
    how: How = line.how or "kill"
    return crash(agent, prompt, at=line.at, when=line.when, execution_id=execution_id, how=how)


def _there(agent: Agent, execution_id: str, prompt: str) -> str:
    """What to say of the run of that agent and prompt, if there is one: nothing is repeated."""
    from durable_nb.core.explain import explain
    from durable_nb.core.nodes import listing
    from durable_nb.core.state import state_of
    from durable_nb.model.errors import UnknownExecution
    from durable_nb.notebook.portrait import prompt_of

    try:
        log = agent.checkpointer.load(execution_id)
    except UnknownExecution:
        return ""
    if log.run.agent != agent.name or prompt_of(log).strip() != prompt:
        return ""
    head = f"run {execution_id!r} is there already; no child was started. Choose another --id"
    rows = listing(agent.checkpointer.list(execution_id))
    return f"{head}\n{rows}\n{explain(state_of(log), agent.toolbox.on_crash)}"
