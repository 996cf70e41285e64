"""`%durable COMMAND` and the lines of its cells, as a user types them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from durable_nb import (
    Agent,
    AlreadyResumed,
    Checkpointer,
    ExecutionExists,
    ForkRefused,
    InvalidInput,
    RunPaused,
    ScriptedModel,
    SQLiteCheckpointer,
    StoreUnusable,
    UnknownExecution,
    call,
)
from durable_nb.notebook.commands import COMMANDS
from durable_nb.notebook.typed import manual
from durable_nb.notebook.typed.grammar import COMMANDS as LINES
from durable_nb.notebook.typed.parse import command_line, words
from durable_nb.notebook.words import word
from tests.notebook.conftest import ANSWER, Notebook
from tests.support.ledger import Ledger


@pytest.fixture
def clerk(notebook: Notebook, effects: Ledger) -> Agent:
    """The variable `clerk`: each prompt is one refund, and then a word about it."""

    def refund(order: str, amount: int) -> str:
        """Pay an order back."""
        effects.add(f"{order} {amount}")
        return "paid"

    def reply(messages: object) -> object:
        last = list(messages)[-1]  # type: ignore[call-overload]
        if last.role == "tool":
            return f"Done: {last.content}."
        return call("refund", order=last.content, amount=20)

    agent = notebook.names["clerk"] = Agent("clerk", ScriptedModel(reply), [refund])
    return agent


@pytest.fixture
def done(notebook: Notebook, clerk: Agent) -> Notebook:
    """A run `a` that is over."""
    notebook("%%durable clerk --id a\n1042")
    return notebook


def test_every_command_of_the_grammar_is_one_that_works() -> None:
    assert {line.name for line in LINES} - {"help"} == set(COMMANDS)


@pytest.mark.parametrize("line", [each for each in LINES if each.name != "help"])
def test_the_help_of_a_command_names_all_that_it_takes(line: object) -> None:
    said = manual.of(line)  # type: ignore[arg-type]
    assert said.startswith(f"usage: %durable {line.name}")  # type: ignore[attr-defined]
    assert all(each.does in said for each in line.arguments)  # type: ignore[attr-defined]


@pytest.mark.parametrize("asked", ["%durable help", "%durable --help", "%durable?", "%%durable?"])
def test_help_is_one_text_however_it_is_asked_for(notebook: Notebook, asked: str) -> None:
    ran = notebook(asked)
    printed = ran.printed or "".join(str(each) for each in ran.shown)
    shown = notebook.shell.object_inspect_text("%durable") if asked.endswith("?") else printed
    assert manual.whole() in shown
    assert max(map(len, manual.whole().splitlines())) <= manual.WIDTH


def test_the_help_of_a_magic_is_found_by_shift_tab(notebook: Notebook) -> None:
    assert "usage: %%durable_sql" in notebook.shell.object_inspect_text("%%durable_sql")


def test_sessions_are_a_table_with_the_newest_first(done: Notebook) -> None:
    done("%%durable clerk --id b\n1043")
    done("%durable resume a 1044")
    frame = done("%durable sessions").value
    assert frame["session"].tolist() == ["a", "b"]
    assert frame["newest"].tolist() == ["a-2", "b"]
    assert frame["runs"].tolist() == [2, 1]
    assert str(frame["created_at"].dt.tz) == "UTC"


def test_without_sessions_the_table_is_empty(notebook: Notebook) -> None:
    assert len(notebook("%durable sessions").value) == 0


def test_a_prompt_goes_on_with_the_conversation_and_is_said_once(
    done: Notebook, effects: Ledger, store: Checkpointer
) -> None:
    first = done("%durable resume a 1043").value
    assert (first.execution_id, first.output) == ("a-2", "Done: paid.")
    again = done("%durable resume a 1043")
    assert again.value.execution_id == "a-2"
    assert "said before" in again.card
    assert effects.lines == ["1042 20", "1043 20"]
    assert done("%durable resume a-2 1043").value.execution_id == "a-3"
    assert done("%durable resume a '1044'").value.execution_id == "a-4"
    assert store.session("a") == ["a", "a-2", "a-3", "a-4"]


def test_the_rest_of_the_line_is_the_prompt(done: Notebook) -> None:
    handle = done("""%durable resume a and "it's  the" last --agent clerk""").value
    assert handle.messages[-4].content == "and it's  the last"


@pytest.mark.parametrize("line", ["a is it done?", "a 'is it done?'"])
def test_a_prompt_may_be_a_question(done: Notebook, line: str) -> None:
    done.names["x"] = 1
    ran = done(f"1 + 1\nh = 2\n%durable resume {line}\n")
    assert ran.value.messages[-4].content == "is it done?"


def test_a_prompt_is_said_once_in_a_run_that_failed_too(notebook: Notebook) -> None:
    llm = ScriptedModel([RuntimeError("503"), "hello", "again"])
    notebook.names["bot"] = Agent("bot", llm)
    notebook("%%durable bot --id a\nhello")
    assert notebook("%durable resume a and now").value.execution_id == "a"
    again = notebook("%durable resume a and now")
    assert (again.value.output, llm.asked) == ("hello", 2)


def test_a_prompt_waits_until_a_pause_is_answered(notebook: Notebook, bot: Agent) -> None:
    notebook("%%durable bot --id a\nRefund order 1042")
    error = notebook("%durable resume a and then").error
    assert isinstance(error, RunPaused)
    assert "%durable approve a --pause 3" in str(error)


def test_a_fork_is_a_run_of_its_own_and_the_same_line_is_the_same_fork(
    done: Notebook, effects: Ledger, store: Checkpointer
) -> None:
    ran = done("%durable fork a --at turn:0/tool:refund")
    assert ran.value.execution_id == "a-fork-2"
    assert "A fork of a at its entry 2" in ran.card
    assert effects.lines == ["1042 20", "1042 20"]
    again = done("%durable fork a --at 2")
    assert again.value.execution_id == "a-fork-2"
    assert "made before" in again.card
    assert len(effects.lines) == 2
    edited = done("%durable fork a --at 2 --set amount=5").value.execution_id
    assert edited.startswith("a-fork-2-")
    assert effects.lines[-1] == "1042 5"
    assert done("%durable fork a --at 2 --set amount=5 --id mine").value.execution_id == "mine"
    assert done("%durable fork a --at 2 --set amount=5 --id mine").error is None
    assert len(effects.lines) == 4
    assert len(store.list("a")) == 4


@pytest.mark.parametrize(
    ("line", "error", "says"),
    [
        ("fork a --at turn:9", ForkRefused, "has no entry 'turn:9'"),
        ("fork a --at run_end", ForkRefused, "not a step"),
        ("fork a --at turn:0 --set amount=5", InvalidInput, "no arguments to edit"),
        ("fork a --at turn:0/tool:refund --set amount=5 --id a", ExecutionExists, "a"),
        ("fork b", UnknownExecution, "%durable runs"),
        ("fork a --at 2 --set amount", InvalidInput, "NAME=JSON"),
        ("cancel a", AlreadyResumed, "is completed since"),
        ("cancel b", UnknownExecution, "%durable runs"),
        ("resume b hello", UnknownExecution, "%durable runs"),
        ("prune", InvalidInput, "--older-than"),
        ("prune --older-than 30", InvalidInput, "'30' is not an age; write a number and s, m, h"),
        ("prune --older-than=-1d", InvalidInput, "an age from 0 on"),
        ("prune --older-than 1d --status paused", InvalidInput, "choose from 'completed'"),
        ("export", InvalidInput, "PATH; see %durable export --help"),
        ("export none/copy.sqlite3", StoreUnusable, "cannot be written"),
        ("use ''", InvalidInput, "this one is empty"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line_and_changes_nothing(
    done: Notebook, store: Checkpointer, line: str, error: type[Exception], says: str
) -> None:
    before = [run.execution_id for run in store.runs()]
    ran = done(f"%durable {line}")
    assert type(ran.error) is error
    assert says in str(ran.error)
    assert len(ran.error._render_traceback_()) == 1  # type: ignore[union-attr]
    assert [run.execution_id for run in store.runs()] == before


def test_cancelling_ends_a_run_once_and_says_by_whom(notebook: Notebook, bot: Agent) -> None:
    notebook("%%durable bot --id a\nRefund order 1042")
    ran = notebook("%durable cancel a --by alice")
    assert ran.value.status == "cancelled"
    assert "cancelled by alice" in ran.card
    assert ran.buttons == []
    assert notebook("%durable cancel a").error is None
    ends = [row.entry.error for row in ran.value.steps if row.step_type == "run_end"]
    assert ends == ["cancelled by alice"]


def test_pruning_says_what_went_and_a_dry_run_what_would(
    done: Notebook, bot: Agent, store: Checkpointer
) -> None:
    bot.run("Refund order 1042", execution_id="waits")
    would = done("%durable prune --older-than 0s --dry-run").value
    assert (tuple(would), repr(would)) == (("a",), "1 run would be forgotten: a")
    assert len(store.runs()) == 2
    assert repr(done("%durable prune --older-than 2w").value) == "0 runs forgotten"
    assert repr(done("%durable prune --older-than 0s --tag shop").value) == "0 runs forgotten"
    gone = done("%durable prune --older-than 0s --status completed").value
    assert repr(gone) == "1 run forgotten: a"
    assert [run.execution_id for run in store.runs()] == ["waits"]


def test_ages_are_read_as_they_are_said() -> None:
    said = {text: command_line(f"prune --older-than {text}").older_than for text in ("12h", "2w")}
    assert said == {"12h": timedelta(hours=12), "2w": timedelta(weeks=2)}


def test_an_export_is_a_store_and_is_never_overwritten(done: Notebook, tmp_path: Path) -> None:
    assert "copy.sqlite3 · " in done("%durable export copy.sqlite3").printed
    copy = SQLiteCheckpointer(tmp_path / "copy.sqlite3")
    assert [run.execution_id for run in copy.runs()] == ["a"]
    copy.close()
    error = done("%durable export copy.sqlite3").error
    assert isinstance(error, StoreUnusable)
    assert "export to another path" in str(error)


def test_an_export_without_a_suffix_is_a_folder_of_tables(done: Notebook, tmp_path: Path) -> None:
    import pandas as pd

    assert "runs.parquet · " in done("%durable export out").printed
    answer = done(f"import duckdb\nduckdb.sql(\"from '{tmp_path}/out/runs.parquet'\").df()").value
    assert isinstance(answer, pd.DataFrame)
    assert answer["execution_id"].tolist() == ["a"]


def test_a_semicolon_ends_a_line_and_shows_nothing(done: Notebook) -> None:
    assert done("%durable runs;").value is None
    assert done("%durable show a;").error is None
    assert done("%durable show 'a'").value.execution_id == "a"


BODIES = [
    'Answer as JSON: {"a": {"b": [1, 2]}}, {} and {order}',
    "It cost $5000, $order, $$E=mc^2$$ and 100%; %s",
    "!echo not a shell\n%durable runs\n?help\nprint('not Python')",
    "C:\\new\\table \\n \\\\ 'single' \"double\" '''triple''' \"\"\"triple\"\"\"",
    "first\n\n\n   indented\n\tand a tab\n\nlast;",
    "ünï-∑ 🙂 e\u0301 \u202eright to left\u202c \u00a0 hard space",
    "ends with a backslash \\",
    "ends with a semicolon;",
    "# a comment\n#!shebang\n%%durable bot --id other",
    "type T = { a: { b: string } }; for i in {1..3}; do echo ${i}; done",
    "a line that goes on \\\non the next",
]


@pytest.mark.parametrize("body", BODIES)
def test_a_body_reaches_the_model_as_it_was_written(notebook: Notebook, body: str) -> None:
    notebook.names["bot"] = Agent("bot", ScriptedModel([ANSWER]))
    notebook.names["order"] = 1042
    ran = notebook(f"%%durable bot --id a -o h\n{body}\n")
    assert ran.error is None
    assert ran.value.messages[0].content == body
    assert notebook.names["h"] is ran.value


@pytest.mark.parametrize(
    "typed", ["run-{{order}}", "'run-{{order}}'", "'run-{{ order }}'", "run-{order}", "run-$order"]
)
def test_parameters_of_an_earlier_cell_fill_line_and_body(notebook: Notebook, typed: str) -> None:
    notebook.names["bot"] = Agent("bot", ScriptedModel([ANSWER]))
    notebook("# Parameters\norder = 1042")
    handle = notebook(f"%%durable bot --id {typed}\nRefund order {{{{ order }}}}").value
    assert handle.execution_id == "run-1042"
    assert handle.messages[0].content == "Refund order 1042"


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("run-{ordr}", "the hole { ordr }: NameError: name 'ordr' is not defined; nothing was run"),
        ("'{a} {b}'", "the hole { a }: NameError"),
        ("run-{}", "the hole {  } is not a Python expression; to write { as text, write { '{' }"),
        ("run-{ordr", "the hole { ordr is not closed by }; close it, or, to write { as text, wri"),
    ],
)
def test_a_hole_of_the_line_that_nothing_fills_is_named(
    notebook: Notebook, store: Checkpointer, typed: str, says: str
) -> None:
    notebook.names["bot"] = Agent("bot", ScriptedModel([ANSWER]))
    error = notebook(f"%%durable bot --id {typed}\nhello").error
    assert isinstance(error, InvalidInput)
    assert says in str(error)
    assert not store.runs()


@pytest.mark.parametrize("name", ["-lead", "--id", "-5%", "it's", "a;b", "{x}", "$x", "both ' \""])
def test_what_a_card_says_to_type_works_whatever_the_run_is_called(
    notebook: Notebook, bot: Agent, name: str
) -> None:
    bot.run("Refund order 1042", execution_id=name)
    ran = notebook(f"%durable approve {word(name)} --pause 3 --note '-5%'")
    assert (ran.error, ran.value.execution_id, ran.value.status) == (None, name, "completed")


def test_words_are_read_in_one_go_however_long_they_are() -> None:
    assert words(f"a 'b {'c' * 3_000_000}' d\"'\"e'\"' ''")[2:] == ["d'e\"", ""]
    for opened in ("it's", 'a \'b "c" d', "\"'"):
        with pytest.raises(InvalidInput, match="opens a quote"):
            words(opened)
