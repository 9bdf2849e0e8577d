"""MCP servers: registration, changes, kill switch (docs/mcp.md)."""

from typing import Any
from uuid import uuid4

import pytest
from tests.support.mcp_servers import BASE, call, grant, refresh, register, scripted_server, tools
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.platform.mcp.servers import service

URL = "http://127.0.0.1:9/mcp"
FIRST = {"name": "first", "url": URL}


async def create(tenant: Tenant, **fields: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(BASE, json={**FIRST, **fields})
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()
    return created


async def test_the_answer_to_a_registration_is_what_a_read_returns(tenant: Tenant) -> None:
    created = await create(tenant, description="Weather", header={"name": "X-Key", "value": "s3cr3t-value"})
    assert created == {
        "id": created["id"],
        "tenant_id": str(tenant.id),
        "name": "first",
        "description": "Weather",
        "url": URL,
        "stdio": None,
        "header_name": "X-Key",
        "oauth": None,
        "user_oauth": None,
        "access": "restricted",
        "enabled": True,
        "timeout_ms": 30_000,
        "revision": None,
        "server_info": {},
        "faults": [],
        "refreshed_at": None,
        "switched_off_at": None,
        "switched_off_reason": None,
        "created_at": created["created_at"],
        "updated_at": created["created_at"],
    }
    assert (await tenant.auditor.client.get(f"{BASE}/{created['id']}")).json() == created


async def test_the_list_has_a_window_and_is_sorted_by_name(tenant: Tenant, other_tenant: Tenant) -> None:
    await create(other_tenant)
    rows = [await create(tenant, name=name) for name in ("b", "c", "a")]
    page = (await tenant.auditor.client.get(BASE, params={"limit": 1, "offset": 1})).json()
    assert page == {"mcp_servers": [rows[0]], "total": 3, "limit": 1, "offset": 1}


async def test_the_list_is_searched_by_name_and_description(tenant: Tenant, other_tenant: Tenant) -> None:
    await create(other_tenant, name="weather")
    await create(tenant, name="tickets")
    by_name = await create(tenant, name="weather")
    described = await create(tenant, name="b", description="Forecasts of the Weather_Office")

    async def search_page(search: str) -> tuple[list[dict[str, Any]], int]:
        page = (await tenant.auditor.client.get(BASE, params={"search": search, "limit": 2})).json()
        return page["mcp_servers"], page["total"]

    assert await search_page("WEATHER") == ([described, by_name], 2)
    assert await search_page("r_o") == ([described], 1)
    assert await search_page("r%o") == ([], 0)
    refused = await tenant.auditor.client.get(BASE, params={"search": "x" * 1000})
    assert (refused.status_code, "search" in refused.text) == (422, True)


async def test_an_update_changes_the_fields_in_the_body(tenant: Tenant) -> None:
    created = await create(tenant, description="Weather", header={"name": "X-Key", "value": "s3cr3t-value"})
    path = f"{BASE}/{created['id']}"
    updated = (await tenant.admin.client.patch(path, json={"name": "second", "description": None})).json()
    expected = {**created, "name": "second", "description": None, "updated_at": updated["updated_at"]}
    assert updated == expected
    updated = (await tenant.admin.client.patch(path, json={"header": None})).json()
    assert (updated["header_name"], updated["name"]) == (None, "second")


async def test_a_name_is_used_once_in_an_organization(tenant: Tenant, other_tenant: Tenant) -> None:
    await create(tenant)
    await create(other_tenant)
    second = await create(tenant, name="second")
    for answer in (
        await tenant.admin.client.post(BASE, json=FIRST),
        await tenant.admin.client.patch(f"{BASE}/{second['id']}", json={"name": "first"}),
    ):
        assert answer.status_code == 409
        assert answer.json() == {"detail": "Another MCP server has this name. Choose another name."}


async def test_a_change_of_an_earlier_version_is_412(tenant: Tenant) -> None:
    path = f"{BASE}/{(await create(tenant))['id']}"
    version = {"If-Match": (await tenant.admin.client.get(path)).headers["ETag"]}
    assert (await tenant.admin.client.patch(path, json={"name": "second"}, headers=version)).status_code == 200
    assert (await tenant.admin.client.patch(path, json={"name": "third"}, headers=version)).status_code == 412
    assert (await tenant.admin.client.delete(path, headers=version)).status_code == 412
    assert (await tenant.admin.client.get(path)).json()["name"] == "second"


async def test_callers_without_the_right_are_refused(platform: RunningPlatform, tenant: Tenant) -> None:
    path = f"{BASE}/{(await create(tenant))['id']}"
    switch = {"reason": "other"}
    for method, url, body in (
        ("GET", BASE, None), ("POST", BASE, FIRST), ("GET", path, None), ("PATCH", path, {}), ("DELETE", path, None),
        ("POST", f"{path}/refresh", None), ("POST", f"{path}/disable", switch), ("POST", f"{path}/enable", None),
    ):  # fmt: skip
        assert (await platform.anonymous.request(method, url, json=body)).status_code == 401
        assert (await tenant.user.client.request(method, url, json=body)).status_code == 403
        if method != "GET":
            assert (await tenant.auditor.client.request(method, url, json=body)).status_code == 403
    assert (await tenant.admin.client.get(BASE)).json()["total"] == 1


async def test_the_server_of_another_organization_is_404(tenant: Tenant, other_tenant: Tenant) -> None:
    theirs = await create(other_tenant)
    for server_id in (theirs["id"], uuid4(), "x"):
        path = f"{BASE}/{server_id}"
        for method, url, body in (
            ("GET", path, None), ("PATCH", path, {}), ("DELETE", path, None), ("POST", f"{path}/refresh", None),
            ("POST", f"{path}/disable", {"reason": "other"}), ("POST", f"{path}/enable", None),
            ("GET", f"{path}/tools", None), ("GET", f"{path}/access", None),
        ):  # fmt: skip
            answer = await tenant.admin.client.request(method, url, json=body)
            assert (answer.status_code, answer.json()) == (404, {"detail": "MCP server not found"}), (method, url)
    assert (await other_tenant.admin.client.get(f"{BASE}/{theirs['id']}")).json() == theirs


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": "Upper"}, "name"),
        ({"name": "a/b"}, "name"),
        ({"name": None}, "name"),
        ({"name": "x" * 64}, "name"),
        ({"url": "ftp://example.com"}, "url"),
        ({"url": "http://169.254.169.254/mcp"}, "url"),
        ({"url": "http://metadata.google.internal/mcp"}, "url"),
        ({"url": "https://example.com/mcp#part"}, "url"),
        ({"access": "public"}, "access"),
        ({"timeout_ms": 99}, "timeout_ms"),
        ({"timeout_ms": 600_001}, "timeout_ms"),
        ({"header": {"name": "Mcp-Session-Id", "value": "x"}}, "header.name"),
        ({"header": {"name": "Host", "value": "x"}}, "header.name"),
        ({"header": {"name": "X Y", "value": "x"}}, "header.name"),
        ({"header": {"name": "X-Key", "value": "a\r\nb"}}, "header.value"),
        ({"header": {"name": "X-Key"}}, "header.value"),
        ({"description": "x" * 2_001}, "description"),
        ({"unknown": 1}, "unknown"),
    ],
)
async def test_bad_input_is_422_with_the_name_of_the_field(tenant: Tenant, fields: dict[str, Any], field: str) -> None:
    created = await create(tenant)
    client = tenant.admin.client
    for answer in (
        await client.post(BASE, json={**FIRST, "name": "second", **fields}),
        await client.patch(f"{BASE}/{created['id']}", json=fields),
    ):
        assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", *field.split(".")])
    assert (await client.get(BASE)).json()["mcp_servers"] == [created]


