"""The file tools stay in their directory and off the store; a refusal is read and the run goes on
(CASES W5, W6, W7)."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from durable_nb import Call, SQLiteCheckpointer, call, tree_hash
from durable_nb.stores.open import use_store
from durable_nb.workspace import Workspace
from durable_nb.workspace.apart import search_apart
from durable_nb.workspace.place import Place
from tests.support.agents import bot, told
from tests.workspace import site

SECRET = "nobody in here may read this"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A working directory with every way out that a link can be, and a secret outside."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text(SECRET)
    inside = tmp_path / "site"
    (inside / "sub").mkdir(parents=True)
    (inside / "a.txt").write_text("a\n")
    (inside / "sub" / "b.txt").write_text("b\n")
    (inside / "out").symlink_to("../outside")
    (inside / "out_file").symlink_to("../outside/secret")
    (inside / "out_absolute").symlink_to(tmp_path / "outside" / "secret")
    (inside / "sub" / "out_again").symlink_to("../out")
    (inside / "in_file").symlink_to("sub/../a.txt")
    (inside / "in_folder").symlink_to("sub")
    (inside / "loop").symlink_to("loop")
    os.mkfifo(inside / "fifo")
    return inside


def answers(tmp_path: Path, *calls: Call) -> list[str]:
    """What the model reads of these calls, made in one run that has to come to its end."""
    result = site.start(site.agent(tmp_path, [list(calls), "Done."]), tmp_path)
    assert result.output == "Done."
    return told(result)


OUTSIDE = [
    "../outside/secret",
    "sub/../../outside/secret",
    "sub/../a.txt",
    "/etc/passwd",
    "//etc/passwd",
    "~/secret",
    "out/secret",
    "out_file",
    "out_absolute",
    "sub/out_again/secret",
    "loop",
    "out/new/secret",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_leads_out_of_the_directory(tmp_path: Path, directory: Path, path: str) -> None:
    before = tree_hash(tmp_path / "outside"), tree_hash(directory)
    texts = answers(
        tmp_path,
        call("read", path=path),
        call("write", path=path, content="mine"),
        call("edit", path=path, old="nobody", new="everybody"),
        call("list", path=path),
        call("search", path=path, expression="nobody"),
    )
    assert [text for text in texts if not text.startswith("Error: PermissionError: ")] == []
    assert SECRET not in "".join(texts)
    assert (tree_hash(tmp_path / "outside"), tree_hash(directory)) == before


@pytest.mark.parametrize("pattern", ["/etc/*", "../*", "sub/../../*", "**/../*", "~/*"])
def test_no_pattern_leads_out_of_the_directory(
    tmp_path: Path, directory: Path, pattern: str
) -> None:
    texts = answers(
        tmp_path,
        call("list", pattern=pattern),
        call("search", expression=".", pattern=pattern),
    )
    assert [text for text in texts if not text.startswith("Error: PermissionError: ")] == []


def test_listing_and_searching_show_links_and_do_not_follow_them(
    tmp_path: Path, directory: Path
) -> None:
    listed, found = answers(
        tmp_path, call("list", pattern="**"), call("search", expression="nobody")
    )
    assert "out -> ../outside" in listed.splitlines()
    assert "secret" not in listed.replace("-> ../outside/secret", "").replace(
        f"-> {tmp_path}/outside/secret", ""
    )
    assert found == "[no line matches]"


def test_a_link_that_stays_inside_works(tmp_path: Path, directory: Path) -> None:
    texts = answers(
        tmp_path,
        call("read", path="in_file"),
        call("write", path="in_folder/c.txt", content="c\n"),
        call("edit", path="in_file", old="a", new="aa"),
        call("list", path="in_folder"),
    )
    assert texts[0] == "a\n"
    assert texts[3] == "in_folder/b.txt  (2 bytes)\nin_folder/c.txt  (2 bytes)\n" + (
        "in_folder/out_again -> ../out"
    )
    assert (directory / "a.txt").read_text() == "aa\n"
    assert (directory / "in_file").is_symlink()


@contextmanager
def swapped(directory: Path) -> Iterator[None]:
    """While a name is a directory and a link out of here, in turns."""
    over = threading.Event()
    real, way = directory / "real", directory / "way"
    real.mkdir()
    (real / "secret").write_text("nothing")
    steps: list[Callable[[], object]] = [
        lambda: shutil.rmtree(way, ignore_errors=True),  # a write may have made it
        lambda: real.rename(way),
        lambda: way.rename(real),
        lambda: way.symlink_to("../outside"),
        lambda: way.unlink(),
    ]

    def swap() -> None:
        while not over.is_set():
            for step in steps:
                with suppress(OSError):
                    step()

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_link_made_between_the_check_and_the_use_leads_nowhere(
    tmp_path: Path, directory: Path
) -> None:
    workspace = Workspace(directory)
    read: list[str] = []
    with swapped(directory):
        for _ in range(2_000):
            try:
                read.append(workspace.read("way/secret"))
            except OSError as refused:
                read.append(type(refused).__name__)
        for _ in range(300):
            with suppress(OSError):
                workspace.write("way/secret", "nothing")
    assert {"nothing", "PermissionError"} <= {*read}  # it was both, while we read
    assert SECRET not in read
    assert (tmp_path / "outside" / "secret").read_text() == SECRET
    assert os.listdir(tmp_path / "outside") == ["secret"]


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (call("read", path="nope"), "Error: FileNotFoundError: there is no file 'nope'"),
        (call("read", path="sub"), "Error: IsADirectoryError: 'sub' is a directory"),
        (call("read", path="a.txt/b"), "Error: NotADirectoryError: 'a.txt' is not a directory"),
        (call("read", path="fifo"), "Error: PermissionError: 'fifo' is not a regular file"),
        (call("read", path="a\0b"), "Error: ValueError: a path has no NUL"),
        (call("read", path="a.txt", start=3), "Error: ValueError: 'a.txt' has fewer than 3 lines"),
        (call("read", path="a.txt", start=0), "Error: invalid arguments for read: start:"),
        (call("read"), "Error: invalid arguments for read: path: Field required"),
        (
            call("read", path="binary"),
            "Error: ValueError: 'binary' is not text: a binary file of 3",
        ),
        (call("read", path="latin"), "café\n[not UTF-8: read as Latin-1]"),
        (call("read", path="empty"), "[the file is empty]"),
        (call("read", path="x" * 300), "Error: "),
        (call("write", path="sub", content=""), "Error: IsADirectoryError: 'sub' is a directory"),
        (call("write", path=".", content=""), "Error: IsADirectoryError: '.' is a directory"),
        (call("write", path="fifo", content=""), "Error: PermissionError: 'fifo' is not a regular"),
        (call("write", path="a.txt/b", content=""), "Error: NotADirectoryError: "),
        (call("list", path="nope"), "Error: FileNotFoundError: there is no directory 'nope'"),
        (call("list", path="a.txt"), "Error: NotADirectoryError: 'a.txt' is not a directory"),
        (call("list", pattern="*.py"), "[nothing there matches]"),
        (call("search", expression="("), "Error: ValueError: '(' is not a regular expression: "),
        (call("search", expression="é"), "latin:1: café"),
        (call("search", expression="z", path="a.txt"), "[no line matches]"),
        (call("search", expression="^b$", pattern="**/*.txt"), "sub/b.txt:1: b"),
        (call("bash", command="true", timeout=0), "Error: invalid arguments for bash: timeout:"),
    ],
)
def test_what_cannot_be_done_is_told_to_the_model(
    tmp_path: Path, directory: Path, asked: Call, answer: str
) -> None:
    (directory / "binary").write_bytes(b"a\0b")
    (directory / "latin").write_bytes(b"caf\xe9")
    (directory / "empty").touch()
    assert answers(tmp_path, asked)[0].startswith(answer)


def test_a_write_that_fails_leaves_the_file_as_it_was_and_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))  # as a full disk would refuse
    try:
        with pytest.raises(OSError, match="File too large"):
            Workspace(tmp_path).write("a.txt", "x" * 200_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.txt": "before"}


def test_a_file_of_1_gb_is_read_and_searched_in_pieces(tmp_path: Path, directory: Path) -> None:
    with (directory / "huge").open("wb") as file:
        file.write(b"first\nsecond\n" + b"x" * 200_000)
        file.truncate(1_000_000_000)  # the rest are zeros, and takes no room
    read, long, edited, found = answers(
        tmp_path,
        call("read", path="huge", lines=1),
        call("read", path="huge", start=3),
        call("edit", path="huge", old="first", new="1st"),
        call("search", path="huge", expression="^sec"),
    )
    assert read == "first\n\n[cut here, go on with start=2; the file has 1,000,000,000 bytes]"
    assert long.startswith("xxx")
    assert "[line 3 is cut here, go on with start=4; " in long
    assert len(long) < 51_000
    assert edited.startswith("Error: ValueError: 'huge' has 1,000,000,000 bytes; edit takes up to")
    assert found == "huge:2: second"


def test_reading_takes_memory_for_what_is_read_and_not_for_the_file(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.write(b"x" * 100_000_000 + b"\nlast\n")
    workspace = Workspace(tmp_path)
    tracemalloc.start()
    assert workspace.read("huge", 2) == "last\n"
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000


def test_a_long_file_is_read_on_where_it_was_cut(tmp_path: Path) -> None:
    lines = [f"line {number} é\n" for number in range(1, 30_001)]
    (tmp_path / "a.txt").write_text("".join(lines))
    workspace, read, start = Workspace(tmp_path), "", "1"
    while start:
        part = workspace.read("a.txt", int(start), 100_000)
        text, _, note = part.partition("\n[cut here, go on with start=")
        read, start = read + text, note.partition(";")[0]
    assert read == "".join(lines)


def test_answers_of_list_and_search_are_bounded_and_say_so(tmp_path: Path) -> None:
    for number in range(1_100):
        (tmp_path / f"{number}.txt").write_text("here\n" * 2)
    workspace = Workspace(tmp_path)
    listed = workspace.list_files().splitlines()
    assert len(listed) == 1_001
    assert listed[-1] == "[cut here: more than 1,000 names; narrow the pattern or the path]"
    found = workspace.search("here").splitlines()
    assert len(found) == 201
    assert found[-1] == "[cut here: more than 200 lines match; narrow the search]"


def test_a_search_that_never_ends_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a" * 100 + "b")
    with pytest.raises(TimeoutError, match="took longer than 1 s and was stopped"):
        search_apart(Place(str(tmp_path)), "(a+)+$", ".", "**", seconds=1)


# --- the store ------------------------------------------------------------------------------------

STORES = {
    "in the directory": "runs.sqlite3",
    "in a folder of it": ".durable/runs.sqlite3",
}


def refusals(store: str) -> list[Any]:
    """Every way to get at a store's files, those that do not exist included."""
    paths = [store + suffix for suffix in ("", "-wal", "-shm", "-journal", "-locks")]
    paths += ["alias", "linked"]
    return [
        tried
        for path in paths
        for tried in (
            call("read", path=path),
            call("write", path=path, content="x"),
            call("edit", path=path, old="SQLite", new="x"),
            call("search", path=path, expression="SQLite"),
        )
    ]


