"""Compares a call of an MCP tool with a chat request of the same size, and measures `tools/list` with 1,000 tools: CPU
time of one worker's thread inside the engine, as in `bench.path`. Rounds of the two alternate.

    .venv/bin/python -m bench.tool_calls
    .venv/bin/python -m bench.tool_calls --calls           # calls of Python functions; the load has no effect
    .venv/bin/python -m bench.tool_calls --calls --names   # and the functions of a call of a tool
    .venv/bin/python -m bench.tool_calls --profile         # a call of a tool under cProfile

Agent and server have the newer revision of the protocol. The server is restricted, and a rule permits the user. Texts
and sizes of the bodies are those of the chat. The exit status is 1 if a goal is not reached.
"""

import argparse
import asyncio
import gc
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import msgspec
import uvloop
from bench.dialects import calls_of
from bench.path import LONG, PARALLEL_CALLS, PROSE, REQUESTS, SHORT, World, answer, profile

from gatehouse.engine.exchange import Answer, Received
from gatehouse.engine.mcp.definitions import read_definition
from gatehouse.engine.mcp.messages import MODERN
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.platform.live.replica.state import Replica
from gatehouse.policy.catalog import TenantRecords
from gatehouse.policy.mcp import McpAccessRecord, McpServerRecord, McpToolRecord

#: goals: CPU of a call of a tool as a factor of a chat, and milliseconds of a list
MAX_RATIO: Final = 1.3
MAX_LIST_MS: Final = 5.0
TOOLS: Final = 1_000
LISTS: Final = 50
#: number of servers that have the tools at the path of all servers
SERVERS: Final = 10

