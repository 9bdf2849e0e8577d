"""Access rules of MCP servers (docs/mcp.md)."""

from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.support.mcp_servers import BASE, call, grant, register, scripted_server, send, tool, tools
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


async def new_oauth_client(tenant: Tenant) -> str:
    body = {"name": f"c{uuid4().hex}", "scopes": ["chat:write"]}
    client: str = (await tenant.admin.client.post("/api/admin/oauth-clients/", json=body)).json()["client_id"]
    return client


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


async def test_a_rule_is_changed_at_once_and_refused_for_another_version(
    platform: RunningPlatform, tenant: Tenant, server: dict[str, Any]
) -> None:
    rule = await grant(tenant, server, tenant.user.id)
    await grant(tenant, server, tenant.user.id, tool="a")
    path = f"{BASE}/{server['id']}/access/{rule['id']}"
    assert await usable(tenant.user.client) == NAMES
    changed = await tenant.admin.client.patch(path, json={"access_type": "DENY"}, headers={"If-Match": "*"})
    assert changed.status_code == 200, changed.text
    assert changed.json() == {**rule, "access_type": "DENY", "updated_at": changed.json()["updated_at"]}
    assert changed.json()["updated_at"] > rule["updated_at"]
    assert await usable(tenant.user.client) == []
    (event,) = await platform.audit(tenant, "mcp_access.updated")
    assert event["details"] == {
        "name": "weather", "subject_type": "user", "subject_id": str(tenant.user.id), "tool": None,
        "access_type": "DENY",
    }  # fmt: skip
    # The same value again is no change.
    version = {"If-Match": changed.headers["etag"]}
    same = await tenant.admin.client.patch(path, json={"access_type": "DENY"}, headers=version)
    assert (same.status_code, same.json()) == (200, changed.json())
    assert len(await platform.audit(tenant, "mcp_access.updated")) == 1
    # Somebody who has seen the earlier rule neither changes nor removes it.
    assert (await tenant.admin.client.patch(path, json={"access_type": "ALLOW"}, headers=version)).status_code == 200
    for method, body in (("PATCH", {"access_type": "DENY"}), ("DELETE", None)):
        refused = await tenant.admin.client.request(method, path, json=body, headers=version)
        assert refused.status_code == 412, refused.text
    assert await usable(tenant.user.client) == NAMES


async def test_bad_changes_of_rules_are_refused(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, server: dict[str, Any]
) -> None:
    rule = await grant(tenant, server, tenant.user.id)
    path, good = f"{BASE}/{server['id']}/access/{rule['id']}", {"access_type": "DENY"}
    for body, field in (
        ({}, "access_type"), ({"access_type": None}, "access_type"), ({"access_type": "MAYBE"}, "access_type"),
        ({**good, "tool": "a"}, "tool"),
    ):  # fmt: skip
        answer = await tenant.admin.client.patch(path, json=body)
        assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", field])
    assert (await platform.anonymous.patch(path, json=good)).status_code == 401
    for stranger in (tenant.user, tenant.auditor):
        assert (await stranger.client.patch(path, json=good)).status_code == 403
    assert (await other_tenant.admin.client.patch(path, json=good)).status_code == 404
    for rule_id in (uuid4(), "x"):
        answer = await tenant.admin.client.patch(f"{BASE}/{server['id']}/access/{rule_id}", json=good)
        assert (answer.status_code, answer.json()) == (404, {"detail": "Access rule not found"})
    assert (await tenant.admin.client.get(f"{BASE}/{server['id']}/access")).json()["access_rules"] == [rule]


