"""The agent that a command line names, imported as `python -m` would."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING

from durable_nb.core.near import did_you_mean
from durable_nb.model.errors import DurableError, InvalidInput, UnknownAgent

if TYPE_CHECKING:
    from durable_nb.cli.options import Reference
    from durable_nb.runtime.agent import Agent
    from durable_nb.stores.protocol import Checkpointer


class Escaped(DurableError):
    """An exception of the user's own code, which `kind` names."""

    def __init__(self, error: Exception, then: str) -> None:
        self.kind = type(error).__name__
        frames = traceback.extract_tb(error.__traceback__)
        where = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else "?"
        super().__init__(f"{error} (at {where}); {then}")


@contextmanager
def users_code(then: str) -> Iterator[None]:
    """The user's code runs in here. What it prints is not data, and what it raises says where.

    `then` is what to do next about an error of its.
    """
    with redirect_stdout(sys.stderr):
        try:
            yield
        except DurableError:
            raise
        except Exception as error:  # the user's own: one line says what and where
            raise Escaped(error, then) from error


def find(reference: Reference, store: str | None) -> Agent:
    """The agent at `module:name`, with its runs in `store` if that is given.

    Raises `UnknownAgent` where there is none, and `InvalidInput` if it keeps its runs elsewhere.
    """
    from durable_nb.stores.open import open_store, use_store

    if store is not None:
        use_store(open_store(store))
    agent = _imported(reference)
    if store is not None:
        _check_store(agent, open_store(store))
    return agent


def _imported(reference: Reference) -> Agent:
    from durable_nb.runtime.agent import Agent

    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    with users_code(f"mend {reference.module}, nothing was run"):
        module = _module(reference)
    try:
        found = attrgetter(reference.name)(module)
    except AttributeError:
        found = None
    if not isinstance(found, Agent):
        agents = [name for name, value in vars(module).items() if isinstance(value, Agent)]
        raise UnknownAgent(
            f"{reference.name!r} in {reference.module} is no agent; "
            f"there {'are ' + ', '.join(agents) if agents else 'is none'}"
            f"{did_you_mean(reference.name, agents)}"
        )
    return found


def _module(reference: Reference) -> object:
    name = reference.module
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # a module that the user's module needs
        raise UnknownAgent(
            f"no module {error.name!r} in {os.getcwd()} or on Python's path; {_then(reference)}"
        ) from error


def _then(reference: Reference) -> str:
    if not reference.module.endswith(".py"):
        return "run the command where the module is, or set PYTHONPATH"
    module = reference.module.removesuffix(".py").replace("/", ".")
    return f"that is a file's name; did you mean {module}:{reference.name}?"


def _check_store(agent: Agent, store: Checkpointer) -> None:
    from durable_nb.stores.open import store_key

    if store_key(agent.checkpointer) != store_key(store):
        raise InvalidInput(
            f"agent {agent.name!r} keeps its runs in {agent.checkpointer!r}, and --store names "
            f"{store!r}; leave --store out, or give the agent no checkpointer of its own"
        )
