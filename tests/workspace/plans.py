"""What the scripted models of these tests ask for, by name, so that any process has the same."""

from __future__ import annotations

from durable_nb import call

LOG = "log"  # the file that each command of a plan appends to
STUBBORN = """
trap '' TERM
(trap '' TERM; exec sleep 1000) & echo $! >> pids
(trap '' TERM; exec setsid sleep 1000) & echo $! >> pids
(trap '' TERM; (exec setsid sleep 1000) & echo $! >> pids)
echo $$ >> pids; mv pids processes; wait
"""  # four processes that ignore SIGTERM, two of them in sessions of their own, one an orphan

PLANS = {
    "files": [
        [
            call("write", path="a.txt", content="one\ntwo\n"),
            call("write", path="deep/er/b.txt", content="b\n"),
        ],
        call("edit", path="a.txt", old="two", new="two and a half"),
        [
            call("edit", path="a.txt", old="one", new="one one"),
            call("list", pattern="**"),
            call("edit", path="a.txt", old="half", new="quarter"),
        ],
        call("write", path="deep/er/b.txt", content="b, again\n"),
        "Done.",
    ],
    "touches": [
        call("write", path="deep/er/a.txt", content="one\n"),
        call("edit", path="deep/er/a.txt", old="one", new="one one"),
        "Done.",
    ],
    "edit": [call("edit", path="a.txt", old="one", new="one one"), "Done."],
    "batch": [
        [
            call("write", path="a.txt", content="a\n"),
            call("bash", command=f"echo 1 >> {LOG}"),
            call("bash", command=f"echo 2 >> {LOG}"),
        ],
        "Done.",
    ],
    "stubborn": [call("bash", command=f"echo 1 >> {LOG}\n{STUBBORN}"), "Done."],
}

FILES = {
    "files": {"a.txt": "one one\ntwo and a quarter\n", "deep/er/b.txt": "b, again\n"},
    "touches": {"deep/er/a.txt": "one one\n"},
}  # what the directory holds when a plan is carried out