async def read_matrix(tenant: Tenant, server: dict[str, Any], **query: Any) -> Any:
    answer = await tenant.auditor.client.get(f"{BASE}/{server['id']}/access/matrix", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def obstacles(tenant: Tenant, server: dict[str, Any], kind: str, subject: object) -> dict[str, str | None]:
    matrix = await read_matrix(tenant, server, caller_type=kind, caller_id=str(subject))
    assert all(row["can_call"] is (row["obstacle"] is None) for row in matrix["tools"])
    return {row["name"]: row["obstacle"] for row in matrix["tools"]}


async def test_the_matrix_has_the_tools_the_subjects_and_their_rules(tenant: Tenant, server: dict[str, Any]) -> None:
    group, client = await new_group(tenant), await new_oauth_client(tenant)
    await grant(tenant, server, group, subject_type="group")
    await grant(tenant, server, tenant.user.id, tool="b", access_type="DENY")
    await grant(tenant, server, client, subject_type="oauth_client", tool="c")
    matrix = await read_matrix(tenant, server)
    assert [row["name"] for row in matrix["tools"]] == NAMES
    assert [row["can_call"] for row in matrix["tools"]] == [None] * 3
    assert [(row["subject_type"], row["subject_id"]) for row in matrix["subjects"]] == [
        ("group", group), ("user", str(tenant.user.id)), ("oauth_client", client),
    ]  # fmt: skip
    assert all(row["name"] for row in matrix["subjects"])
    rules = {(row["subject_type"], row["tool"], row["access_type"]) for row in matrix["rules"]}
    assert rules == {("group", None, "ALLOW"), ("user", "b", "DENY"), ("oauth_client", "c", "ALLOW")}
    # A page has the rules of its tools and subjects only.
    part = await read_matrix(tenant, server, limit=1, offset=1, subject_type="user")
    assert (part["total"], part["total_subjects"], len(part["subjects"])) == (3, 1, 1)
    assert [row["name"] for row in part["tools"]] == ["b"]
    assert [row["tool"] for row in part["rules"]] == ["b"]
    rest = await read_matrix(tenant, server, search="C", subjects_offset=2)
    assert [row["name"] for row in rest["tools"]] == ["c"]
    assert [row["subject_type"] for row in rest["subjects"]] == ["oauth_client"]
    # The names of removed subjects are null.
    assert (await tenant.admin.client.delete(f"/api/admin/groups/{group}")).status_code < 300
    assert (await read_matrix(tenant, server))["subjects"][0]["name"] is None


async def test_the_matrix_agrees_with_what_callers_can_call(tenant: Tenant, server: dict[str, Any]) -> None:
    group = await new_group(tenant)
    key = (await tenant.user.client.post("/api/auth/api-keys", json={"description": "agent"})).json()
    await grant(tenant, server, group, subject_type="group")
    await grant(tenant, server, tenant.user.id, tool="a", access_type="DENY")
    await grant(tenant, server, key["id"], subject_type="api_key", tool="b", access_type="DENY")
    of_user = {"a": "denied", "b": None, "c": None}
    assert await obstacles(tenant, server, "user", tenant.user.id) == of_user
    assert await usable(tenant.user.client) == ["b", "c"]
    assert await obstacles(tenant, server, "api_key", key["id"]) == {**of_user, "b": "denied"}
    assert await obstacles(tenant, server, "group", group) == dict.fromkeys(NAMES)
    assert await obstacles(tenant, server, "user", tenant.admin.id) == dict.fromkeys(NAMES, "not_allowed")
    client = await new_oauth_client(tenant)
    await grant(tenant, server, client, subject_type="oauth_client", tool="c")
    assert await obstacles(tenant, server, "oauth_client", client) == {
        "a": "not_allowed",
        "b": "not_allowed",
        "c": None,
    }
    rows = {row["name"]: row for row in await tools(tenant, server["id"])}
    path = f"{BASE}/{server['id']}"
    await tenant.admin.client.post(f"{path}/tools/{rows['b']['id']}/reject", json={"hash": rows["b"]["hash"]})
    await tenant.admin.client.post(f"{path}/tools/{rows['c']['id']}/disable", json={"reason": "other"})
    assert await obstacles(tenant, server, "group", group) == {"a": None, "b": "not_approved", "c": "switched_off"}
    await tenant.admin.client.post(f"{path}/disable", json={"reason": "other"})
    assert await obstacles(tenant, server, "group", group) == dict.fromkeys(NAMES, "server_off")


async def test_the_matrix_names_callers_whose_calls_are_refused(
    platform: RunningPlatform, tenant: Tenant, server: dict[str, Any]
) -> None:
    path = f"{BASE}/{server['id']}"
    await tenant.admin.client.patch(path, json={"access": "open"})
    key = (await tenant.user.client.post("/api/auth/api-keys", json={"description": "agent"})).json()
    agent = platform.client(key["api_key"])
    client, group = await new_oauth_client(tenant), await new_group(tenant)
    callers = [("user", tenant.user.id), ("api_key", key["id"]), ("oauth_client", client), ("group", group)]
    for kind, subject in callers:
        assert await obstacles(tenant, server, kind, subject) == dict.fromkeys(NAMES), kind
    assert await usable(agent) == NAMES
    refused = dict.fromkeys(NAMES, "caller_disabled")
    for change, undo in (
        ("is_enabled = false", "is_enabled = true"),
        ("expires_at = now()", "expires_at = NULL"),
    ):
        platform.sql(f"UPDATE api_keys SET {change} WHERE id = %s", [key["id"]])
        assert await obstacles(tenant, server, "api_key", key["id"]) == refused, change
        platform.sql(f"UPDATE api_keys SET {undo} WHERE id = %s", [key["id"]])
    disabled = await tenant.admin.client.patch(f"/api/admin/oauth-clients/{client}", json={"enabled": False})
    assert disabled.status_code == 200, disabled.text
    assert await obstacles(tenant, server, "oauth_client", client) == refused
    await tenant.admin.client.patch(f"/api/admin/users/{tenant.user.id}", json={"is_active": False})
    assert (await call(agent, "weather", "a")).status_code == 401
    for kind, subject in callers[:2]:
        assert await obstacles(tenant, server, kind, subject) == refused, kind
    assert await obstacles(tenant, server, "group", group) == dict.fromkeys(NAMES)


async def test_the_matrix_is_for_administrators_and_auditors_of_the_organization(
    platform: RunningPlatform, tenant: Tenant, server: dict[str, Any]
) -> None:
    path = f"{BASE}/{server['id']}/access/matrix"
    assert (await platform.anonymous.get(path)).status_code == 401
    assert (await tenant.user.client.get(path)).status_code == 403
    other = await platform.new_tenant()
    assert (await other.admin.client.get(path)).status_code == 404
    query = {"caller_type": "user", "caller_id": str(other.user.id)}
    refused = await tenant.admin.client.get(path, params=query)
    assert refused.status_code == 422
    assert "caller_id" in refused.text
    refused = await tenant.admin.client.get(path, params={"subject_type": "planet"})
    assert refused.status_code == 422
    assert "subject_type" in refused.text
