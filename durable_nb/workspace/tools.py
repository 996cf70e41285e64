"""`Workspace`: the tools with which a model works in a directory. Their docstrings are what it reads."""

from __future__ import annotations

import os
from typing import Annotated

from pydantic import Field

from durable_nb.model.errors import InvalidInput
from durable_nb.runtime.scope import scope
from durable_nb.runtime.tools import Tool
from durable_nb.stores.open import default_store
from durable_nb.workspace import files, look, shell
from durable_nb.workspace.apart import search_apart
from durable_nb.workspace.place import Place

_PATH = "relative to the working directory, without '..'"
Path = Annotated[str, Field(description=f"A file, {_PATH}.")]
Folder = Annotated[str, Field(description=f"A directory, {_PATH}.")]
Glob = Annotated[
    str,
    Field(
        description="A glob over paths below that directory: '*' stays within a name, '**' stands "
        "for any number of directories ('**/*.py')."
    ),
]


class Workspace:
    """A directory for an agent to work in: `Agent(..., tools=[*Workspace("site").tools()])`.

    Without a directory it is the `workdir` of the run that calls a tool. The file tools cannot
    leave it and do not touch the files of a store in it. `bash` is NOT confined: it starts in the
    directory with a filtered environment, and can do all that your user can. Raises `InvalidInput`
    where the platform cannot confine a path.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        if os.open not in os.supports_dir_fd:
            raise InvalidInput(
                "the tools of a workspace need a POSIX system, where a path can be walked safely; "
                "run the agent in WSL or in a container"
            )
        self.directory = None if directory is None else os.path.abspath(directory)

    def __repr__(self) -> str:
        return f"Workspace({self.directory!r})"

    def tools(self) -> list[Tool]:
        """The tools read, write, edit, list, search and bash, for an agent's `tools`."""
        return [
            Tool(self.read, name="read"),
            Tool(self.write, name="write"),
            Tool(self.edit, name="edit"),
            Tool(self.list_files, name="list"),
            Tool(self.search, name="search"),
            Tool(self.bash, name="bash", on_crash="ask"),
        ]

    def read(
        self,
        path: Path,
        start: Annotated[int, Field(ge=1, description="The first line to read.")] = 1,
        lines: Annotated[int, Field(ge=1, description="How many lines to read at most.")] = 2_000,
    ) -> str:
        """Read a text file. A long answer is cut at the end of a line; the last line says so, in
        brackets, and where to go on."""
        return files.read(self._place(), path, start, lines)

    def write(self, path: Path, content: str) -> str:
        """Write a text file as a whole, as UTF-8. Replaces what was there; makes the directories on
        the way."""
        return files.write(self._place(), path, content)

    def edit(
        self,
        path: Path,
        old: Annotated[str, Field(description="The text to replace, exactly as in the file.")],
        new: Annotated[str, Field(description="The text to put there.")],
    ) -> str:
        """Replace one piece of a text file. `old` has to stand in the file exactly once: give as
        many lines around it as that takes."""
        return files.edit(self._place(), path, old, new)

    def list_files(self, path: Folder = ".", pattern: Glob = "*") -> str:
        """List files with their sizes, directories (name/) and links (name -> target). Leaves out
        .git."""
        return look.listing(self._place(), path, pattern)

    def search(
        self,
        expression: Annotated[str, Field(description="A regular expression of Python's, by line.")],
        path: Annotated[str, Field(description=f"A file or a directory, {_PATH}.")] = ".",
        pattern: Glob = "**",
    ) -> str:
        """Find lines of text files, as path:line: text. Leaves out .git and binary files."""
        return search_apart(self._place(), expression, path, pattern)

    def bash(
        self,
        command: str,
        timeout: Annotated[int, Field(ge=1, le=3_600, description="Seconds it may take.")] = 120,
    ) -> str:
        """Run a bash command in the working directory. It is not confined: it can read, change and
        send whatever the user can, so prefer the other tools for files. It has no input, few
        environment variables and no secrets of the caller's environment. When the command is over
        or its time is, everything that it started is ended: nothing can be left running. Of long
        output only the first and the last part is shown."""
        return shell.bash(self._place().root, command, timeout)

    def _place(self) -> Place:
        inner = scope()
        root = self.directory or (inner.current.workdir if inner else None)
        if root is None:
            raise ValueError(
                "there is no working directory: start the run with workdir=..., or make the tools "
                "with Workspace(directory)"
            )
        if not os.path.isdir(root):
            raise NotADirectoryError(f"the working directory {root} is not there")
        stores = [default_store(), *([inner.store] if inner else [])]
        paths = [getattr(store, "path", None) for store in stores]
        return Place(root, tuple(os.fspath(path) for path in paths if path is not None))
