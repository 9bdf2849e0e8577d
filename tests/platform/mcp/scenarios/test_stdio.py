"""MCP servers as processes of this machine, through the platform (docs/mcp.md)."""

import asyncio
import hashlib
import json
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.platform.mcp.scenarios.test_calls import add_rule
from tests.platform.mcp.scenarios.test_official_sdk import connected
from tests.support.mcp_servers import BASE, approve, call, grant, recorded, refresh, tools
from tests.support.platform import RunningPlatform, Tenant
from tests.support.stdio_servers import RunningOwner, command, owner, wait_until_dead

from gatehouse.foundation.ids import new_id

SDK = str(Path(__file__).parents[3] / "support" / "stdio_sdk.py")
FIXED_VALUE = "fixed-by-the-operator-0001"
COMMANDS = "/api/v1/admin/mcp/stdio-commands"
STDIO = {"command": "script", "environment": {"TOKEN": "s3cr3t-of-acme"}}


@pytest.fixture
async def running(platform: RunningPlatform) -> AsyncIterator[RunningOwner]:
    """The owner's process, used by the worker."""
    commands = {
        "script": command(environment=["TOKEN"]),
        "sdk": {
            "command": [sys.executable, "-P", SDK],
            "organizations": ["*"],
            "environment": ["TOKEN", "REGION"],
            "fixed_environment": {"FIXED_NAME": FIXED_VALUE},
        },
        "theirs": {**command(), "organizations": [str(new_id())]},
    }
    with tempfile.TemporaryDirectory(prefix="gh", dir="/tmp") as home:
        async with owner(Path(home), commands) as running:
            platform.host.stdio = platform.host.ports.stdio = running.client
            ignore, platform.host.replica.stdio_changed = (
                platform.host.replica.stdio_changed, running.client.end_obsolete,
            )  # fmt: skip
            yield running
            platform.host.stdio = platform.host.ports.stdio = None
            platform.host.replica.stdio_changed = ignore


async def add(tenant: Tenant, name: str = "script", **stdio: Any) -> dict[str, Any]:
    """Register a server, approve its tools, and grant the user access."""
    client = tenant.admin.client
    answer = await client.post(BASE, json={"name": name, "stdio": {**STDIO, **stdio}})
    assert answer.status_code == 201, answer.text
    server: dict[str, Any] = answer.json()
    await refresh(tenant, server["id"])
    for row in await tools(tenant, server["id"]):
        await approve(tenant, row)
    await grant(tenant, server, tenant.user.id)
    return server


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def text_of(answer: Any) -> Any:
    assert answer.status_code == 200, answer.text
    return json.loads(answer.json()["result"]["content"][0]["text"])


async def test_registration_is_refused_while_stdio_is_off(tenant: Tenant) -> None:
    answer = await tenant.admin.client.post(BASE, json={"name": "files", "stdio": {"command": "script"}})
    assert answer.status_code == 409
    assert "MCP_STDIO_COMMANDS" in answer.text
    assert (await tenant.admin.client.get(BASE)).json()["total"] == 0


async def test_calls_and_refreshes_are_refused_while_stdio_is_off(
    platform: RunningPlatform, tenant: Tenant, running: RunningOwner
) -> None:
    server = await add(tenant)
    user = platform.client(await platform.new_key(tenant.user))
    platform.host.ports.stdio = None
    answer = await call(user, "script", "echo", text="a")
    assert answer.status_code == 503
    assert answer.json()["error"]["data"]["code"] == "mcp_stdio_off"
    assert "MCP_STDIO_COMMANDS" in answer.json()["error"]["message"]
    answer = await tenant.admin.client.post(f"{BASE}/{server['id']}/refresh")
    assert (answer.status_code, "MCP_STDIO_COMMANDS" in answer.text) == (503, True)


async def test_registration_is_refused_while_another_machine_serves(
    platform: RunningPlatform, tenant: Tenant, running: RunningOwner
) -> None:
    values = "gen_random_uuid(), 'other-1', 'gateway', 1, 'other/boot/pid', 0"
    platform.sql(f"INSERT INTO nodes (id, name, kind, pid, host, revision) VALUES ({values})")
    try:
        answer = await tenant.admin.client.post(BASE, json={"name": "files", "stdio": STDIO})
    finally:
        platform.sql("DELETE FROM nodes WHERE name = 'other-1'")
    assert answer.status_code == 409
    assert "one machine" in answer.text


