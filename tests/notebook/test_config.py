"""Who decides how cells behave: option, `%config`, environment, project, default."""

from __future__ import annotations

from pathlib import Path

import pytest

from durable_nb import Agent, Checkpointer, InvalidInput, RunPaused
from durable_nb.notebook.config import SETTINGS, Decided, decided
from durable_nb.stores.open import default_store, use_store
from durable_nb.stores.project import project, project_store
from tests.notebook.conftest import Notebook

CELL = "%%durable bot --id refund-1042 {options}\nRefund order 1042\n"


def say(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.durable_nb]\n{text}\n")


def nothing(name: str) -> None:
    return None


def policy(configured: object = None, option: str | None = None) -> str:
    return decided(
        lambda name: configured if name == "on_pause" else None, on_pause=option
    ).on_pause


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_of_all_who_say_something_the_nearest_to_the_cell_decides(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert policy() == "continue"
    say(folder, 'on_pause = "stop"')
    assert policy() == "stop"
    monkeypatch.setenv("DURABLE_NB_ON_PAUSE", "wait")
    assert policy() == "wait"
    assert policy(configured="continue") == "continue"
    assert policy(configured="continue", option="stop") == "stop"


def test_what_nobody_says_is_the_default(folder: Path) -> None:
    assert decided(nothing) == Decided("continue", None, quiet=False, headless=None, live=True)


def test_a_project_is_looked_for_upwards_and_read_again_when_it_has_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "notebooks" / "deep").mkdir(parents=True)
    say(folder, "timeout = 60\nquiet = true")
    monkeypatch.chdir(folder / "notebooks" / "deep")
    assert (decided(nothing).timeout, decided(nothing).quiet) == (60.0, True)
    say(folder, "timeout = 6000")
    assert (decided(nothing).timeout, decided(nothing).quiet) == (6000.0, False)
    (folder / "notebooks" / "pyproject.toml").write_text("[project]\nname = 'nearer'\n")
    assert decided(nothing).timeout is None


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ('on_pause = "stpo"', "on_pause in [tool.durable_nb] of {path} is 'stpo', and on_pause ta"),
        ('timeout = "soon"', "timeout in [tool.durable_nb] of {path} is 'soon', and timeout takes"),
        ("timeout = -1", "takes a number of seconds above 0; change it there"),
        ("timeout = true", "takes a number of seconds above 0; change it there"),
        ('quiet = "maybe"', "takes true or false; change it there"),
        (
            "on_pose = 1",
            "on_pose in [tool.durable_nb] of {path}: there is no such setting; did you",
        ),
        ("on_pose = 1", "did you mean on_pause?; there are on_pause, timeout, quiet"),
        ("store = 5", "store in [tool.durable_nb] of {path} is 5"),
        ("quiet =", "{path} cannot be read (Invalid value"),
    ],
)
def test_what_a_project_cannot_say_is_an_error_that_names_the_file(
    folder: Path, said: str, says: str
) -> None:
    say(folder, said)
    with pytest.raises(InvalidInput) as caught:
        decided(nothing)
    assert says.format(path=folder / "pyproject.toml") in str(caught.value)


