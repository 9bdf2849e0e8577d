"""MCP servers over stdio with all processes of the platform: workers, owner, launchers (docs/mcp.md)."""

import asyncio
import json
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from tests.support.mcp_servers import BASE, call
from tests.support.server import GatehouseServer
from tests.support.stdio_servers import command, commands_file, wait_until_dead

CALLS = 40


@pytest.fixture(scope="module")
def server() -> Iterator[GatehouseServer]:
    with tempfile.TemporaryDirectory(prefix="gh", dir="/tmp") as folder:
        path = commands_file(Path(folder), {"script": command(shared=True)})
        with GatehouseServer(workers=2, env={"MCP_STDIO_COMMANDS": str(path)}) as server:
            register(server)
            yield server


def register(server: GatehouseServer) -> None:
    headers = {"Authorization": f"Bearer {server.key}"}
    with httpx2.Client(base_url=server.url, headers=headers, timeout=60) as admin:
        body = {"name": "script", "stdio": {"command": "script"}, "access": "open"}
        answer = admin.post(BASE, json=body)
        assert answer.status_code == 201, answer.text
        path = f"{BASE}/{answer.json()['id']}"
        answer = admin.post(f"{path}/refresh")
        assert answer.status_code == 200, answer.text
        for row in admin.get(f"{path}/tools").json()["mcp_tools"]:
            answer = admin.post(f"{path}/tools/{row['id']}/approve", json={"hash": row["hash"]})
            assert answer.status_code == 200, answer.text


async def text(server: GatehouseServer, key: str, tool: str, **arguments: Any) -> Any:
    """Call a tool on a connection of its own, so that both workers are used."""
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=60) as agent:
        answer = await call(agent, "script", tool, **arguments)
        assert answer.status_code == 200, answer.text
        return json.loads(answer.json()["result"]["content"][0]["text"])


def owner_of(server: GatehouseServer) -> psutil.Process:
    supervisor = psutil.Process(server.workers[0].ppid())
    (owner,) = [child for child in supervisor.children() if "gatehouse.engine.mcp.stdio" in child.cmdline()]
    return owner


async def test_all_workers_use_the_same_process(server: GatehouseServer) -> None:
    key = server.new_key()
    await asyncio.gather(*(text(server, key, "echo", text=str(number)) for number in range(CALLS)))
    texts = (await text(server, key, "state"))["texts"]
    assert sorted(map(int, texts)) == list(range(CALLS))


async def test_the_owner_has_no_secret_in_its_environment(server: GatehouseServer) -> None:
    environment = owner_of(server).environ()
    assert environment["MCP_STDIO_COMMANDS"]
    assert not [name for name in environment if "KEY" in name or "URL" in name or "PASSWORD" in name]


async def test_a_kill_switch_ends_the_process_for_all_workers(server: GatehouseServer) -> None:
    key = server.new_key()
    first = (await text(server, key, "state"))["pid"]
    headers = {"Authorization": f"Bearer {key}"}

    async def outcome() -> str | None:
        async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=60) as agent:
            answer = await call(agent, "script", "sleep")
            return str(answer.json()["error"]["data"]["code"])

    # On both workers.
    waiting = [asyncio.create_task(outcome()) for _ in range(8)]
    await asyncio.sleep(1)
    with httpx2.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.key}"}, timeout=60) as admin:
        (row,) = admin.get(BASE).json()["mcp_servers"]
        admin.post(f"{BASE}/{row['id']}/disable", json={"reason": "security_event"}).raise_for_status()
        # A worker that is told by the owner before it has read the switch names the other reason.
        assert set(await asyncio.gather(*waiting)) <= {"mcp_switched_off", "mcp_server_failed"}
        assert not Path(f"/proc/{first}").exists()
        admin.post(f"{BASE}/{row['id']}/enable").raise_for_status()
    assert (await text(server, key, "state"))["texts"] == []


async def test_calls_succeed_after_the_death_of_the_owner_and_of_a_worker(server: GatehouseServer) -> None:
    key = server.new_key()
    first = (await text(server, key, "state"))["pid"]
    owner = owner_of(server)
    processes = owner.children(recursive=True)
    owner.kill()
    await wait_until_dead(processes)
    second = None
    async with asyncio.timeout(60):
        while second is None:
            try:
                second = (await text(server, key, "state"))["pid"]
            except AssertionError:
                await asyncio.sleep(0.2)
    assert second != first
    os.kill(server.workers[0].pid, signal.SIGKILL)
    async with asyncio.timeout(60):
        while True:
            try:
                assert (await text(server, key, "state"))["pid"] == second
                break
            except httpx2.TransportError:
                await asyncio.sleep(0.2)


async def test_the_death_of_the_supervisor_leaves_no_process(server: GatehouseServer) -> None:
    await text(server, server.new_key(), "spawn")
    supervisor = psutil.Process(server.workers[0].ppid())
    processes = [owner_of(server), *owner_of(server).children(recursive=True)]
    assert len(processes) >= 3
    supervisor.kill()
    await wait_until_dead(processes)