async def test_administrators_and_auditors_list_the_commands_that_are_offered_to_their_organization(
    platform: RunningPlatform, tenant: Tenant, running: RunningOwner
) -> None:
    for reader in (tenant.admin, tenant.auditor):
        answer = await reader.client.get(COMMANDS)
        assert answer.status_code == 200
        assert answer.json() == {
            "stdio_commands": [
                {"name": "script", "environment": ["TOKEN"]},
                {"name": "sdk", "environment": ["REGION", "TOKEN"]},
            ]
        }
    assert (await platform.anonymous.get(COMMANDS)).status_code == 401
    assert (await tenant.user.client.get(COMMANDS)).status_code == 403


async def test_the_list_of_commands_is_empty_while_stdio_is_off(tenant: Tenant) -> None:
    answer = await tenant.admin.client.get(COMMANDS)
    assert (answer.status_code, answer.json()) == (200, {"stdio_commands": []})


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"stdio": {"command": "none"}}, "stdio.command"),
        ({"stdio": {"command": "theirs"}}, "stdio.command"),
        ({"stdio": {"command": "/bin/sh"}}, "stdio.command"),
        ({"stdio": {"command": "script", "environment": {"LD_PRELOAD": "a"}}}, "stdio.environment"),
        ({"stdio": {"command": "script", "environment": {"TOKEN": ""}}}, "TOKEN"),
        ({"stdio": {"command": "script", "args": ["-c"]}}, "args"),
        ({"stdio": STDIO, "url": "http://127.0.0.1:9/mcp"}, "url"),
        ({}, "url"),
        ({"stdio": STDIO, "header": {"name": "X-Key", "value": "v"}}, "header"),
    ],
)
async def test_a_registration_names_a_command_and_variables_of_the_operator(
    tenant: Tenant, running: RunningOwner, body: dict[str, Any], field: str
) -> None:
    answer = await tenant.admin.client.post(BASE, json={"name": "files", **body})
    assert answer.status_code == 422
    assert field in ".".join(answer.json()["detail"][0]["loc"])


async def test_the_values_of_variables_are_sealed_and_never_returned(
    platform: RunningPlatform, tenant: Tenant, running: RunningOwner
) -> None:
    server = await add(tenant)
    shown = await tenant.auditor.client.get(f"{BASE}/{server['id']}")
    assert shown.json()["stdio"] == {"command": "script", "environment": ["TOKEN"]}
    assert (shown.json()["url"], shown.json()["revision"]) == (None, "2025-11-25")
    (row,) = platform.sql("SELECT stdio, sealed_environment FROM mcp_servers WHERE id = %s", [server["id"]])
    events = await platform.audit(tenant, "mcp_server.created")
    assert "s3cr3t-of-acme" not in f"{row} {shown.text} {events} {running.log}"
    assert events[0]["details"]["stdio"] == {"command": "script", "environment": ["TOKEN"]}


async def test_a_server_keeps_its_transport_and_a_new_command_puts_tools_into_quarantine(
    tenant: Tenant, running: RunningOwner
) -> None:
    server = await add(tenant)
    client, path = tenant.admin.client, f"{BASE}/{server['id']}"
    for body in ({"url": "http://127.0.0.1:9/mcp"}, {"stdio": None}):
        answer = await client.patch(path, json=body)
        assert (answer.status_code, next(iter(body)) in answer.text) == (422, True)
    answer = await client.patch(path, json={"stdio": {"command": "script"}})
    assert answer.json()["stdio"] == {"command": "script", "environment": []}
    assert {row["status"] for row in await tools(tenant, server["id"])} == {"approved"}
    answer = await client.patch(path, json={"stdio": {"command": "sdk"}})
    assert (answer.json()["stdio"]["command"], answer.json()["revision"]) == ("sdk", None)
    assert {row["status"] for row in await tools(tenant, server["id"])} == {"quarantined"}


async def test_a_call_reaches_the_process_of_its_caller_and_is_recorded(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, running: RunningOwner
) -> None:
    await add(tenant)
    await add(other_tenant, environment={"TOKEN": "s3cr3t-of-other"})
    first, second = [platform.client(await platform.new_key(tenant.user)) for _ in range(2)]
    theirs = platform.client(await platform.new_key(other_tenant.user))
    assert text_of(await call(first, "script", "echo", text="a")) == "a"
    assert text_of(await call(first, "script", "state"))["texts"] == ["a"]
    for other in (second, theirs):
        assert text_of(await call(other, "script", "state"))["texts"] == []
    assert text_of(await call(first, "script", "digest")) == digest("s3cr3t-of-acme")
    assert text_of(await call(theirs, "script", "digest")) == digest("s3cr3t-of-other")
    events = await recorded(platform, tenant)
    assert [event["details"]["tool"] for event in events] == ["echo", "state", "state", "digest"]
    assert {event["outcome"] for event in events} == {"success"}