def test_a_bad_value_elsewhere_is_an_error_that_names_its_place(
    notebook: Notebook, bot: Agent, store: Checkpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DURABLE_NB_TIMEOUT", "soon")
    error = notebook(CELL.format(options="")).error
    assert isinstance(error, InvalidInput)
    assert str(error).startswith(
        "the environment's DURABLE_NB_TIMEOUT is 'soon', and timeout takes"
    )
    monkeypatch.delenv("DURABLE_NB_TIMEOUT")
    assert not store.runs()


@pytest.mark.parametrize("name", [each for each in SETTINGS if each != "store"])
def test_a_value_that_cannot_be_used_is_refused_when_it_is_set_and_nothing_is_blocked_by_it(
    notebook: Notebook, bot: Agent, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = notebook(f"%config DurableMagics.{name}").value
    notebook(f"%config DurableMagics.{name} = 'never'")
    assert f"%config DurableMagics.{name} takes {SETTINGS[name].takes}, not 'never'" in caplog.text
    assert notebook(f"%config DurableMagics.{name}").value == before
    assert notebook(CELL.format(options="")).error is None
    for line in (
        "show refund-1042",
        "prune --older-than 9d",
        "export a.sqlite3",
        "cancel refund-1042",
    ):
        assert notebook(f"%durable {line}").error is None


def test_what_was_set_before_stays_where_a_wrong_value_is_refused(
    notebook: Notebook, bot: Agent
) -> None:
    notebook("%config DurableMagics.on_pause = 'stop'")
    notebook("%config DurableMagics.on_pause = 'never'")
    notebook("%config DurableMagics.quiet = True")
    assert isinstance(notebook(CELL.format(options="")).error, RunPaused)


def test_config_decides_and_an_option_of_the_cell_overrules_it(
    notebook: Notebook, bot: Agent
) -> None:
    notebook("%config DurableMagics.on_pause = 'stop'")
    assert isinstance(notebook(CELL.format(options="")).error, RunPaused)
    assert notebook(CELL.format(options="--on-pause continue")).error is None
    notebook("%config DurableMagics.on_pause = None")
    assert notebook(CELL.format(options="")).error is None


def test_config_shows_what_there_is_to_decide(notebook: Notebook) -> None:
    printed = notebook("%config DurableMagics").printed
    assert all(f"DurableMagics.{name}=" in printed for name in SETTINGS)
    assert "what a cell does where a person has to decide: continue, stop or wait" in printed


def test_quiet_cells_show_no_card_unless_somebody_has_to_decide(
    notebook: Notebook, bot: Agent, tmp_path: Path
) -> None:
    say(tmp_path, "quiet = true")
    assert "waiting for you" in notebook(CELL.format(options="")).card
    notebook("%durable approve refund-1042")
    assert notebook(CELL.format(options="")).shown == []


def test_a_wait_that_has_no_end_and_an_end_without_a_wait_are_refused_before_anything_runs(
    notebook: Notebook, bot: Agent, store: Checkpointer
) -> None:
    endless = notebook(CELL.format(options="--on-pause wait")).error
    assert isinstance(endless, InvalidInput)
    assert "--timeout SECONDS" in str(endless)
    for policy in ("", "--on-pause stop"):
        idle = notebook(CELL.format(options=f"{policy} --timeout 3")).error
        assert isinstance(idle, InvalidInput)
        assert "--timeout belongs to --on-pause wait" in str(idle)
    assert not store.runs()


def test_a_projects_store_is_everybodys_and_its_path_starts_at_the_project(
    notebook: Notebook, bot: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(tmp_path, 'store = "kept/runs.sqlite3"')
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    assert "store" in notebook("%reload_ext durable_nb").printed
    notebook(CELL.format(options=""))
    bot.run("Refund order 1042", execution_id="b")
    assert (tmp_path / "kept" / "runs.sqlite3").exists()
    assert "2 runs" in notebook("%reload_ext durable_nb").printed
    monkeypatch.setenv("DURABLE_NB_STORE", str(tmp_path / "env.sqlite3"))
    assert default_store().path == tmp_path / "env.sqlite3"


def test_a_store_that_config_names_is_used_until_it_is_taken_back(
    notebook: Notebook, tmp_path: Path
) -> None:
    notebook("%config DurableMagics.store = 'other.sqlite3'")
    assert default_store().path == tmp_path / "other.sqlite3"
    notebook("%durable use third.sqlite3")
    assert default_store().path == tmp_path / "third.sqlite3"
    notebook("%config DurableMagics.store = None")
    assert default_store().path == tmp_path / ".durable" / "runs.sqlite3"


def test_an_address_stands_for_itself(folder: Path) -> None:
    use_store(None)
    say(folder, 'store = "postgresql://host/runs"')
    assert project_store() == "postgresql://host/runs"


def test_most_projects_say_nothing(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    found = project()
    assert found is not None
    assert found.said == {}
    assert project_store() is None


@pytest.mark.parametrize(
    "text",
    [
        'tool = "durable_nb"',
        "# durable_nb\na = " + "[" * 9000,
        '[tool.durable_nb]\nstore = "~nobody-of-that-name/runs.sqlite3"',
        '[tool.durable_nb]\nstore = "a\\u0000b"',
    ],
)
def test_a_project_file_of_any_form_is_read_or_refused_in_a_line(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(text)
    if text.startswith("tool"):
        assert project_store() is None
        return
    with pytest.raises(InvalidInput):
        default_store()


def test_a_number_that_no_float_holds_is_no_length_of_time(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="timeout takes a number of seconds above 0"):
        decided(lambda name: 10**400 if name == "timeout" else None)
