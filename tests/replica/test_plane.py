"""The reference plane: what it takes, what it refuses, and how it is started."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from durable_nb import InvalidInput, SQLiteCheckpointer, replica
from durable_nb.replica import parcel, plane
from durable_nb.replica.address import ROWS
from durable_nb.stores.replicated import Remembered, Replica
from tests.cli.conftest import COMMAND
from tests.contract.suite import paused


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteCheckpointer]:
    """A store with a paused run."""
    with closing(SQLiteCheckpointer(tmp_path / "runs.sqlite3")) as store:
        paused(store)
        yield store


@pytest.fixture
def rows(store: SQLiteCheckpointer) -> Sequence[Replica]:
    return store.outbox.copy("r1")


def kept(path: Path) -> list[str]:
    """The runs in a plane's file."""
    with closing(SQLiteCheckpointer(path)) as store:
        return [run.execution_id for run in store.runs()]


BAD = [
    (b'"turn"', b'"nap"', "checksum differs"),
    (b'"turn",0', b'"turn","0"', "valid integer"),
    (b'"rows":[[0', b'"rows":[[7', "a row of a run that is not in it"),
    (b'"rows":[[0', b'"rows":[[-1', "greater than or equal to 0"),
    (b'"created_at":5', b'"created_at":9223372036854775808', "too large a number"),
    (b'"base":0', b'"base":0.5', "valid integer"),
    (b'{"runs"', b'{"rums"', "is no parcel"),
]


def test_what_was_packed_is_unpacked(rows: Sequence[Replica]) -> None:
    assert parcel.unpack(parcel.pack(rows)) == rows


@pytest.mark.parametrize(("old", "new", "why"), BAD, ids=[why for *_, why in BAD])
def test_a_parcel_that_no_courier_made_is_refused_and_nothing_of_it_kept(
    old: bytes, new: bytes, why: str, rows: Sequence[Replica], tmp_path: Path
) -> None:
    body = parcel.pack(rows)
    assert old in body
    body = body.replace(old, new, 1)
    with plane.running(tmp_path / "plane.sqlite3") as url:
        answer = httpx.post(f"{url}/v1/rows", content=body, trust_env=False)
        assert (answer.status_code, list(answer.json())) == (422, ["error"])
        assert why in answer.json()["error"]
    assert kept(tmp_path / "plane.sqlite3") == []


def test_a_call_that_is_half_kept_is_refused(store: SQLiteCheckpointer) -> None:
    ((run, _, _), *_) = store.outbox.copy("r1")
    half = Replica(run, Remembered("k", "shop.charge", 2, 1, 12, 13, None))
    with pytest.raises(InvalidInput, match="half kept"):
        parcel.unpack(parcel.pack([half]))


@pytest.mark.parametrize("body", [b"", b"{}", b"\xff", b"[1]", b"null"])
def test_noise_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInput, match="is no parcel of rows"):
        parcel.unpack(body)


def test_a_plane_whose_file_cannot_be_written_asks_to_come_again(
    rows: Sequence[Replica], tmp_path: Path
) -> None:
    (tmp_path / "plane.sqlite3").mkdir()
    with plane.running(tmp_path / "plane.sqlite3") as url:
        answer = httpx.post(f"{url}/v1/rows", content=parcel.pack(rows), trust_env=False)
        assert answer.status_code == 503


def test_other_machines_need_a_key_and_a_port_that_is_free(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="DURABLE_NB_PLANE_KEY"):
        plane.serve(tmp_path / "plane.sqlite3", host="0.0.0.0")
    with plane.running(tmp_path / "plane.sqlite3") as url:
        taken = int(url.rpartition(":")[2])
        with pytest.raises(InvalidInput, match="choose another port"):
            plane.serve(tmp_path / "other.sqlite3", port=taken)


def test_a_plane_is_started_from_a_shell(store: SQLiteCheckpointer, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "plane.sqlite3"
    command = [*COMMAND, "plane", "--path", str(path), "--port", "0"]
    environment = {**os.environ, "DURABLE_NB_PLANE_KEY": "open-sesame"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, text=True, **pipes) as child:
        url = child.stdout.readline().strip()
        with replica.connect(url, store, key="open-sesame") as courier:
            assert courier.flush(60)
        child.send_signal(signal.SIGINT)
        said = child.stderr.read()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", url)
    assert str(path) in said
    assert "open-sesame" not in said
    assert kept(path) == ["r1"]


def test_a_plane_only_keeps_and_gives(store: SQLiteCheckpointer, tmp_path: Path) -> None:
    path = tmp_path / "plane.sqlite3"
    with plane.running(path) as url:
        with replica.connect(url, store) as courier:
            assert courier.flush(60)
        for method in ("PUT", "PATCH", "DELETE"):
            assert httpx.request(method, f"{url}/v1/rows", trust_env=False).status_code == 405
        given = httpx.get(f"{url}/v1/rows", params={"execution_id": "r1"}, trust_env=False)
        assert parcel.unpack(given.content) == store.outbox.copy("r1")
    with closing(SQLiteCheckpointer(path)) as its:
        assert its.load("r1") == store.load("r1")
        assert [pause.number for pause in its.list_pending_interrupts()] == [3]


def test_a_plane_loads_nothing_that_could_run_a_step() -> None:
    code = (
        "import sys; from durable_nb.replica import plane; plane.Plane\n"
        "print([name for name in sys.modules if name.startswith('durable_nb.runtime')])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"


def test_without_the_extra_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['httpx'] = None\n"
        "from durable_nb import replica\n"
        "try: replica.connect\n"
        "except ImportError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "durable_nb[plane]" in said.stdout


def test_an_import_loads_no_http() -> None:
    heavy = "{'httpx', 'starlette', 'uvicorn', 'pydantic', 'sqlite3', 'logging'}"
    code = (
        "import sys; import durable_nb; durable_nb.replica; durable_nb.ReplicatedCheckpointer\n"
        f"print({heavy} & set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "set()\n"


def test_a_plane_that_has_ended_holds_no_file(rows: Sequence[Replica], tmp_path: Path) -> None:
    """The last to close a file takes its write-ahead log away."""
    log = tmp_path / "plane.sqlite3-wal"
    with plane.running(tmp_path / "plane.sqlite3") as url:
        httpx.post(url + ROWS, content=parcel.pack(rows), trust_env=False).raise_for_status()
        assert log.exists()
    assert not log.exists()
