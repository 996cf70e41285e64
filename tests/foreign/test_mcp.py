"""The tools of an MCP server that is really there, over each transport."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from mcp.server import MCPServer
from pydantic_ai.mcp import MCPToolset, load_mcp_toolsets

from durable_nb import Agent, Checkpointer, InvalidInput, InvalidTool, Resume, call
from tests.foreign.shop import KEY, SERVER, done, gone, over_stdio, servers
from tests.support.agents import bot, told
from tests.support.ledger import Ledger


def test_a_servers_tools_are_listed_when_the_agent_is_made(
    store: Checkpointer, shop: MCPToolset, effects: Ledger
):
    agent = bot(store, ["-"], shop)
    tools = {each.name: each for each in agent.tools}
    assert list(tools)[:3] == ["refund", "price", "picture"]
    assert tools["refund"].description == "Pay money back."
    assert tools["refund"].schema["required"] == ["order", "amount"]
    assert json.loads(tools["price"].source)["annotations"]["readOnlyHint"] is True
    assert tools["price"].on_crash == "rerun"
    assert done(effects) == []


def test_a_run_calls_them_and_reads_text_json_and_what_a_picture_is(
    store: Checkpointer, shop: MCPToolset, effects: Ledger
):
    calls = [call("refund", order="1042", amount=20), call("price", order="7"), call("picture")]
    result = bot(store, [calls, "done"], shop).run("go")
    assert told(result) == [
        "refunded 20",
        '{"order":"7","cents":[1999,5]}',
        '["one pixel","[image/png, 70 bytes]"]',
    ]
    assert done(effects) == ["refund 1042 20"]
    assert len(servers(effects)) == 1


@pytest.mark.parametrize("make", [MCPToolset, Client, StreamableHttpTransport])
def test_a_server_on_the_network_is_handed_over_as_toolset_client_or_transport(
    store: Checkpointer, effects: Ledger, web_shop: Callable[[], str], make: Callable[[str], Any]
):
    agent = bot(store, [call("refund", order="1", amount=5), "done"], make(web_shop()))
    assert told(agent.run("go")) == ["refunded 5"]
    assert done(effects) == ["refund 1 5"]


def test_a_client_of_an_older_protocol_works_too(
    store: Checkpointer, effects: Ledger, web_shop: Callable[[], str]
):
    client = Client(StreamableHttpTransport(web_shop()), mode="legacy")
    agent = bot(store, [call("refund", order="1", amount=5), "done"], client)
    assert told(agent.run("go")) == ["refunded 5"]


def test_the_servers_of_a_configuration_file_are_toolsets(
    store: Checkpointer, effects: Ledger, tmp_path: Path
):
    server = {"command": sys.executable, "args": [str(SERVER), str(effects.path)]}
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"shop": server}}))
    agent = bot(store, [call("shop_price", order="7"), "done"], *load_mcp_toolsets(file))
    assert told(agent.run("go")) == ['{"order":"7","cents":[1999,5]}']


def test_a_server_of_this_process_needs_no_transport(store: Checkpointer):
    server = MCPServer("here")

    @server.tool()
    def pid() -> int:
        return os.getpid()

    assert told(bot(store, [call("pid"), "done"], server).run("go")) == [str(os.getpid())]


def test_an_error_of_the_server_is_what_the_model_reads(store: Checkpointer, shop: MCPToolset):
    calls = [call("refund", order="1", amount=5000), call("refund", order="1")]
    much, missing = told(bot(store, [*calls, "done"], shop).run("go"))
    assert much == "Error: ModelRetry: Error executing tool refund: 5000 is too much"
    assert "Field required" in missing


def test_a_key_of_the_server_reaches_neither_the_model_nor_the_store(
    store: Checkpointer, shop: MCPToolset, tmp_path: Path
):
    agent = bot(store, [call("secret"), "done"], shop)
    (text,) = told(agent.run("go"))
    assert text.endswith("no access with [key]")
    assert KEY not in agent.definition().text
    with sqlite3.connect(tmp_path / "runs.sqlite3") as db:
        assert not [line for line in db.iterdump() if KEY in line]


def test_a_server_that_cannot_be_reached_makes_no_agent_and_tells_no_key(store: Checkpointer):
    for absent in (
        StdioTransport("no-such-command", [KEY], env={"SHOP_KEY": KEY}),
        StreamableHttpTransport(f"http://user:{KEY}@127.0.0.1:1/mcp?key={KEY}"),
        StreamableHttpTransport("http://127.0.0.1:1/mcp", headers={"Authorization": KEY}),
    ):
        with pytest.raises(InvalidInput, match=r"the MCP server.* cannot be reached") as refused:
            bot(store, ["-"], absent)
        assert KEY not in str(refused.value)


class _Braces(BaseHTTPRequestHandler):
    """Answers with JSON that is no JSON-RPC."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        for name, value in (("Content-Type", "application/json"), ("Content-Length", "2")):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_what_is_no_mcp_server_is_refused_in_one_line(store: Checkpointer):
    with ThreadingHTTPServer(("127.0.0.1", 0), _Braces) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/mcp"
        with pytest.raises(InvalidInput, match=r"cannot be reached: .*validation") as refused:
            bot(store, ["-"], StreamableHttpTransport(address))
        server.shutdown()
    [line] = str(refused.value).splitlines()
    assert line.endswith(". Start it, then make the agent again")
    assert len(line) < 420


