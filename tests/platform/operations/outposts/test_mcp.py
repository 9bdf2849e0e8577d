"""MCP servers in the bundles of outposts, and uploaded calls of their tools (docs/outpost-protocol.md)."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from tests.platform.operations.outposts.test_credentials import opened, send, taken
from tests.platform.operations.outposts.test_handed_in import DLP_EVENT, arrived, lines
from tests.support.mcp_servers import BASE, ScriptedServer, grant, register, scripted_server, tools
from tests.support.outposts import Outpost
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.engine.records.outcome import ToolCalled
from gatehouse.policy.bundles import contents
from gatehouse.policy.mcp import mcp_secret_key

HEADER = {"name": "X-Key", "value": "of-the-mcp-server-0002"}
DIGEST = "sha256:" + "0" * 64


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedServer]:
    async with scripted_server() as server:
        yield server


async def test_the_bundle_contains_servers_with_approved_tools_and_rules(
    tenant: Tenant, outpost: Outpost, upstream: ScriptedServer
) -> None:
    server = await register(tenant, upstream.url, header=HEADER)
    await grant(tenant, server, tenant.user.id)
    _, text, bundle = await taken(outpost)
    (record,) = bundle.policy.mcp_servers
    assert (record.name, record.url, record.access) == ("weather", upstream.url, "restricted")
    assert [tool.name for tool in record.tools] == ["echo"]
    assert [(rule.subject_id, rule.access_type) for rule in record.rules] == [(tenant.user.id, "ALLOW")]
    assert bundle.credentials == {}
    assert HEADER["value"] not in text
    # A server that is disabled is not in the next bundle.
    await tenant.admin.client.patch(f"{BASE}/{server['id']}", json={"enabled": False})
    assert (await taken(outpost))[2].policy.mcp_servers == ()


async def test_an_earlier_version_of_the_outpost_serves_no_mcp_servers(
    tenant: Tenant, outpost: Outpost, upstream: ScriptedServer
) -> None:
    """An earlier version reads the MCP servers of the policy, and ignores the fields that it does not know."""
    await register(tenant, upstream.url)
    document = msgspec.json.decode(contents.encode(
        await outpost.platform.host.supply.contents(tenant.id), outpost_id=outpost.id, tenant_id=tenant.id,
        issued_at=1, expires_at=2,
    ))  # fmt: skip
    assert (document["policy"]["mcp_servers"], len(document["mcp_servers"])) == ([], 1)


async def test_the_header_is_sealed_to_the_outpost_if_the_organization_sends_credentials(
    platform: RunningPlatform, tenant: Tenant, outpost: Outpost, upstream: ScriptedServer
) -> None:
    server = await register(tenant, upstream.url, header=HEADER)
    before = (await taken(outpost))[2]
    await send(tenant)
    _, _, bundle = await taken(outpost)
    name = mcp_secret_key(UUID(server["id"]))
    assert opened(outpost, bundle, name) == {"X-Key": HEADER["value"]}
    (row,) = platform.sql("SELECT sealed_header FROM mcp_servers WHERE id = %s", [server["id"]])
    fingerprint = bundle.policy.mcp_servers[0].sealed_header
    assert (fingerprint, fingerprint != row[0]) == (before.policy.mcp_servers[0].sealed_header, True)
    # A new value changes the fingerprint.
    await tenant.admin.client.patch(f"{BASE}/{server['id']}", json={"header": {**HEADER, "value": "another-0003"}})
    _, _, bundle = await taken(outpost)
    assert opened(outpost, bundle, name) == {"X-Key": "another-0003"}
    assert bundle.policy.mcp_servers[0].sealed_header != fingerprint


async def test_a_kill_switch_is_in_the_next_bundle(tenant: Tenant, outpost: Outpost, upstream: ScriptedServer) -> None:
    server = await register(tenant, upstream.url)
    (tool,) = await tools(tenant, server["id"])
    etag, _, _ = await taken(outpost)
    server_path = f"{BASE}/{server['id']}"
    for path, id_ in ((server_path, server["id"]), (f"{server_path}/tools/{tool['id']}", tool["id"])):
        answer = await tenant.admin.client.post(f"{path}/disable", json={"reason": "security_event"})
        assert answer.status_code == 200, answer.text
        changed, _, bundle = await taken(outpost)
        assert (UUID(id_) in bundle.switched_off, changed != etag) == (True, True)
        etag = changed


async def test_servers_that_do_not_fit_are_left_out_and_named(
    tenant: Tenant, outpost: Outpost, upstream: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await register(tenant, upstream.url, "older")
    await register(tenant, upstream.url, "a-newer")
    bundle = (await taken(outpost))[2]
    newer, older = bundle.policy.mcp_servers
    assert ([server.name for server in (newer, older)], bundle.mcp_servers_left_out) == (["a-newer", "older"], ())
    monkeypatch.setattr(contents, "MAX_MCP_BYTES", len(msgspec.json.encode(older)) + 10)
    await send(tenant, "off")
    bundle = (await taken(outpost))[2]
    assert ([server.name for server in bundle.policy.mcp_servers], bundle.mcp_servers_left_out) == (
        ["older"],
        ("a-newer",),
    )


def tool_call(**changed: Any) -> ToolCalled[UUID]:
    known = {
        "path": "/mcp/weather", "server_id": uuid4(), "server": "weather", "tool": "echo", "definition_hash": DIGEST,
        "arguments_digest": DIGEST, "outcome": "success", "status": 200, "error_code": None, "is_error": False,
        "latency_ms": 3.5, "upstream_ms": 2.5, "result_bytes": 40, "dlp_action": "ALLOW",
    }  # fmt: skip
    fields = {**arrived(), "requested_model": "mcp:weather/echo", "provider": None, "model_id": None}
    return ToolCalled(**{**fields, **known, **changed})


async def test_a_call_of_a_tool_is_recorded_like_one_of_the_platform(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, outpost: Outpost
) -> None:
    limits = {"scope_type": "tenant", "scope_id": str(tenant.id), "period": "month", "limit_requests": 100}
    budget = (await tenant.admin.client.post("/api/admin/budgets", json=limits)).json()["id"]
    period = 1_790_812_800
    sent = tool_call(
        user_id=tenant.user.id, actor_type="user", dlp_action="REDACT", dlp_events=(DLP_EVENT,),
        tenant_id=other_tenant.id, budgets=((UUID(budget), period), (uuid4(), period)),
    )  # fmt: skip
    journal = uuid4()
    for stored in (1, 0):
        answer = await outpost.hand_in(journal, 1, lines(sent))
        assert (answer.status_code, answer.json()) == (200, {"next_sequence": 2, "stored": stored, "rejected": []})
    (event,) = await platform.audit(tenant, "mcp.tool_call")
    assert (event["id"], event["actor_id"], event["resource_id"]) == (sent.id, str(tenant.user.id), str(sent.server_id))
    assert event["details"]["outpost_id"] == str(outpost.id)
    assert event["details"].items() >= {"server": "weather", "tool": "echo", "arguments_digest": DIGEST}.items()
    ((entity, status),) = platform.sql("SELECT entity_type, status FROM dlp_events WHERE tenant_id = %s", [tenant.id])
    assert (entity, status) == ("email", "redacted")
    counted = platform.sql(
        "SELECT budget_id::text, recorded_requests, granted_requests FROM budget_leases WHERE writer_id = %s",
        [outpost.id],
    )
    assert counted == [(budget, 1, 1)]
    assert await platform.audit(other_tenant, "mcp.tool_call") == []
    assert platform.breaks(tenant) == []


BAD: dict[str, dict[str, Any]] = {
    "no such outcome": {"outcome": "interrupted"},
    "a line in a server": {"server": "a\nb"},
    "a path as a tool": {"tool": "../x"},
    "a text as a digest": {"arguments_digest": "the arguments themselves"},
    "a hash that is too short": {"definition_hash": "sha256:00"},
    "a negative time": {"upstream_ms": -1.0},
    "a large result": {"result_bytes": 2**40},
    "NUL in a code": {"error_code": "a\0b"},
}


@pytest.mark.parametrize("changed", BAD.values(), ids=BAD.keys())
async def test_an_invalid_call_is_rejected(
    platform: RunningPlatform, tenant: Tenant, outpost: Outpost, changed: dict[str, Any]
) -> None:
    answer = await outpost.hand_in(uuid4(), 1, lines(tool_call(**changed), tool_call()))
    body = answer.json()
    assert (body["stored"], [item["sequence"] for item in body["rejected"]]) == (1, [1]), body
    assert len(await platform.audit(tenant, "mcp.tool_call")) == 1
