"""Access rules of MCP servers (docs/mcp.md)."""

from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.support.mcp_servers import BASE, call, grant, register, scripted_server, send, tool
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.platform.mcp.access import service

NAMES = ["a", "b", "c"]


@pytest.fixture
async def server(tenant: Tenant) -> Any:
    async with scripted_server() as upstream:
        upstream.tools = [tool(name, f"The tool {name}.") for name in NAMES]
        yield await register(tenant, upstream.url)


async def usable(client: httpx2.AsyncClient) -> list[str]:
    """Return the tools in the list, after checking that exactly these can be called."""
    answer = await send(client, "weather", "tools/list")
    listed = [entry["name"] for entry in answer.json()["result"]["tools"]] if answer.status_code == 200 else []
    called = [name for name in NAMES if (await call(client, "weather", name)).status_code == 200]
    assert called == listed
    return listed


async def new_group(tenant: Tenant) -> str:
    answer = await tenant.admin.client.post("/api/admin/groups", json={"name": f"g{uuid4().hex}"})
    group: str = answer.json()["id"]
    path = f"/api/admin/groups/{group}/members"
    assert (await tenant.admin.client.post(path, json={"user_id": str(tenant.user.id)})).status_code < 300
    return group


async def test_nobody_may_use_a_registered_server_without_a_rule(tenant: Tenant, server: dict[str, Any]) -> None:
    for person in (tenant.user, tenant.admin):
        assert await usable(person.client) == []
        refused = await send(person.client, "weather", "tools/list")
        unknown = await send(person.client, "unknown", "tools/list")
        # A server without access is answered as one that does not exist.
        assert refused.status_code == unknown.status_code == 404
        for answer in (refused, unknown):
            error = answer.json()["error"]
            del error["data"]["request_id"]
            assert error == {
                "code": 404,
                "message": "There is no MCP server with this name that you may use.",
                "data": {"type": "invalid_request_error", "code": "unknown_mcp_server"},
            }


async def test_the_list_has_exactly_the_tools_that_can_be_called(
    platform: RunningPlatform, tenant: Tenant, server: dict[str, Any]
) -> None:
    group = await new_group(tenant)
    await platform.refresh()
    await grant(tenant, server, group, subject_type="group", tool="a")
    assert await usable(tenant.user.client) == ["a"]
    assert await usable(tenant.admin.client) == []
    everything = await grant(tenant, server, tenant.user.id)
    assert await usable(tenant.user.client) == NAMES
    denied = await grant(tenant, server, group, subject_type="group", tool="b", access_type="DENY")
    assert await usable(tenant.user.client) == ["a", "c"]
    for rule in (everything, denied):
        path = f"{BASE}/{server['id']}/access/{rule['id']}"
        assert (await tenant.admin.client.delete(path)).status_code == 204
    assert await usable(tenant.user.client) == ["a"]


async def test_a_rule_can_be_for_one_key_or_one_machine(
    platform: RunningPlatform, tenant: Tenant, server: dict[str, Any]
) -> None:
    first, second = [await platform.new_key(tenant.user) for _ in range(2)]
    keys = (await tenant.user.client.get("/api/auth/api-keys")).json()
    first_id = next(key["id"] for key in keys if first.startswith(key["key_prefix"]))
    await grant(tenant, server, first_id, subject_type="api_key", tool="c")
    assert await usable(platform.client(first)) == ["c"]
    assert await usable(platform.client(second)) == []
    machine = await platform.new_m2m(tenant.id, "chat:write")
    assert await usable(machine) == []
    (client_id,) = platform.sql("SELECT client_id FROM oauth_clients WHERE tenant_id = %s", [tenant.id])[0]
    await grant(tenant, server, client_id, subject_type="oauth_client", tool="b")
    assert await usable(machine) == ["b"]


async def test_an_open_server_is_for_everybody_without_a_deny(tenant: Tenant, server: dict[str, Any]) -> None:
    await tenant.admin.client.patch(f"{BASE}/{server['id']}", json={"access": "open"})
    assert await usable(tenant.user.client) == NAMES
    await grant(tenant, server, tenant.user.id, access_type="DENY", tool="a")
    assert await usable(tenant.user.client) == ["b", "c"]
    assert await usable(tenant.auditor.client) == NAMES


async def test_another_organization_has_no_access(tenant: Tenant, other_tenant: Tenant, server: dict[str, Any]) -> None:
    await tenant.admin.client.patch(f"{BASE}/{server['id']}", json={"access": "open"})
    assert await usable(other_tenant.admin.client) == []


async def test_rules_are_listed_and_recorded(platform: RunningPlatform, tenant: Tenant, server: dict[str, Any]) -> None:
    first = await grant(tenant, server, tenant.user.id)
    second = await grant(tenant, server, tenant.auditor.id, tool="a", access_type="DENY")
    path = f"{BASE}/{server['id']}/access"
    page = (await tenant.auditor.client.get(path, params={"limit": 1})).json()
    assert page == {"access_rules": [first], "total": 2, "limit": 1, "offset": 0}
    await tenant.admin.client.delete(f"{path}/{second['id']}")
    assert (await tenant.auditor.client.get(path)).json()["access_rules"] == [first]
    (event,) = await platform.audit(tenant, "mcp_access.removed")
    assert event["details"] == {
        "name": "weather", "subject_type": "user", "subject_id": str(tenant.auditor.id), "tool": "a",
        "access_type": "DENY",
    }  # fmt: skip
    assert len(await platform.audit(tenant, "mcp_access.added")) == 2


async def test_bad_rules_are_refused(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, server: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    path = f"{BASE}/{server['id']}/access"
    good = {"subject_type": "user", "subject_id": str(tenant.user.id), "access_type": "ALLOW"}
    for fields, field in (
        ({"subject_id": str(other_tenant.user.id)}, "subject_id"),
        ({"subject_type": "group"}, "subject_id"),
        ({"subject_id": "x"}, "subject_id"),
        ({"subject_type": "robot"}, "subject_type"),
        ({"tool": "unknown"}, "tool"),
        ({"tool": ""}, "tool"),
        ({"access_type": "MAYBE"}, "access_type"),
        ({"other": 1}, "other"),
    ):
        answer = await tenant.admin.client.post(path, json={**good, **fields})
        assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", field])
    rule = await grant(tenant, server, tenant.user.id)
    answer = await tenant.admin.client.post(path, json={**good, "access_type": "DENY"})
    assert (answer.status_code, "already" in answer.json()["detail"]) == (409, True)
    monkeypatch.setattr(service, "MAX_ACCESS_RULES", 1)
    assert (await tenant.admin.client.post(path, json={**good, "tool": "a"})).status_code == 409
    for method, url, body in (("GET", path, None), ("POST", path, good), ("DELETE", f"{path}/{rule['id']}", None)):
        assert (await platform.anonymous.request(method, url, json=body)).status_code == 401
        assert (await tenant.user.client.request(method, url, json=body)).status_code == 403
        if method != "GET":
            assert (await tenant.auditor.client.request(method, url, json=body)).status_code == 403
    for rule_id in (uuid4(), "x"):
        answer = await tenant.admin.client.delete(f"{path}/{rule_id}")
        assert (answer.status_code, answer.json()) == (404, {"detail": "Access rule not found"})
