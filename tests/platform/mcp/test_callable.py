"""The list of the tools that a person may call (docs/mcp.md)."""

from typing import Any

from tests.support.mcp_servers import BASE, grant, register, scripted_server, send, tool, tools
from tests.support.platform import Person, RunningPlatform, Tenant

PATH = "/api/v1/mcp/tools"


async def read(person: Person, **query: Any) -> dict[str, Any]:
    answer = await person.client.get(PATH, params=query)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


async def test_a_person_reads_the_tools_that_agents_of_this_person_may_call(tenant: Tenant) -> None:
    async with scripted_server() as upstream:
        upstream.tools = [tool("forecast", "The weather.", title="Forecast"), tool("warn", "Warns.")]
        first = await register(tenant, upstream.url, "weather")
        second = await register(tenant, upstream.url, "calendar")
        assert (await read(tenant.user))["servers"] == []
        await grant(tenant, first, tenant.user.id)
        await grant(tenant, second, tenant.user.id, tool="warn")
        page = await read(tenant.user)
        assert (page["servers"], page["total"]) == (["calendar", "weather"], 3)
        names = [f"{row['server']}__{row['name']}" for row in page["tools"]]
        listed = (await send(tenant.user.client, "", "tools/list")).json()["result"]["tools"]
        assert names == [entry["name"] for entry in listed] == ["calendar__warn", "weather__forecast", "weather__warn"]
        forecast = {"server": "weather", "name": "forecast", "title": "Forecast", "description": "The weather."}
        assert (await read(tenant.user, server="weather", search="FORE"))["tools"] == [forecast]
        part = await read(tenant.user, limit=1, offset=2)
        assert (part["total"], [row["name"] for row in part["tools"]]) == (3, ["warn"])
        # Stopped tools and servers are left out.
        row = (await tools(tenant, first["id"]))[0]
        path = f"{BASE}/{first['id']}"
        await tenant.admin.client.post(f"{path}/tools/{row['id']}/disable", json={"reason": "other"})
        assert (await read(tenant.user, server="weather"))["total"] == 1
        await tenant.admin.client.post(f"{path}/disable", json={"reason": "other"})
        assert (await read(tenant.user))["servers"] == ["calendar"]


async def test_tools_whose_calls_are_always_refused_are_not_listed(platform: RunningPlatform, tenant: Tenant) -> None:
    async with scripted_server() as upstream:
        upstream.tools = [tool("forecast", "The weather."), tool("warn", "Warns.")]
        server = await register(tenant, upstream.url, access="open")
        row = next(row for row in await tools(tenant, server["id"]) if row["name"] == "warn")
        path = f"{BASE}/{server['id']}/tools/{row['id']}"
        (await tenant.admin.client.patch(path, json={"approval_required": True})).raise_for_status()
        flag = "/api/v1/admin/org/feature-flags/human_in_loop"
        for enabled, names in ((False, ["forecast"]), (True, ["forecast", "warn"])):
            (await tenant.admin.client.patch(flag, json={"enabled": enabled})).raise_for_status()
            listed = (await send(tenant.user.client, "weather", "tools/list")).json()["result"]["tools"]
            assert [entry["name"] for entry in listed] == names
            assert [row["name"] for row in (await read(tenant.user))["tools"]] == names


async def test_only_signed_in_persons_read_their_own_organization(platform: RunningPlatform, tenant: Tenant) -> None:
    async with scripted_server() as upstream:
        server = await register(tenant, upstream.url)
        await tenant.admin.client.patch(f"{BASE}/{server['id']}", json={"access": "open"})
        assert (await read(tenant.user))["total"] == 1
    assert (await platform.anonymous.get(PATH)).status_code == 401
    assert (await platform.client(await platform.new_key(tenant.user)).get(PATH)).status_code == 403
    other = await platform.new_tenant()
    assert (await read(other.admin))["tools"] == []
    refused = await tenant.user.client.get(PATH, params={"limit": 0})
    assert refused.status_code == 422
    assert "limit" in refused.text