_ANSWER: Final = (PROSE * 6)[:800]
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "agent", "version": "1.0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class ToolWorld(World):
    """The same worker, called by an agent. It has `tools` tools at each of `servers` servers."""

    path = "/mcp/server-0"
    method = "tools/call"

    def __init__(self, home: Path, request: Mapping[str, Any], answer: bytes, *, inspected: bool, servers: int = 1,
                 tools: int = 1) -> None:  # fmt: skip
        self.servers, self.tools = servers, tools
        super().__init__(home, request, answer, inspected=inspected)

    def _caller(self, replica: Replica) -> str:
        key = super()._caller(replica)
        (self.user_id,) = replica.users
        self.replica = replica
        return key

    def _records(self, sealer: Sealer, *, inspected: bool) -> TenantRecords:
        records = super()._records(sealer, inspected=inspected)
        rule = McpAccessRecord(subject_type="user", subject_id=self.user_id, access_type="ALLOW")
        servers = tuple(
            McpServerRecord(
                id=UUID(int=number + 1), name=f"server-{number}", url="http://127.0.0.1:9100/mcp", revision=MODERN,
                tools=tuple(_tool(number * self.tools + place) for place in range(self.tools)), rules=(rule,),
            )
            for number in range(self.servers)
        )  # fmt: skip
        self.replica.mcp_callable = {one.id for server in servers for one in (server, *server.tools)}
        return msgspec.structs.replace(records, mcp_servers=servers)

    def request(self) -> Received:
        received = super().request()
        headers = {
            **received.headers, "content-type": "application/json", "accept": "application/json, text/event-stream",
            "mcp-protocol-version": MODERN, "mcp-method": self.method, "mcp-name": "tool-0000",
        }  # fmt: skip
        return msgspec.structs.replace(received, dialect=None, path=self.path, headers=headers)

    async def answered(self) -> Answer:
        async def read() -> bytes:
            return self.body

        answered = await self.engine.tools.answer(self.request(), read, lambda: None)
        assert answered.status == 200, answered.body
        return answered

    async def serve(self, requests: int, at_once: int = PARALLEL_CALLS) -> float:
        async def some() -> None:
            for _ in range(requests // at_once):
                await self.answered()

        began = time.thread_time()
        await asyncio.gather(*[some() for _ in range(at_once)])
        return (time.thread_time() - began) / (requests // at_once * at_once) * 1e6


def _tool(number: int) -> McpToolRecord:
    """Return a tool with a definition of about 500 bytes."""
    text = {"type": "string", "description": "The text to work on. It may have several sentences."}
    definition = read_definition(
        {
            "name": f"tool-{number:04}", "title": f"Tool {number}", "description": PROSE[:120],
            "inputSchema": {
                "type": "object", "required": ["text"],
                "properties": {"text": text, "temperature": {"type": "number"}, "max_tokens": {"type": "integer"}},
            },
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
        }
    )  # fmt: skip
    return McpToolRecord(id=UUID(int=10_000 + number), name=definition.name, hash=definition.hash,
                         definition=definition.text)  # fmt: skip


def message(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": _META}}


def tool_request(chat: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call with a body of the size of the chat's, if the text of its messages is long enough."""
    text = " ".join(item["content"] for item in chat["messages"])
    call = message("tools/call", {"name": "tool-0000", "arguments": {"text": text}})
    excess = len(msgspec.json.encode(call)) - len(msgspec.json.encode(chat))
    return message("tools/call", {"name": "tool-0000", "arguments": {"text": text[: max(len(text) - excess, 64)]}})


def tool_answer(size: int) -> bytes:
    """Return a result whose message has `size` bytes."""

    def encoded(text: str) -> bytes:
        result = {"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": False}
        return msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "result": result})

    return encoded((PROSE * 20)[: size - len(encoded(""))])


async def started(world: World) -> World:
    """Let a worker answer some requests. The first one compiles the patterns, and gets a lease on the budget."""
    await world.spender.start(world.journal.writer_id)
    await world.serve(1, at_once=1)
    await world.serve(PARALLEL_CALLS * 4)
    return world


async def worlds(home: Path, *, inspected: bool) -> dict[str, World]:
    chat = LONG if inspected else SHORT
    body = answer(_ANSWER if inspected else _ANSWER[:154])
    folders = {name: home / f"{name}-{inspected}" for name in ("chat", "tool")}
    for folder in folders.values():
        folder.mkdir()
    tool = ToolWorld(folders["tool"], tool_request(chat), tool_answer(len(body)), inspected=inspected)
    measured = {"chat": World(folders["chat"], chat, body, inspected=inspected), "tool": tool}
    for name, world in measured.items():
        print(f"  {name}: request {len(world.body)} bytes, answer {len(world.answer_body)} bytes")
        await started(world)
    return measured


def _collected() -> None:
    # A worker does the same.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


async def compare(home: Path, *, inspected: bool, rounds: int) -> float:
    """Print the lowest cost of each, and the median of the ratios of the rounds. Return the ratio."""
    measured = await worlds(home, inspected=inspected)
    _collected()
    costs: dict[str, list[float]] = {name: [] for name in measured}
    for _ in range(rounds):
        for name, world in measured.items():
            costs[name].append(await world.serve(REQUESTS))
    for world in measured.values():
        await world.close()
    ratio = statistics.median(tool / chat for chat, tool in zip(costs["chat"], costs["tool"], strict=True))
    chat, tool = min(costs["chat"]), min(costs["tool"])
    print(f"{_named(inspected):18} chat {chat:6.1f} us   tool {tool:6.1f} us   least {tool / chat:.2f}, median of the"
          f" ratios {ratio:.2f} (goal {MAX_RATIO})", flush=True)  # fmt: skip
    return ratio


async def count(home: Path, *, inspected: bool, names: bool) -> None:
    measured = await worlds(home, inspected=inspected)
    calls = {name: await calls_of(world) for name, world in measured.items()}
    chat, tool = calls["chat"].total(), calls["tool"].total()
    print(f"{_named(inspected):18} chat {chat:.1f} calls, tool {tool:.1f} (ratio {tool / chat:.2f})")
    for place, number in calls["tool"].most_common(200) if names else ():
        print(f"    {number:6.1f} ({number - calls['chat'][place]:+.1f})  {place}")
    for world in measured.values():
        await world.close()


async def lists(home: Path) -> float:
    """Print the time of `tools/list` with 1,000 tools at one server and at ten servers. Return the larger median in
    milliseconds."""
    largest = 0.0
    for path, servers in (("/mcp/server-0", 1), ("/mcp", SERVERS)):
        folder = home / f"list-{servers}"
        folder.mkdir()
        world = ToolWorld(folder, message("tools/list", {}), b"", inspected=True, servers=servers,
                          tools=TOOLS // servers)  # fmt: skip
        world.path, world.method = path, "tools/list"
        await world.spender.start(world.journal.writer_id)
        body = (await world.answered()).body
        assert body is not None
        assert len(msgspec.json.decode(body)["result"]["tools"]) == TOOLS
        _collected()
        spent = []
        for _ in range(LISTS):
            began = time.thread_time()
            await world.answered()
            spent.append((time.thread_time() - began) * 1e3)
        median = statistics.median(spent)
        largest = max(largest, median)
        print(f"tools/list at {path}, {TOOLS} tools of {servers} servers, {len(body) / 1024:.0f} KiB: median"
              f" {median:.2f} ms, least {min(spent):.2f} ms (goal {MAX_LIST_MS})", flush=True)  # fmt: skip
        await world.close()
    return largest


def _named(inspected: bool) -> str:
    return "built-in patterns" if inspected else "no DLP"


async def measured(arguments: argparse.Namespace, home: Path) -> bool:
    """Return whether all goals are reached."""
    if arguments.profile:
        await profile((await worlds(home, inspected=False))["tool"])
        return True
    if arguments.calls:
        for inspected in (False, True):
            await count(home, inspected=inspected, names=arguments.names)
        return True
    ratios = [await compare(home, inspected=inspected, rounds=arguments.rounds) for inspected in (False, True)]
    return await lists(home) <= MAX_LIST_MS and max(ratios) <= MAX_RATIO


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", action="store_true", help="count calls of Python functions instead of time")
    parser.add_argument("--names", action="store_true", help="with --calls: all functions of a call of a tool")
    parser.add_argument("--profile", action="store_true", help="a call of a tool under cProfile")
    home = Path(tempfile.mkdtemp(prefix="bench-tool-calls-"))
    try:
        return int(not uvloop.run(measured(parser.parse_args(arguments), home)))
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
