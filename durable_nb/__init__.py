"""durable_nb: run, watch, approve, kill and resume LLM agents from a notebook.

The names in `__all__` are the public ones. They resolve on first use, so that importing the package
costs next to nothing and opens nothing.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from durable_nb import lab, replica, views, workspace
    from durable_nb.llm.scripted import ScriptedModel
    from durable_nb.model.decisions import Resume
    from durable_nb.model.errors import (
        AgentMismatch,
        AlreadyResumed,
        BudgetExceeded,
        DurableError,
        ExecutionExists,
        ForkRefused,
        IdempotencyError,
        InvalidInput,
        InvalidTool,
        MissingTool,
        ModelFailed,
        NotStorable,
        OutsideTool,
        PauseSwallowed,
        PlaneFailed,
        RunIsLive,
        RunPaused,
        StaleLog,
        StoreBusy,
        StoreCorrupt,
        StoreError,
        StoreUnusable,
        TurnLimit,
        UnknownAgent,
        UnknownExecution,
    )
    from durable_nb.model.messages import (
        Call,
        Message,
        Reply,
        Usage,
        call,
    )
    from durable_nb.runtime.agent import Agent
    from durable_nb.runtime.idempotent import idempotent
    from durable_nb.runtime.result import RunResult
    from durable_nb.runtime.scope import (
        carry,
        current,
        interrupt,
    )
    from durable_nb.runtime.tools import (
        Tool,
        tool,
    )
    from durable_nb.stores.memory import MemoryCheckpointer
    from durable_nb.stores.postgres import PostgresCheckpointer
    from durable_nb.stores.protocol import Checkpointer
    from durable_nb.stores.replicated import ReplicatedCheckpointer
    from durable_nb.stores.sqlite import SQLiteCheckpointer
    from durable_nb.workspace.tree import tree_hash

_HOMES = {
    "durable_nb.llm.scripted": "ScriptedModel",
    "durable_nb.model.decisions": "Resume",
    "durable_nb.model.errors": (
        "AgentMismatch AlreadyResumed BudgetExceeded DurableError ExecutionExists "
        "ForkRefused IdempotencyError InvalidInput InvalidTool MissingTool ModelFailed NotStorable "
        "OutsideTool PauseSwallowed PlaneFailed RunIsLive RunPaused StaleLog StoreBusy "
        "StoreCorrupt StoreError StoreUnusable TurnLimit UnknownAgent UnknownExecution"
    ),
    "durable_nb.model.messages": "Call Message Reply Usage call",
    "durable_nb.runtime.agent": "Agent",
    "durable_nb.runtime.idempotent": "idempotent",
    "durable_nb.runtime.result": "RunResult",
    "durable_nb.runtime.scope": "carry current interrupt",
    "durable_nb.runtime.tools": "Tool tool",
    "durable_nb.stores.memory": "MemoryCheckpointer",
    "durable_nb.stores.postgres": "PostgresCheckpointer",
    "durable_nb.stores.protocol": "Checkpointer",
    "durable_nb.stores.replicated": "ReplicatedCheckpointer",
    "durable_nb.stores.sqlite": "SQLiteCheckpointer",
    "durable_nb.workspace.tree": "tree_hash",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

__version__ = "0.1.0"
__all__ = [
    "Agent",
    "AgentMismatch",
    "AlreadyResumed",
    "BudgetExceeded",
    "Call",
    "Checkpointer",
    "DurableError",
    "ExecutionExists",
    "ForkRefused",
    "IdempotencyError",
    "InvalidInput",
    "InvalidTool",
    "MemoryCheckpointer",
    "Message",
    "MissingTool",
    "ModelFailed",
    "NotStorable",
    "OutsideTool",
    "PauseSwallowed",
    "PlaneFailed",
    "PostgresCheckpointer",
    "ReplicatedCheckpointer",
    "Reply",
    "Resume",
    "RunIsLive",
    "RunPaused",
    "RunResult",
    "SQLiteCheckpointer",
    "ScriptedModel",
    "StaleLog",
    "StoreBusy",
    "StoreCorrupt",
    "StoreError",
    "StoreUnusable",
    "Tool",
    "TurnLimit",
    "UnknownAgent",
    "UnknownExecution",
    "Usage",
    "call",
    "carry",
    "current",
    "idempotent",
    "interrupt",
    "lab",
    "replica",
    "tool",
    "tree_hash",
    "views",
    "workspace",
]
if find_spec("psycopg") is None:  # the extra [postgres] is not installed
    __all__.remove("PostgresCheckpointer")


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(_imported(_HOME[name]), name)
    elif name in __all__:
        value = _imported(f"durable_nb.{name}")
    else:
        from difflib import get_close_matches  # only here, so that importing stays cheap

        meant = get_close_matches(name, __all__, 1)
        hint = f"; did you mean {meant[0]}?" if meant else ""
        raise AttributeError(f"module 'durable_nb' has no attribute {name!r}{hint}")
    globals()[name] = value
    return value


def _imported(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("psycopg"):
            raise ImportError(
                "a PostgreSQL store needs the extra durable_nb[postgres]; install it first"
            ) from error
        raise


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def load_ipython_extension(shell: "InteractiveShell") -> None:
    """`%load_ext durable_nb`."""
    from durable_nb.notebook.extension import load

    load(shell)


def unload_ipython_extension(shell: "InteractiveShell") -> None:
    """`%unload_ext durable_nb`."""
    from durable_nb.notebook.extension import unload

    unload(shell)
