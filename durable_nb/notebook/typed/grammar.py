"""What can be typed after `%durable`, `%%durable`, `%%durable_sql` and `%%crash`, as data.

The parser, the help and completion all read this, so that what one knows the others know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from durable_nb.core.retain import ENDED
from durable_nb.lab.points import HOWS, WHENS
from durable_nb.model.decisions import Resume
from durable_nb.notebook.config import POLICIES

Kind: TypeAlias = Literal[
    "text",
    "agent",  # a variable, or an agent's name
    "agent variable",
    "run",
    "place",  # a node of the run, or an entry's number
    "pause",
    "page",
    "path",
    "store",  # a path, or a variable that holds a store or an agent
    "frame",
    "variable",
    "edit",  # NAME=JSON
    "happened",  # JSON
    "age",
    "seconds",
    "command",
]


@dataclass(frozen=True, slots=True)
class Argument:
    """A word of a line. An option's name begins with `-`; what it `takes` follows it, and one that
    takes nothing is a switch."""

    name: str
    does: str
    takes: str = ""
    kind: Kind = "text"
    choices: tuple[str, ...] = ()
    needed: bool = False
    many: bool = False
    dest: str = ""  # what it is called once it is read, if not by its name
    means: object = True  # what a switch stands for
    one_of: bool = False  # a line has exactly one of those that are

    @property
    def is_option(self) -> bool:
        return self.name.startswith("-")

    @property
    def typed(self) -> str:
        """As it stands in a line of help."""
        taken = "|".join(self.choices) or self.takes
        return f"{self.name} {taken}" if self.is_option and taken else self.name


@dataclass(frozen=True, slots=True)
class Line:
    """A magic, or one of its commands: what comes after it, and what it does."""

    name: str
    does: str
    arguments: tuple[Argument, ...] = ()
    more: str = ""


_ID = Argument("ID", "the run's execution_id", kind="run", needed=True)
_AGENT = Argument(
    "--agent", "its agent, if several have its name", "VARIABLE", kind="agent variable"
)
_NEW_ID = Argument(
    "--id", "the fork's execution_id; else one made of run, step and edits", "NEW", dest="new_id"
)
_EDIT = Argument(
    "--set", "run the tool with another argument", "NAME=JSON", "edit", many=True, dest="edits"
)
_PAUSE = Argument("--pause", "the number that its card shows", "N", kind="pause")
_HAPPENED = Argument(
    "--happened",
    "it took effect, and this is what it returned",
    "JSON",
    kind="happened",
    dest="outcome",
    one_of=True,
)
_RUN_AGAIN = Argument(
    "--run-again",
    "it did not: run it, this once",
    dest="outcome",
    means=Resume.run_again,
    one_of=True,
)
_STOP = Argument(
    "--stop",
    "nobody knows: cancel the run",
    dest="outcome",
    means=Resume.stop,
    one_of=True,
)
_BY = Argument("--by", "who decides; else you", "NAME")
_NOTE = Argument("--note", "the reason; the model reads it", "TEXT")
_VARIABLE = Argument("-o", "a variable for what comes of it", "NAME", "variable", dest="name")

COMMANDS = (
    Line("runs", "all runs, newest first, as a DataFrame"),
    Line("sessions", "the conversations, the one with the newest run first, as a DataFrame"),
    Line("pending", "what waits for you, and what died, with buttons"),
    Line("agents", "the agents that are defined here"),
    Line(
        "use",
        "choose the store",
        (
            Argument(
                "PATH_OR_DSN",
                "a file, a postgresql:// address, or a variable with a store or an agent",
                kind="store",
                needed=True,
                dest="target",
            ),
        ),
    ),
    Line(
        "show",
        "a run: its steps, what it waits for, what comes next",
        (
            _ID,
            Argument("--page", "another page of its steps; 1 has the newest", "N", kind="page"),
            Argument("--step", "the step that is shown with all there is to it", "NODE", "place"),
        ),
    ),
    Line(
        "resume",
        "go on with a run that died or failed; with a prompt, with its conversation",
        (
            _ID,
            Argument("PROMPT", "what to say next: the rest of the line", many=True),
            Argument("--take-over", "its owner is known to be stopped"),
            _AGENT,
        ),
        "A prompt goes to the newest run of the conversation, and what has been said once after "
        "run ID is not said again: the same line shows what came of it. To say it again, name the "
        "run that it is to follow.",
    ),
    Line("approve", "say yes to what a run waits for", (_ID, _PAUSE, _BY, _NOTE, _EDIT, _AGENT)),
    Line("reject", "say no to what a run waits for", (_ID, _PAUSE, _BY, _NOTE, _AGENT)),
    Line(
        "answer",
        "say what became of a call in doubt",
        (_ID, _PAUSE, _HAPPENED, _RUN_AGAIN, _STOP, _BY, _AGENT),
        "Text needs quotes of its own: --happened '\"sent at noon\"'. IPython takes { } of a line "
        "for itself: write {{ and }} for the braces of JSON.",
    ),
    Line(
        "fork",
        "branch a run at a step, under another id; the run itself stays as it is",
        (
            _ID,
            Argument("--at", "a node or an entry's number; else the newest", "NODE", kind="place"),
            _NEW_ID,
            _EDIT,
            Argument("--prompt", "what to say before the model is asked next", "TEXT"),
            _AGENT,
        ),
        "The same line again shows the same fork. For another one of the same step, name it with "
        "--id.",
    ),
    Line(
        "diff",
        "what changed between two steps of a run",
        (
            _ID,
            Argument("A", "a node or an entry's number", kind="place", needed=True),
            Argument("B", "another one", kind="place", needed=True),
            Argument(
                "--with",
                "the run that B is a step of, such as a fork",
                "OTHER",
                "run",
                dest="other",
            ),
        ),
    ),
    Line(
        "cancel",
        "end a run as cancelled; a live owner stops at its next step",
        (_ID, Argument("--by", "who cancels", "NAME")),
    ),
    Line(
        "prune",
        "forget runs that ended long ago, never one that waits, died or is still needed",
        (
            Argument("--older-than", "such as 30d, 12h or 2w", "AGE", kind="age", needed=True),
            Argument("--tag", "only runs that have it", "TAG", many=True),
            Argument("--status", "only runs that ended so", choices=ENDED),
            Argument("--dry-run", "only say which would go"),
        ),
    ),
    Line(
        "export",
        "copy the store as it is at one moment, while runs go on in it",
        (Argument("PATH", "the copy; never overwritten", kind="path", needed=True),),
        "A path without a suffix is a folder, of a Parquet file for each table of %%durable_sql.",
    ),
    Line("help", "this", (Argument("COMMAND", "one of these", kind="command"),)),
)

RUN = Line(
    "%%durable",
    "run an agent; the cell's body is the prompt",
    (
        Argument("AGENT", "a variable that holds an agent, or its name", kind="agent", needed=True),
        Argument("--id", "the run's execution_id; else one made of agent and prompt", "ID", "run"),
        Argument("--new", "a run of its own each time: ID-2, ID-3, …"),
        Argument("-o", "a variable for the run's handle", "NAME", "variable", dest="name"),
        Argument("--on-pause", "where a person has to decide", choices=POLICIES),
        Argument("--timeout", "seconds that --on-pause wait waits", "S", kind="seconds"),
        Argument("--quiet", "no card, unless you have to decide"),
    ),
    "Same id, same run: the cell again goes on with it, shows the card that waits, or shows the "
    "answer that is stored. In the body {{ expression }} is replaced by its value's text, and all "
    "else stays as it is; in the line, {expression} is.",
)

SQL = Line(
    "%%durable_sql",
    "query runs with DuckDB; the cell's body is the query, its answer a DataFrame",
    (
        _VARIABLE,
        Argument(
            "--with", "DataFrames to query as well", "FRAME,…", "frame", many=True, dest="frames"
        ),
    ),
)

CRASH = Line(
    "%%crash",
    "run an agent in a real child process that is ended on purpose; the cell's body is the prompt",
    (
        Argument("AGENT", "a variable that holds an agent, or its name", kind="agent", needed=True),
        Argument(
            "--at", "turn:N (the model), turn:N/tool:NAME or run_end", "NODE", "place", needed=True
        ),
        Argument("--when", "the moment of that step", choices=WHENS, needed=True),
        Argument("--id", "the run's execution_id; else one made of agent and prompt", "ID", "run"),
        Argument(
            "--how", "SIGKILL, os._exit, SIGSTOP, or a store that fails; else kill", choices=HOWS
        ),
        _VARIABLE,
    ),
    "The rows that are left and what a resume will do are shown. A run that is there already is not "
    "made again; %%durable with the same prompt goes on with it.",
)
