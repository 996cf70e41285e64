"""What the variables of proxies mean: nothing on loopback, and a name where they may be to blame."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from durable_nb import Message, ModelFailed
from durable_nb.llm.adopt import as_model
from tests.llm.wire import ask, model_of, settle
from tests.support.provider_server import ProviderServer, says

START = [Message("user", "go")]
PASSWORD = "hunter22"
ELSEWHERE = (
    "openai-compatible:m@http://models.example/v1"  # it is never looked up: a proxy does that
)
ANSWER = "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy but the test's."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def closed() -> Iterator[int]:
    """A port of loopback where nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture
def proxy(request: pytest.FixtureRequest) -> Iterator[int]:
    """A proxy that gives one answer, with that status."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(ANSWER.format(status=request.param).encode())

        threading.Thread(target=refuse, daemon=True).start()
        yield listener.getsockname()[1]


def failed(llm: str) -> str:
    """What is said of a model that cannot be asked."""
    with pytest.raises(ModelFailed) as said:
        ask(as_model(llm, {"max_retries": 0}), START)
    return str(said.value)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_server_on_loopback_is_asked_without_a_proxy(name, variable, closed, monkeypatch):
    monkeypatch.setenv(variable, f"http://127.0.0.1:{closed}")
    with ProviderServer([says("ok")]) as server:
        settle(monkeypatch, server)
        assert ask(model_of(name, server), START).message.content == "ok"


@pytest.mark.parametrize("host", ["localhost", "127.8.9.10", "[::1]"])
def test_loopback_has_many_names(host, closed, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    said = failed(f"openai-compatible:m@http://{host}:{closed}/v1")
    assert "in one attempt: connection" in said
    assert "proxy" not in said


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_proxy_that_is_not_there_is_named_without_its_password(variable, closed, monkeypatch):
    monkeypatch.setenv(variable, f"http://me:{PASSWORD}@127.0.0.1:{closed}/")
    said = failed(ELSEWHERE)
    way = f"through the proxy of {variable}, http://127.0.0.1:{closed}: connection refused;"
    assert way in said
    assert PASSWORD not in said


@pytest.mark.parametrize("proxy", ["407 Proxy Authentication Required"], indirect=True)
def test_what_a_proxy_refuses_names_it(proxy, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", f"http://me:{PASSWORD}@127.0.0.1:{proxy}")
    said = failed(ELSEWHERE)
    assert f"through the proxy of HTTP_PROXY, http://127.0.0.1:{proxy}: 407" in said
    assert PASSWORD not in said


@pytest.mark.parametrize("proxy", ["404 Not Found"], indirect=True)
def test_what_the_provider_refuses_is_not_laid_to_a_proxy(proxy, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy}")
    said = failed(ELSEWHERE)
    assert "404" in said
    assert "proxy" not in said


def test_a_host_that_no_proxy_is_for_is_asked_without(closed, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{closed}")
    monkeypatch.setenv("NO_PROXY", "0.0.0.0")
    assert "proxy" not in failed(f"openai-compatible:m@http://0.0.0.0:{closed}/v1")
