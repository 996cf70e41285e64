"""Subcommands that drive a run in this process: run, resume, fork; and how a decision does."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from durable_nb.cli import agents, options, screen, shapes, text
from durable_nb.cli.pauses import pause_text, ways_to_decide
from durable_nb.core import written
from durable_nb.core.explain import explain
from durable_nb.core.nodes import open_pause
from durable_nb.core.state import state_of
from durable_nb.core.text import visible

if TYPE_CHECKING:
    from durable_nb.model.entries import Log
    from durable_nb.runtime.agent import Agent
    from durable_nb.runtime.result import RunResult


def add_run(commands: options.Commands) -> None:
    does = "start a run, and drive it until it ends or waits for a person"
    run = options.add(commands, "run", _run, does=does, prints=shapes.RESULT)
    run.add_argument(
        "agent",
        type=options.reference,
        metavar="AGENT",
        help="MODULE:NAME; the current directory is searched first",
    )
    run.add_argument("prompt", metavar="PROMPT")
    run.add_argument("--id", metavar="ID", help="the run's execution_id; else one is made")
    run.add_argument("--workdir", metavar="DIR", help="the directory that the run works in")
    run.add_argument(
        "--tag", action="append", default=[], metavar="TAG", help="may be given several times"
    )


def add_resume(commands: options.Commands) -> None:
    does = "go on with a run that died or failed, or say something more to one that is over"
    resume = options.add(commands, "resume", _resume, does=does, prints=shapes.RESULT)
    resume.add_argument("id", metavar="ID", help="the run's execution_id")
    resume.add_argument("prompt", metavar="PROMPT", nargs="?", help="what to say next")
    options.add_agent(resume)
    resume.add_argument("--workdir", metavar="DIR", help="where the run goes on")
    resume.add_argument(
        "--move", action="store_true", help="another directory than before is meant"
    )
    resume.add_argument(
        "--take-over", action="store_true", help="whoever drives it is known to be stopped"
    )


def add_fork(commands: options.Commands) -> None:
    does = "branch a run at a step under a new id, and drive the branch; effects may repeat"
    fork = options.add(commands, "fork", _fork, does=does, prints=shapes.RESULT)
    fork.add_argument("source", metavar="ID", help="the run to branch; it stays as it is")
    options.add_agent(fork)
    fork.add_argument(
        "--at",
        type=written.place,
        metavar="NODE",
        help="a node or an entry's number; else the newest",
    )
    fork.add_argument(
        "--edit",
        action="append",
        default=[],
        type=options.named_json,
        metavar="NAME=JSON",
        help="another argument for the tool there",
    )
    fork.add_argument("--prompt", metavar="TEXT", help="what to say before the model is asked next")
    fork.add_argument("--id", metavar="ID", help="the branch's execution_id; else one is made")


def agent_for(chosen: argparse.Namespace, execution_id: str) -> Agent:
    """The agent of an existing run. Without `--agent` that is a mistake in the command line, which
    says whose run it is."""
    if chosen.agent is not None:
        return agents.find(chosen.agent, chosen.store)
    owner = options.store_of(chosen).load(execution_id).run.agent
    chosen.usage_error(
        visible(
            f"run {execution_id!r} is driven by agent {owner!r}: say where that is defined with "
            "--agent MODULE:NAME, such as --agent shop:bot"
        )
    )
    raise AssertionError("argparse exits")


def drive(
    chosen: argparse.Namespace, agent: Agent, execution_id: str, step: Callable[[], RunResult]
) -> int:
    """Take the step, which drives the run, and say how far it went."""
    agent_at = ("--agent", options.agent_of(chosen))
    again = text.command("resume", execution_id, *agent_at, *options.place_of(chosen))
    try:
        with agents.users_code(f"the run is on disk, go on with: {again}"):
            result = step()
    except KeyboardInterrupt:
        screen.say(f"run {execution_id} is left as by a crash; go on with: {again}")
        raise
    _report(chosen, agent, result)
    return 0


def _run(chosen: argparse.Namespace) -> int:
    from durable_nb.runtime import loop
    from durable_nb.runtime.begin import start
    from durable_nb.runtime.checks import placed

    agent = agents.find(chosen.agent, chosen.store)
    place = placed(chosen.workdir)
    run = start(agent, chosen.prompt, execution_id=chosen.id, workdir=place, tags=chosen.tag)
    execution_id = run.lease.execution_id
    if chosen.id is None:
        screen.say(f"run {execution_id}")  # it is on disk: whatever happens, it can be resumed
    return drive(chosen, agent, execution_id, lambda: loop.drive(run))


def _resume(chosen: argparse.Namespace) -> int:
    agent = agent_for(chosen, chosen.id)
    return drive(
        chosen,
        agent,
        chosen.id,
        lambda: agent.resume(
            chosen.id,
            prompt=chosen.prompt,
            take_over=chosen.take_over,
            workdir=chosen.workdir,
            move=chosen.move,
        ),
    )


def _fork(chosen: argparse.Namespace) -> int:
    agent = agent_for(chosen, chosen.source)
    execution_id = agent.ports.new_id() if chosen.id is None else chosen.id
    return drive(
        chosen,
        agent,
        execution_id,
        lambda: agent.fork(
            chosen.source,
            at=chosen.at,
            prompt=chosen.prompt,
            edit=dict(chosen.edit) or None,
            execution_id=execution_id,
        ),
    )


def _report(chosen: argparse.Namespace, agent: Agent, result: RunResult) -> None:
    screen.say(f"run {result.execution_id} is {result.status}; {result.usage.total_tokens} tokens")
    if chosen.json:
        screen.show_json(shapes.result_of(result))
    elif result.output is not None:
        screen.show(result.output)
    elif result.pending_interrupt is not None:
        _show_pause(agent.checkpointer.load(result.execution_id), chosen)


def _show_pause(log: Log, chosen: argparse.Namespace) -> None:
    """The pause, unless somebody else has answered it by now."""
    if (pause := open_pause(log)) is not None:
        screen.show(pause_text(pause, explain(state_of(log))))
        for way in ways_to_decide(pause, chosen):
            screen.say(f"  {way}")