@pytest.mark.parametrize("name", STORES.values(), ids=STORES)
def test_the_file_tools_refuse_the_store_of_their_run(tmp_path: Path, name: str) -> None:
    store = SQLiteCheckpointer(tmp_path / name)
    (tmp_path / "alias").symlink_to(name)
    calls = refusals(name)
    hard_link = call("bash", command=f"ln {name} linked")
    script = [
        hard_link,
        calls,
        [call("list", pattern="**"), call("search", expression="SQLite")],
        "Done.",
    ]
    agent = bot(store, script, *Workspace(tmp_path).tools())
    result = agent.run("Go", execution_id="r")
    _, *texts = told(result)
    refused = texts[: len(calls)]
    assert [text for text in refused if "belongs to the store of the runs" not in text] == []
    assert "sqlite3" not in texts[-2].replace(f"alias -> {name}", "")
    assert "linked" not in texts[-2]
    assert texts[-1] == "[no line matches]"
    store.close()


def test_the_store_of_other_runs_is_left_alone_too(tmp_path: Path) -> None:
    other = SQLiteCheckpointer(tmp_path / "other.sqlite3")
    bot(other, ["Done."]).run("Go")
    workspace = Workspace(tmp_path)
    assert workspace.list_files(pattern="**") == "[nothing there matches]"
    assert workspace.search("SQLite") == "[no line matches]"
    with pytest.raises(PermissionError, match="belongs to the store of the runs"):
        workspace.read("other.sqlite3")
    other.close()