async def test_a_kill_switch_ends_the_process_and_its_calls(
    platform: RunningPlatform, tenant: Tenant, running: RunningOwner
) -> None:
    server = await add(tenant)
    user = platform.client(await platform.new_key(tenant.user))
    assert text_of(await call(user, "script", "echo", text="a")) == "a"
    processes = running.descendants()
    waiting = asyncio.create_task(call(user, "script", "sleep"))
    await asyncio.sleep(0.5)
    assert not waiting.done()
    await tenant.admin.client.post(f"{BASE}/{server['id']}/disable", json={"reason": "security_event"})
    answer = await waiting
    assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (503, "mcp_switched_off")
    await wait_until_dead(processes)
    assert (await call(user, "script", "echo", text="b")).status_code == 503
    assert running.descendants() == []
    (event,) = [one for one in await recorded(platform, tenant) if one["details"]["tool"] == "sleep"]
    assert event["outcome"] == "error"
    await tenant.admin.client.post(f"{BASE}/{server['id']}/enable")
    assert text_of(await call(user, "script", "state"))["texts"] == []


@pytest.mark.parametrize("change", ["value", "removal"])
async def test_a_change_or_the_removal_of_a_server_ends_the_process_and_its_calls(
    change: str, platform: RunningPlatform, tenant: Tenant, running: RunningOwner
) -> None:
    server = await add(tenant)
    user = platform.client(await platform.new_key(tenant.user))
    assert text_of(await call(user, "script", "echo", text="a")) == "a"
    # Other fields do not end it.
    path = f"{BASE}/{server['id']}"
    await tenant.admin.client.patch(path, json={"description": "Scripts", "timeout_ms": 20_000})
    assert text_of(await call(user, "script", "state"))["texts"] == ["a"]
    processes = running.descendants()
    waiting = asyncio.create_task(call(user, "script", "sleep"))
    await asyncio.sleep(0.5)
    if change == "value":
        body = {"stdio": {"command": "script", "environment": {"TOKEN": "another"}}}
        assert (await tenant.admin.client.patch(path, json=body)).status_code == 200
    else:
        assert (await tenant.admin.client.delete(path)).status_code == 204
    answer = (await waiting).json()["error"]
    await wait_until_dead(processes)
    if change == "value":
        assert answer["data"]["code"] == "mcp_server_failed"
        assert "switched it off, removed it or changed it" in answer["message"]
        assert text_of(await call(user, "script", "digest")) == digest("another")
    else:
        assert answer["data"]["code"] == "mcp_switched_off"


async def test_a_kill_switch_stops_a_call_whose_process_is_starting(
    platform: RunningPlatform, tenant: Tenant, running: RunningOwner
) -> None:
    server = await add(tenant)
    user = platform.client(await platform.new_key(tenant.user))
    # The owner is stopped, so the call waits before its first byte.
    running.process.send_signal(signal.SIGSTOP)
    try:
        waiting = asyncio.create_task(call(user, "script", "echo", text="a"))
        await asyncio.sleep(0.5)
        assert not waiting.done()
        await tenant.admin.client.post(f"{BASE}/{server['id']}/disable", json={"reason": "security_event"})
    finally:
        running.process.send_signal(signal.SIGCONT)
    answer = await waiting
    assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (503, "mcp_switched_off")
    (event,) = await recorded(platform, tenant)
    assert (event["outcome"], event["details"]["arguments_digest"]) == ("refused", None)


async def test_a_failed_process_is_a_failed_call(
    platform: RunningPlatform, tenant: Tenant, running: RunningOwner
) -> None:
    await add(tenant)
    user = platform.client(await platform.new_key(tenant.user))
    answer = await call(user, "script", "exit")
    assert answer.status_code == 502
    assert "Its process ended" in answer.json()["error"]["message"]
    assert text_of(await call(user, "script", "echo", text="a")) == "a"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_sdk_calls_a_stdio_server_of_the_official_sdk(
    platform: RunningPlatform, tenant: Tenant, running: RunningOwner, mode: str
) -> None:
    await add(tenant, "weather", command="sdk")
    key = await platform.new_key(tenant.user)
    await add_rule(platform, tenant, action_tier="redact")
    async with platform.listening() as gateway, connected(gateway, key, mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["customer", "forecast"]
        answer = await client.call_tool("forecast", {"place": "Oslo", "days": 2})
        assert (answer.is_error, answer.content[0].text) == (False, "Sunny in Oslo for 2 days")
        # DLP inspects results as those of servers over HTTP.
        assert "4111" not in (await client.call_tool("customer", {})).content[0].text
    shown = (await tenant.admin.client.get(BASE)).json()["mcp_servers"][0]
    assert shown["server_info"] == {"name": "weather", "version": "3.1"}
