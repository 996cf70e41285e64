"""`tree_hash`: equal trees have one hash, and any single change gives another."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from durable_nb import InvalidInput, SQLiteCheckpointer, call, tree_hash
from tests.support.agents import bot


@dataclass(frozen=True)
class File:
    content: bytes
    program: bool = False


@dataclass(frozen=True)
class Link:
    target: str


Tree: TypeAlias = Mapping[str, "File | Link | Tree"]

names = st.text("ab .é\n", min_size=1, max_size=3).filter(lambda name: name not in (".", ".."))
leaves = st.one_of(
    st.builds(File, st.binary(max_size=4), st.booleans()),
    st.builds(Link, st.sampled_from(["a", "b", "a/b", "../a"])),
)
trees = st.recursive(
    st.dictionaries(names, leaves, max_size=3),
    lambda inner: st.dictionaries(names, st.one_of(leaves, inner), max_size=3),
    max_leaves=6,
)


def built(tree: Tree, folder: Path, *, backwards: bool = False) -> None:
    """Put a tree on the disk, in either order."""
    folder.mkdir(exist_ok=True)
    for name, node in reversed(tree.items()) if backwards else tree.items():
        path = folder / name
        match node:
            case File(content, program):
                path.write_bytes(content)
                path.chmod(0o755 if program else 0o644)
            case Link(target):
                path.symlink_to(target)
            case _:
                built(node, path, backwards=backwards)


@contextmanager
def a_folder() -> Iterator[Path]:
    """Not pytest's: each example needs its own."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder, "root")


def hash_of(tree: Tree, *, backwards: bool = False) -> str:
    with a_folder() as folder:
        built(tree, folder, backwards=backwards)
        return tree_hash(folder)


def changes(tree: Tree) -> Iterator[Tree]:
    """Every tree that is one change away: an entry less, one other, one renamed, one more."""
    yield {**tree, "new": {}}
    yield {**tree, "new": File(b"")}
    for name, node in tree.items():
        rest = {other: kept for other, kept in tree.items() if other != name}
        yield rest
        yield {**rest, "new": node}
        for changed in altered(node):
            yield {**rest, name: changed}


def altered(node: Any) -> Iterator[Any]:
    match node:
        case File(content, program):
            yield replace(node, content=content + b"\0")
            yield replace(node, program=not program)
            yield Link(content.decode("latin-1").replace("\0", "") or "a")
            yield {}
        case Link(target):
            yield Link(target + "a")
            yield File(target.encode())
        case _:
            yield File(b"")
            yield from changes(node)


@given(trees)
@settings(max_examples=60, deadline=None)
def test_a_tree_built_in_another_order_has_the_same_hash(tree: Tree) -> None:
    assert hash_of(tree) == hash_of(tree, backwards=True)


@given(trees, st.data())
@settings(max_examples=150, deadline=None)
def test_any_single_change_gives_another_hash(tree: Tree, data: st.DataObject) -> None:
    changed = data.draw(st.sampled_from(list(changes(tree))))
    assume(changed != tree)
    assert hash_of(tree) != hash_of(changed)


@given(trees, trees)
@settings(max_examples=60, deadline=None)
def test_two_trees_share_a_hash_only_if_they_are_equal(one: Tree, other: Tree) -> None:
    assert (hash_of(one) == hash_of(other)) == (one == other)


def test_trees_that_differ_only_in_where_a_name_ends_have_two_hashes() -> None:
    assert hash_of({"a": Link("b"), "c": Link("d")}) != hash_of({"a": Link("bclinkd")})


TREE: Tree = {"a": File(b"a"), "folder": {"b": File(b"b", True), "empty": {}, "c": Link("../a")}}


@pytest.mark.parametrize(
    "change",
    [
        lambda root: os.utime(root / "a", (1, 1)),
        lambda root: (root / "a").chmod(0o600),
        lambda root: built({".git": {"HEAD": File(b"x"), "refs": {}}}, root),
        lambda root: built({".git": File(b"gitdir: elsewhere")}, root / "folder"),
        lambda root: built({"s": File(b"x"), "s-wal": File(b"x"), "s-locks": File(b"")}, root),
        lambda root: built({".durable": {"s": File(b"x"), "s-locks": File(b"")}}, root),
        lambda root: built(
            {"s": File(b"x"), "s-shm": File(b""), "s-locks": {"1": Link("a")}}, root
        ),
    ],
    ids=["times", "other bits", ".git", "a .git file", "a store", "its folder", "its locks"],
)
def test_what_does_not_count_does_not_change_the_hash(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    built(TREE, tmp_path / "root")
    before = tree_hash(tmp_path / "root")
    change(tmp_path / "root")
    assert tree_hash(tmp_path / "root") == before == hash_of(TREE)


@pytest.mark.parametrize(
    "more",
    [
        {"s-locks": File(b"")},  # without a store beside it
        {"s": File(b"x"), "s-locks": File(b"words")},  # a lock file of somebody else's
        {"s": {}, "s-locks": File(b"")},
        {"package-lock.json": File(b"{}")},
        {".gitignore": File(b"x")},
        {".durable": {"notes": File(b"x")}},
    ],
)
def test_what_only_looks_like_a_store_counts(more: Tree) -> None:
    assert hash_of({**TREE, **more}) != hash_of(TREE)


def test_a_live_store_in_the_directory_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    alone = tree_hash(tmp_path)
    hashes: list[str] = []

    def look() -> str:
        hashes.append(tree_hash(tmp_path))
        return "looked"

    for store in (tmp_path / "runs.sqlite3", tmp_path / ".durable" / "runs.sqlite3"):
        bot(SQLiteCheckpointer(store), [call("look"), "Done."], look).run("Go", workdir=tmp_path)
    assert hashes == [alone, alone]


def test_special_files_count_and_are_not_opened(tmp_path: Path) -> None:
    before = tree_hash(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    assert tree_hash(tmp_path) != before


def test_names_that_are_not_text_count(tmp_path: Path) -> None:
    hashes = {tree_hash(tmp_path)}
    for name in (b"\xff", b"\xfe"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).touch()
        hashes.add(tree_hash(tmp_path))
    assert len(hashes) == 3


def test_a_very_deep_directory_is_hashed(tmp_path: Path) -> None:
    before = tree_hash(tmp_path)
    subprocess.run(["mkdir", "-p", "d/" * 1_500], cwd=tmp_path, check=True)
    try:
        assert tree_hash(tmp_path) != before
    finally:
        subprocess.run(["rm", "-r", "d"], cwd=tmp_path, check=True)  # too deep for Python's rmtree
    assert tree_hash(tmp_path) == before


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "nope"):
        with pytest.raises(InvalidInput, match="is not a directory"):
            tree_hash(path)
