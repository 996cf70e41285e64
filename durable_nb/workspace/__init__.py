"""A directory for an agent to work in: tools that read, write, edit, list, search and run commands,
and what two such directories have to share to be called the same.

The names resolve on first use: children that search import parts of this with nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from durable_nb.workspace.repositories import EndState, end_state, repository_heads
    from durable_nb.workspace.tools import Workspace
    from durable_nb.workspace.tree import tree_hash

_HOME = {
    "EndState": "repositories",
    "Workspace": "tools",
    "end_state": "repositories",
    "repository_heads": "repositories",
    "tree_hash": "tree",
}

__all__ = ["EndState", "Workspace", "end_state", "repository_heads", "tree_hash"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'durable_nb.workspace' has no attribute {name!r}")
    return getattr(import_module(f"durable_nb.workspace.{_HOME[name]}"), name)