async def test_each_change_is_an_audit_event_without_the_secret(platform: RunningPlatform, tenant: Tenant) -> None:
    created = await create(tenant, header={"name": "X-Key", "value": "s3cr3t-value"})
    path = f"{BASE}/{created['id']}"
    # The second changes nothing.
    for _ in range(2):
        await tenant.admin.client.patch(path, json={"timeout_ms": 1_000})
    await tenant.admin.client.patch(path, json={"header": {"name": "X-Key", "value": "an0ther-value"}})
    await tenant.admin.client.post(f"{path}/disable", json={"reason": "security_event"})
    await tenant.admin.client.post(f"{path}/enable")
    await tenant.admin.client.delete(path)
    (event,) = await platform.audit(tenant, "mcp_server.created")
    assert (event["resource_type"], event["resource_id"]) == ("mcp_server", created["id"])
    assert (event["details"]["url"], event["details"]["header_name"]) == (URL, "X-Key")
    second, first = sorted((event["details"] for event in await platform.audit(tenant, "mcp_server.updated")), key=len)
    assert {"timeout_ms": 1_000} in [{k: v for k, v in d.items() if k != "name"} for d in (first, second)]
    assert {"header_name": "X-Key"} in [{k: v for k, v in d.items() if k != "name"} for d in (first, second)]
    (event,) = await platform.audit(tenant, "mcp_switch.engaged")
    assert (event["reason"], event["resource_id"]) == ("security_event", created["id"])
    assert len(await platform.audit(tenant, "mcp_switch.released")) == 1
    assert len(await platform.audit(tenant, "mcp_server.deleted")) == 1
    everything = str(platform.sql("SELECT details FROM audit_events WHERE tenant_id = %s", [tenant.id]))
    assert "s3cr3t-value" not in everything
    assert "an0ther-value" not in everything
    sealed = platform.sql("SELECT sealed_header FROM mcp_servers WHERE tenant_id = %s", [tenant.id])
    assert "s3cr3t-value" not in str(sealed)


