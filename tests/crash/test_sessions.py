"""What only a server can do to a run: a session that is ended, an answer that is not heard, an owner
on a machine that nobody can look at (A15, DESIGN section 7)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from durable_nb import PostgresCheckpointer, Resume, RunIsLive
from tests.crash.agents import make
from tests.support.agents import nodes
from tests.support.children import TIMEOUT
from tests.support.ledger import Ledger
from tests.support.postgres import server
from tests.support.wire import wire

CHARGE = "charge 1042 5000"
ENDED = [
    ("turn:0", "completed"),
    ("turn:0/tool:refund", "completed"),
    ("turn:1", "completed"),
    ("run_end", "completed"),
]
_LOCKED_BY = """
select pid from pg_locks where locktype = 'advisory' and (classid::bigint << 32) | objid::bigint = %s
"""


@pytest.fixture
def kind() -> str:
    return "postgres"


@pytest.fixture
def ask(store: PostgresCheckpointer) -> Iterator[Callable[..., Sequence[tuple[Any, ...]]]]:
    """Asks the server something in the store's schema, on a connection of the test's own."""
    with psycopg.connect(server(), autocommit=True) as db:
        db.execute(f"set search_path to {store.schema}")

        def rows(statement: str, values: Sequence[object] = ()) -> Sequence[tuple[Any, ...]]:
            found = db.execute(statement, values)
            return found.fetchall() if found.description else []

        yield rows


def locked_by(ask, store) -> Sequence[tuple[int]]:
    """The server's processes that hold the lock of the run's newest claim."""
    return ask(_LOCKED_BY, [store.load("r1").rows[-1].writer])


def wait_until_free(ask, store) -> None:
    give_up = time.monotonic() + TIMEOUT
    while locked_by(ask, store):
        assert time.monotonic() < give_up
        time.sleep(0.005)


@pytest.fixture
def owner(start, wait_for, tmp_path: Path):
    """A child inside of its tool."""
    (tmp_path / "hold").touch()
    child = start("held")
    wait_for("entered")
    return child


def test_an_owner_whose_session_is_ended_in_its_tool_goes_on_alone(
    owner, ask, store, effects, tmp_path
) -> None:
    ((pid,),) = locked_by(ask, store)
    ask("select pg_terminate_backend(%s)", [pid])
    with pytest.raises(RunIsLive):
        make("held", store, tmp_path).resume("r1")
    (tmp_path / "go").touch()
    assert owner.outcome() == "completed"
    assert effects.lines == ["entered", "charge 1042"]
    assert nodes(store, "r1") == ENDED


def test_an_owner_whose_session_is_ended_takes_its_lock_again(owner, ask, store, tmp_path) -> None:
    ((pid,),) = locked_by(ask, store)
    ask("select pg_terminate_backend(%s)", [pid])
    give_up = time.monotonic() + TIMEOUT
    while locked_by(ask, store) in ([], [(pid,)]):  # it looks after its session by itself
        assert time.monotonic() < give_up
        time.sleep(0.05)
    ask("update processes set seen_at = seen_at - interval '1 hour'")
    with pytest.raises(RunIsLive):
        make("held", store, tmp_path).resume("r1")


def test_an_owner_killed_on_this_machine_is_dead_at_once(
    owner, ask, store, seen_dead, effects, tmp_path
) -> None:
    ask("update processes set seen_at = seen_at + interval '1 hour'")  # so time proves nothing
    owner.kill()
    assert seen_dead() == ["crashed"]
    (tmp_path / "go").touch()
    assert make("held", store, tmp_path).resume("r1").status == "completed"
    assert effects.lines == ["entered", "entered", "charge 1042"]


@pytest.mark.parametrize("unknown", ["boot", "namespace"])
def test_an_owner_that_cannot_be_looked_at_is_dead_when_not_heard_of_for_15_seconds(
    owner, ask, store, tmp_path, unknown: str
) -> None:
    owner.kill()
    wait_until_free(ask, store)
    ask(f"update processes set {unknown} = 'another', seen_at = clock_timestamp()")
    with pytest.raises(RunIsLive):
        make("held", store, tmp_path).resume("r1")
    assert store.runs()[0].status == "running"
    ask("update processes set seen_at = clock_timestamp() - interval '16 seconds'")
    assert store.runs()[0].status == "crashed"
    (tmp_path / "go").touch()
    assert make("held", store, tmp_path).resume("r1").status == "completed"


def test_a_new_process_with_the_number_of_a_dead_one_is_not_its_owner(
    owner, ask, store, seen_dead
) -> None:
    owner.kill()
    ask("update processes set pid = pg_backend_pid(), seen_at = seen_at + interval '1 hour'")
    assert seen_dead() == ["crashed"]


@contextmanager
def cut_store(folder: Path, connection: int, answer: int):
    """A store one of whose connections will be cut, open before that."""
    folder.mkdir()
    with wire() as line:
        store = PostgresCheckpointer(line.dsn, schema=f"cut{connection}_{answer}_{time.time_ns()}")
        assert store.runs() == []
        line.cut(connection, answer)
        yield store, line
        store.close()


@pytest.mark.parametrize("connection", [1, 2], ids=["writes", "reads"])
def test_no_answer_of_the_server_has_to_be_heard(connection: int, tmp_path: Path) -> None:
    """Whether the commit was not heard of, or was not made: one accepted log, one charge."""
    for answer in count(1):
        folder = tmp_path / str(answer)
        with cut_store(folder, connection, answer) as (store, line):
            assert make("gated", store, folder).run("go", execution_id="r1").status == "paused"
            agent = make("gated", store, folder)
            assert agent.resume("r1", resume_value=Resume(True)).status == "completed"
            assert Ledger(folder / "effects").lines == [CHARGE]
            assert [effect.attempts for effect in store.effects("r1")] == [1]
            assert len(store.list("r1")) == 6
            if not line.is_cut:
                break
    assert answer > 5
