"""Every snippet of the README runs, in a real kernel, and shows what the README says it shows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

import durable_nb
from durable_nb.cli import parser
from durable_nb.notebook.commands import COMMANDS
from durable_nb.notebook.extension import MAGICS
from durable_nb.tour import executed
from durable_nb.tour.text import as_text
from tests.bench import costs
from tests.docs.outputs import NOTEBOOKS, normal

README = (NOTEBOOKS.parent / "README.md").read_text()
FENCE = re.compile(r"^```(\w+)\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


def snippets() -> list[tuple[str, str]]:
    """Each Python snippet with the text that follows it: what it prints."""
    fences = FENCE.findall(README)
    return [
        (source, fences[at + 1][1] if fences[at + 1][0] == "text" else "")
        for at, (language, source) in enumerate(fences)
        if language == "python"
    ]


def code_of_docs() -> str:
    """All that the README and the notebooks put as code."""
    spans = [source for _, source in FENCE.findall(README)]
    spans += re.findall(r"`([^`\n]+)`", FENCE.sub("", README))
    for path in NOTEBOOKS.glob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        spans += [cell.source for cell in cells if cell.cell_type == "code"]
    return "\n".join(spans)


def test_every_snippet_shows_what_the_readme_says(tmp_path: Path) -> None:
    path = tmp_path / "readme.ipynb"
    cells = [new_code_cell(source) for source, _ in snippets()]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
    for cell, (source, shown) in zip(normal(executed(path)).cells, snippets(), strict=True):
        without_code = new_code_cell("", outputs=cell.outputs, execution_count=1)
        assert as_text(without_code).removeprefix("In [1]: ").strip() == shown.strip(), source


@pytest.mark.parametrize("name", durable_nb.__all__)
def test_every_public_name_is_shown_in_the_readme_or_a_notebook(name: str) -> None:
    assert re.search(rf"\b{name}\b", code_of_docs())


MAGIC_WORDS = [
    *(f"%{name}" for name in MAGICS["line"]),
    *(f"%%{name}" for name in MAGICS["cell"]),
    *(f"%durable {command}" for command in COMMANDS),
]


@pytest.mark.parametrize("magic", MAGIC_WORDS)
def test_every_magic_is_shown_in_the_readme_or_a_notebook(magic: str) -> None:
    assert re.search(rf"(?<!%){magic}\b", code_of_docs())


def test_every_command_of_the_shell_is_named_in_the_readme() -> None:
    (commands,) = (
        action.choices for action in parser()._actions if isinstance(action.choices, dict)
    )
    assert [name for name in commands if f"`{name}`" not in README.replace("durable-nb ", "")] == [
        "tour"  # it is in one of the two commands
    ]


def test_the_table_of_costs_is_the_one_that_the_benchmark_prints() -> None:
    rows = [f"| {name} |" for name in costs.WORK]
    assert all(row in README for row in rows)
    assert "cores" in README.split(rows[0])[0].rpartition("| on ")[2]


COURSE = re.findall(
    r"^\| (\d\d) \| \[([^\]]+)\]\(notebooks/([^)]+)\) \| \S.*\|$", README, re.MULTILINE
)


def test_the_walkthroughs_are_all_on_the_map_in_the_order_of_the_course() -> None:
    assert [name for _, _, name in COURSE] == sorted(
        path.name for path in NOTEBOOKS.glob("*.ipynb")
    )
    assert [number for number, _, _ in COURSE] == [f"{n:02}" for n in range(1, len(COURSE) + 1)]


@pytest.mark.parametrize(("number", "title", "name"), COURSE)
def test_a_walkthrough_has_the_number_and_the_title_that_the_map_gives_it(
    number: str, title: str, name: str
) -> None:
    first = nbformat.read(NOTEBOOKS / name, as_version=4).cells[0].source
    assert name.startswith(f"{number}_")
    assert first.startswith(f"# {title}")


def test_the_picture_is_small_and_says_what_it_shows_to_those_who_do_not_see_it() -> None:
    ((said, path),) = re.findall(r"!\[(.*)\]\((.+)\)", README)
    assert (NOTEBOOKS.parent / path).stat().st_size < 100_000
    assert "waiting for you" in said


def test_every_task_and_every_extra_that_it_names_is_there() -> None:
    project = tomllib.loads((NOTEBOOKS.parent / "pyproject.toml").read_text())
    tasks = set(re.findall(r"\bpoe (\w+)", README))
    extras = set(",".join(re.findall(r"'\.\[([\w,]+)\]'", README)).split(","))
    assert {"check"} < tasks <= project["tool"]["poe"]["tasks"].keys()
    assert {"lab", "test"} < extras <= project["project"]["optional-dependencies"].keys()


@pytest.mark.parametrize(
    "command", ["pip install '.[lab]' && durable-nb tour", "pip install '.[test]' && pytest"]
)
def test_each_of_the_two_commands_is_one_line(command: str) -> None:
    assert ("bash", command) in FENCE.findall(README)
