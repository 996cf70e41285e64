"""`crash_matrix()`: an agent killed at every point of a run, resumed, and held against the run that
nobody killed."""

from __future__ import annotations

import os

from durable_nb.lab.errand import Answers, approve
from durable_nb.lab.points import points
from durable_nb.lab.progress import Progress
from durable_nb.lab.table import Line, Matrix, matrix
from durable_nb.lab.trial import Effects, Trial, Whole
from durable_nb.runtime.agent import Agent


def crash_matrix(
    agent: Agent,
    prompt: str,
    *,
    effects: Effects | None = None,
    workdir: str | os.PathLike[str] | None = None,
    answers: Answers = approve,
    processes: int | None = None,
    timeout: float = 60.0,
    replay: bool = False,
    dry_run: bool = False,
) -> Matrix:
    """Kill a run before, during and after the step of each of its entries; a row a kill.

    The run is made once without a kill. Then, for each point (`lab.crash` says what the moments
    mean), a child process makes it up to there and is killed with SIGKILL, another one resumes it,
    and what is left is held against the first run: effects, model calls, the answer, and the hash
    of the files. The `verdict` is `exact`, `repeated`, `lost`, `diverged` or `stuck`; `what` says
    what happened and `wrap` which line to wrap. `.assert_exact()` is for tests.

    Each run works in a copy of `workdir` (an empty directory without one), which is also its
    current directory; paths of the agent's that lead into `workdir` lead into the copy. **What
    tools do elsewhere is really done**, about twice a kill. Effects are the files that change
    there, what tools note in a `lab.Ledger`, and the answer of `effects()` after a run, called here
    in its directory: of a list or a number, what came during the run; the kills then go one at a
    time, otherwise in `processes` at once (all cores).

    `answers` is a `Resume`, or a function of the pause, for every pause on the way; without it all
    are approved. `timeout` is in seconds, for each child. A model that costs money costs it again
    in every kill: `replay=True` asks it in the first run alone and plays its replies in the kills,
    `dry_run=True` makes the first run and lists the kills. The runs are in files of their own,
    gone afterwards; the agent's store is not touched. *Interrupt kernel* ends all children.

    A death between the body of an `@idempotent` function and its result on disk is tried only where
    the tool itself is one: nothing but the other side can tell what became of such a call.

    Raises `InvalidInput` for an agent that cannot be handed over, and for a run that does not come
    to its end without a kill.
    """
    trial = Trial(agent, prompt, effects, workdir, answers, timeout, replay=replay)
    with trial, Progress(f"crash matrix of {agent.name}") as progress:
        whole = trial.run_whole()
        kills = list(points(whole.ran.rows))
        cost = _cost(whole, len(kills), replay=replay)
        if dry_run:
            return matrix(agent.name, [Line(row, point) for row, point in kills], [cost])
        progress.begin(len(kills), cost)
        lines = {}
        for at, line in trial.kill(kills, whole, at_once=processes or os.cpu_count() or 1):
            lines[at] = line
            progress.step()
    notes = [cost] if answers is not approve else [cost, _approved(whole)]
    return matrix(agent.name, [lines[at] for at in sorted(lines)], notes)


def _cost(whole: Whole, kills: int, *, replay: bool) -> str:
    """What the kills cost, where the model counts tokens."""
    tokens = whole.ran.usage.input_tokens + whole.ran.usage.output_tokens
    if not tokens:
        return ""
    if replay:
        return f"The model was asked in the whole run alone, for {tokens:,} tokens."
    return (
        f"The model is asked again in each of the {kills} kills, about {tokens:,} tokens and more "
        "each; replay=True plays the replies of the whole run instead."
    )


def _approved(whole: Whole) -> str:
    paused = any(row.step_type == "hitl_pause" for row in whole.ran.rows)
    return "All pauses were approved; answers=… decides otherwise." if paused else ""