async def test_registration_stops_at_the_limit(
    tenant: Tenant, other_tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_MCP_SERVERS", 1)
    await create(tenant)
    answer = await tenant.admin.client.post(BASE, json={**FIRST, "name": "second"})
    assert answer.status_code == 409
    assert "maximum number of MCP servers" in answer.json()["detail"]
    await create(other_tenant)


async def test_a_server_that_cannot_be_reached_is_502_and_stays_uncallable(tenant: Tenant) -> None:
    created = await create(tenant)
    answer = await tenant.admin.client.post(f"{BASE}/{created['id']}/refresh")
    assert answer.status_code == 502
    assert answer.json()["detail"] == "The tools of the server could not be read. No connection could be made."
    assert (await tenant.admin.client.get(f"{BASE}/{created['id']}")).json() == created


async def test_the_sealed_header_reaches_the_server_and_the_callers_credential_does_not(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    async with scripted_server() as upstream:
        header = {"name": "Authorization", "value": "Bearer s3cr3t-value"}
        server = await register(tenant, upstream.url, header=header)
        await grant(tenant, server, tenant.user.id)
        key = await platform.new_key(tenant.user)
        assert (await call(platform.client(key), "weather", "echo")).status_code == 200
        assert {headers["authorization"] for _, headers in upstream.seen} == {"Bearer s3cr3t-value"}
        assert key not in str(upstream.seen)


async def test_a_new_url_puts_the_tools_into_quarantine(tenant: Tenant) -> None:
    async with scripted_server() as upstream, scripted_server() as other:
        server = await register(tenant, upstream.url)
        await grant(tenant, server, tenant.user.id)
        assert (await call(tenant.user.client, "weather", "echo")).status_code == 200
        answer = await tenant.admin.client.patch(f"{BASE}/{server['id']}", json={"url": other.url})
        assert (answer.json()["revision"], answer.json()["refreshed_at"]) == (None, None)
        assert (await call(tenant.user.client, "weather", "echo")).status_code == 404
        await refresh(tenant, server["id"])
        # The other server has the same definition. It is another server, so somebody has to approve it.
        assert [row["status"] for row in await tools(tenant, server["id"])] == ["quarantined"]
        assert (await call(tenant.user.client, "weather", "echo")).status_code == 404
        assert other.calls() == []


async def test_a_disabled_or_removed_server_is_unknown(tenant: Tenant) -> None:
    async with scripted_server() as upstream:
        server = await register(tenant, upstream.url)
        await grant(tenant, server, tenant.user.id)
        path = f"{BASE}/{server['id']}"
        await tenant.admin.client.patch(path, json={"enabled": False})
        assert (await call(tenant.user.client, "weather", "echo")).status_code == 404
        await tenant.admin.client.patch(path, json={"enabled": True})
        assert (await call(tenant.user.client, "weather", "echo")).status_code == 200
        assert (await tenant.admin.client.delete(path)).status_code == 204
        assert (await call(tenant.user.client, "weather", "echo")).status_code == 404
        assert len(upstream.calls()) == 1


async def test_the_kill_switch_of_a_server_is_confirmed_by_the_workers(tenant: Tenant) -> None:
    async with scripted_server() as upstream:
        server = await register(tenant, upstream.url)
        await grant(tenant, server, tenant.user.id)
        path = f"{BASE}/{server['id']}"
        answer = (await tenant.admin.client.post(f"{path}/disable", json={"reason": "security_event"})).json()
        assert answer["propagation"]["confirmed"] == answer["propagation"]["total"] >= 1
        assert (answer["propagation"]["pending"], answer["switched_off_reason"]) == ([], "security_event")
        refused = await call(tenant.user.client, "weather", "echo")
        assert (refused.status_code, refused.json()["error"]["data"]["code"]) == (503, "mcp_switched_off")
        assert upstream.calls() == []
        changes = (await tenant.admin.client.get("/api/v1/admin/kill-switch/propagation")).json()["changes"]
        assert (changes[0]["topic"], changes[0]["targets"]) == ("mcp_switch", [server["id"]])
        answer = (await tenant.admin.client.post(f"{path}/enable")).json()
        assert (answer["switched_off_at"], answer["switched_off_reason"]) == (None, None)
        assert (await call(tenant.user.client, "weather", "echo")).status_code == 200


async def test_a_header_is_not_sent_to_another_host_by_a_new_url_alone(tenant: Tenant) -> None:
    created = await create(tenant, header={"name": "X-Key", "value": "s3cr3t-value"})
    path, elsewhere = f"{BASE}/{created['id']}", "http://127.0.0.1:10/mcp"
    refused = await tenant.admin.client.patch(path, json={"url": elsewhere})
    assert (refused.status_code, refused.json()["detail"][0]["loc"][-1]) == (422, "url")
    assert (await tenant.admin.client.patch(path, json={"url": f"{URL}/v2"})).status_code == 200
    header = {"name": "X-Key", "value": "another-value"}
    assert (await tenant.admin.client.patch(path, json={"url": elsewhere, "header": header})).status_code == 200
    assert (await tenant.admin.client.patch(path, json={"header": None})).status_code == 200
    assert (await tenant.admin.client.patch(path, json={"url": URL})).status_code == 200
