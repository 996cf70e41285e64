"""What the branches of git repositories point at, read from their files: no git is needed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from durable_nb.model.errors import InvalidInput
from durable_nb.workspace.tree import tree_hash

_BRANCHES = "refs/heads/"
_BRANCH = "ref: "


@dataclass(frozen=True, slots=True)
class EndState:
    """What a run left behind in its directory; two of them are equal or not (DESIGN R7).

    A commit's id covers its time, so equal `heads` need commits made with fixed dates.
    """

    tree: str
    heads: Mapping[str, Mapping[str, str]]


def end_state(directory: str | os.PathLike[str]) -> EndState:
    """The tree's hash, and the repository heads that it does not cover."""
    return EndState(tree_hash(directory), repository_heads(directory))


def repository_heads(directory: str | os.PathLike[str]) -> dict[str, dict[str, str]]:
    """For each repository at or below a directory, by its path, what `HEAD` and each branch are.

    `HEAD` is the name of a branch, or a commit's id where none is checked out. Raises
    `InvalidInput` for what is not a directory and for a repository that only git can read.
    """
    root = Path(directory).absolute()
    if not root.is_dir():
        raise InvalidInput(f"{root} is not a directory; name the one whose files are compared")
    found = {}
    for folder, folders, files in os.walk(root):
        if ".git" in folders or ".git" in files:
            found[os.path.relpath(folder, root)] = _heads(Path(folder, ".git"))
        folders[:] = [name for name in folders if name != ".git"]
    return dict(sorted(found.items()))


def _heads(dot_git: Path) -> dict[str, str]:
    own = _linked(dot_git)
    if not (own / "HEAD").is_file():
        return {}  # a directory of that name, but no repository
    common = own / _text(own / "commondir") if (own / "commondir").is_file() else own
    if (common / "reftable").is_dir():
        raise InvalidInput(
            f"the repository {dot_git.parent} keeps its branches in a reftable, which only git "
            "can read; compare `git rev-parse --all` instead"
        )
    head = _text(own / "HEAD").removeprefix(_BRANCH).removeprefix(_BRANCHES)
    return {"HEAD": head, **dict(sorted({**_packed(common), **dict(_loose(common))}.items()))}


def _linked(dot_git: Path) -> Path:
    """Where a repository's files are: a worktree and a submodule have them elsewhere."""
    if dot_git.is_dir():
        return dot_git
    return dot_git.parent / _text(dot_git).removeprefix("gitdir: ")


def _packed(common: Path) -> dict[str, str]:
    if not (common / "packed-refs").is_file():
        return {}
    lines = _text(common / "packed-refs").splitlines()
    pairs = [line.split(" ", 1) for line in lines if not line.startswith(("#", "^"))]
    return {ref: commit for commit, ref in pairs if ref.startswith(_BRANCHES)}


def _loose(common: Path) -> Iterator[tuple[str, str]]:
    """Branches with a file of their own, which counts before the packed list."""
    for path in (common / _BRANCHES).rglob("*"):
        if path.is_file() and path.suffix != ".lock":
            yield path.relative_to(common).as_posix(), _text(path)


def _text(path: Path) -> str:
    return path.read_text("utf-8", "surrogateescape").strip()