def locks(file: Path) -> list[str]:
    """The locks on a file that this process holds, as the kernel lists them."""
    inode, me = f":{file.stat().st_ino} ", f" {os.getpid()} "
    listed = Path("/proc/locks").read_text().splitlines()
    return [line.split(":", 1)[1] for line in listed if inode in line and me in line]


def test_no_tool_and_no_hash_drops_the_locks_of_the_store(tmp_path: Path) -> None:
    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
    held: list[tuple[list[str], list[str]]] = []

    def look() -> str:
        database = tmp_path / "runs.sqlite3"
        held.append((locks(database), locks(tmp_path / "runs.sqlite3-shm")))
        return "looked"

    def compare() -> str:
        return tree_hash(tmp_path)

    calls = [*refusals("runs.sqlite3"), call("list", pattern="**"), call("search", expression=".")]
    script = [call("look"), calls, call("compare"), call("look"), "Done."]
    bot(store, script, look, compare, *Workspace(tmp_path).tools()).run("Go", execution_id="r")
    assert held[0][0]
    assert held[0][1]
    assert held[0] == held[1]
    store.close()


def test_the_default_store_is_refused_to_runs_of_other_stores_too(
    tmp_path: Path, directory: Path
) -> None:
    other = SQLiteCheckpointer(directory / "other.sqlite3")
    other.runs()
    with sqlite3.connect(directory / "other.sqlite3") as db:  # a file that no run has locked yet
        db.execute("create table t (a)")
    db.close()
    use_store(other)
    try:
        (text,) = answers(tmp_path, call("read", path="other.sqlite3"))
    finally:
        use_store(None)
        other.close()
    assert "belongs to the store of the runs" in text
