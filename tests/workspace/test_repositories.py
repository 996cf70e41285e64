"""The heads of repositories tell apart what a tree's hash does not (CASES W8)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from durable_nb import InvalidInput, call, tree_hash
from durable_nb.workspace import EndState, end_state, repository_heads
from tests.workspace import site

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="makes repositories with git")

GIT = "git -c user.name=ann -c user.email=ann@example.com -c init.defaultBranch=main"
DATED = "export GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'; "
COMMIT = f"{DATED} {GIT} commit -q --allow-empty -m charged"
BEGIN = f"{GIT} init -q; echo a > a; {GIT} add a; "


def sh(command: str, folder: Path) -> str:
    folder.mkdir(exist_ok=True)
    return subprocess.run(
        ["bash", "-ec", command], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def left_by(folder: Path, command: str) -> EndState:
    """The end state of a run whose one command this is."""
    folder.mkdir()
    result = site.start(site.agent(folder, [call("bash", command=command), "Done."]), folder)
    assert result.messages[-2].content == "[exit code 0]"
    return end_state(folder / "site")


def test_two_commits_are_told_from_one_although_the_tree_is_the_same(tmp_path: Path) -> None:
    once = left_by(tmp_path / "once", BEGIN + COMMIT)
    same = left_by(tmp_path / "same", BEGIN + COMMIT)
    twice = left_by(tmp_path / "twice", f"{BEGIN}{COMMIT}; {COMMIT}")
    assert once == same
    assert once.tree == twice.tree
    assert once.heads != twice.heads
    assert once != twice


def test_every_repository_below_is_read_loose_and_packed_as_git_reads_it(tmp_path: Path) -> None:
    make = (
        f"{BEGIN}{COMMIT}; git branch old; git branch feature/x; git pack-refs --all; "
        f"{COMMIT}2; git checkout -q -b new; {COMMIT}3; git tag -a -m t v1; "
        f"mkdir -p deep/er; cd deep/er; {BEGIN}{COMMIT}; git checkout -q --detach"
    ).replace("git tag", f"{GIT} tag")
    sh(make, tmp_path)
    heads = repository_heads(tmp_path)
    assert list(heads) == [".", "deep/er"]
    for path, found in heads.items():
        listed = sh(
            "git for-each-ref --format='%(refname) %(objectname)' refs/heads", tmp_path / path
        )
        branches = dict(line.split(" ") for line in listed.splitlines())
        assert {ref: commit for ref, commit in found.items() if ref != "HEAD"} == branches
    assert heads["."]["HEAD"] == "new"
    assert heads["deep/er"]["HEAD"] == sh("git rev-parse HEAD", tmp_path / "deep/er")


def test_a_worktree_has_its_own_head_and_the_branches_of_its_repository(tmp_path: Path) -> None:
    sh(f"mkdir main; cd main; {BEGIN}{COMMIT}; git worktree add -q -b side ../side", tmp_path)
    heads = repository_heads(tmp_path)
    assert (heads["main"]["HEAD"], heads["side"]["HEAD"]) == ("main", "side")
    assert heads["side"]["refs/heads/main"] == heads["main"]["refs/heads/main"]


def test_a_repository_without_a_commit_and_a_folder_that_is_none(tmp_path: Path) -> None:
    sh(f"{GIT} init -q; mkdir -p other/.git", tmp_path)
    assert repository_heads(tmp_path) == {".": {"HEAD": "main"}, "other": {}}


def test_a_repository_that_only_git_can_read_is_refused(tmp_path: Path) -> None:
    sh(f"{GIT} init -q; mkdir .git/reftable", tmp_path)
    with pytest.raises(InvalidInput, match="only git can read"):
        repository_heads(tmp_path)


def test_heads_of_what_is_no_directory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is not a directory"):
        repository_heads(tmp_path / "nope")
    assert tree_hash(tmp_path) == end_state(tmp_path).tree