def test_calls_of_a_server_can_need_approval(
    store: Checkpointer, shop: MCPToolset, effects: Ledger
):
    guarded = shop.approval_required(lambda _, tool, given: tool.name == "refund")
    calls = [call("price", order="7"), call("refund", order="7", amount=20)]
    agent = bot(store, [*calls, "done"], guarded)
    pending = agent.run("go", execution_id="r1").pending_interrupt
    assert pending["context"] == {"order": "7", "amount": 20}
    assert done(effects) == []
    result = agent.resume("r1", resume_value=Resume(True, edited={"amount": 19}))
    assert told(result)[1].endswith("refunded 19")
    assert done(effects) == ["refund 7 19"]


def test_a_server_that_dies_between_two_calls_is_started_again(
    store: Checkpointer, shop: MCPToolset, effects: Ledger
):
    def kill() -> str:
        os.kill(servers(effects)[-1], signal.SIGKILL)
        return "killed"

    calls = [call("process"), call("kill"), call("process")]
    before, _, after = map(str, told(bot(store, [calls, "done"], shop, kill).run("go")))
    assert [int(before), int(after)] == servers(effects)
    assert before != after


def test_of_a_call_whose_server_dies_the_model_is_told_that_its_effect_is_not_known(
    store: Checkpointer, shop: MCPToolset, effects: Ledger
):
    died, after = told(bot(store, [[call("die"), call("process")], "done"], shop).run("go"))
    assert died == (
        "Error: ConnectionError: the MCP server closed the connection while die ran; whether it "
        "had its effect is not known"
    )
    assert done(effects) == ["die"]  # never once more by itself
    assert int(after) == servers(effects)[-1]


def test_a_server_on_the_network_may_come_back_and_is_missed_until_then(
    store: Checkpointer, effects: Ledger, web_shop: Callable[[], str]
):
    def kill() -> str:
        os.kill(servers(effects)[-1], signal.SIGKILL)
        return "killed"

    def start() -> str:
        web_shop()
        return "started"

    calls = [call("process"), call("kill"), call("process"), call("start"), call("process")]
    agent = bot(store, [calls, "done"], MCPToolset(web_shop()), kill, start)
    before, _, missed, _, after = told(agent.run("go"))
    assert missed.startswith("Error: ConnectionError: the MCP server 127.0.0.1 cannot be reached")
    assert [int(before), int(after)] == servers(effects)


def test_two_agents_share_one_server(store: Checkpointer, shop: MCPToolset, effects: Ledger):
    script = [call("process"), "done"]
    one, two = bot(store, script, shop), bot(store, script, shop)
    assert told(one.run("go")) == told(two.run("go"))
    assert len(servers(effects)) == 1


def test_runs_at_once_share_its_connection(store: Checkpointer, shop: MCPToolset, effects: Ledger):
    agent = bot(store, [call("process"), "done"], shop)

    async def both() -> list[Any]:
        return await asyncio.gather(*(agent.arun("go") for _ in range(3)))

    answers = [told(result) for result in asyncio.run(both())]
    assert answers == [[str(each)] for each in servers(effects)] * 3


def test_a_server_that_is_busy_is_waited_for_and_not_started_again(
    store: Checkpointer, shop: MCPToolset, effects: Ledger
):
    busy = bot(store, [call("slow", seconds=2.5), "done"], shop)
    other = bot(store, [call("price", order="7"), "done"], shop)

    async def both() -> tuple[Any, Any]:
        first = asyncio.create_task(busy.arun("go"))
        while "slow" not in effects.lines:
            await asyncio.sleep(0.02)
        return await other.arun("go"), await first

    answers = [told(result) for result in asyncio.run(both())]
    assert answers == [['{"order":"7","cents":[1999,5]}'], ["done"]]
    assert len(servers(effects)) == 1


def test_an_agent_within_a_tool_of_another_uses_the_same_server(
    store: Checkpointer, shop: MCPToolset, effects: Ledger
):
    inner = Agent("inner", bot(store, [call("price", order="7"), "in"]).llm, [shop])

    async def ask() -> str:
        return str(told(inner.run("go"))[0])

    agent = bot(store, [[call("price", order="1"), call("ask")], "done"], shop, ask)
    assert told(agent.run("go"))[1] == '{"order":"7","cents":[1999,5]}'


def test_the_server_ends_when_no_agent_has_it_any_more(store: Checkpointer, effects: Ledger):
    agent = bot(store, [call("process"), "done"], over_stdio(effects))
    agent.run("go")
    (process,) = servers(effects)
    del agent
    gc.collect()
    assert gone(process)


def test_a_change_of_the_servers_tools_shows_as_changed_code(store: Checkpointer):
    def listing(text: str) -> str:
        server = MCPServer("here")
        server.add_tool(lambda: 1, name="one", description=text)
        return bot(store, ["-"], server).definition().fingerprint

    assert listing("One.") == listing("One.") != listing("Uno.")


def test_a_tool_that_its_server_drops_is_an_error_that_the_model_reads(store: Checkpointer):
    server = MCPServer("here")
    server.add_tool(lambda: 1, name="one")
    agent = bot(store, [call("one"), "done"], server)
    server.remove_tool("one")
    assert told(agent.run("go")) == ["Error: ModelRetry: Unknown tool: one"]


def test_two_servers_with_the_same_tool_are_refused_until_one_is_prefixed(store: Checkpointer):
    servers = [MCPServer("us"), MCPServer("eu")]
    for server in servers:
        server.add_tool(lambda: 1, name="refund")
    with pytest.raises(InvalidTool, match="two tools are named 'refund'"):
        bot(store, ["-"], *servers)
    agent = bot(store, ["-"], servers[0], MCPToolset(servers[1]).prefixed("eu"))
    assert [each.name for each in agent.tools] == ["refund", "eu_refund"]


def test_without_the_extra_the_refusal_names_it(
    store: Checkpointer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(InvalidInput, match=r"pip install durable_nb\[mcp\]"):
        bot(store, ["-"], MCPServer("here"))
