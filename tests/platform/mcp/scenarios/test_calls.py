"""Calls of tools: inspection, approvals, limits, records (docs/mcp.md)."""

import asyncio
import hashlib
from typing import Any

import httpx2
import msgspec
import pytest
from aiohttp import web
from tests.support.mcp_servers import (
    BASE,
    ScriptedServer,
    call,
    forever,
    grant,
    recorded,
    register,
    result,
    scripted_server,
    send,
    tool,
    tools,
    wait_for_approval,
)
from tests.support.platform import RunningPlatform, Tenant

CARD = "4242 4242 4242 4242"
#: a word that occurs only in arguments and results
SECRET = "Wolpertinger"


@pytest.fixture
async def upstream() -> Any:
    async with scripted_server() as server:
        yield server


@pytest.fixture
async def server(tenant: Tenant, upstream: ScriptedServer) -> dict[str, Any]:
    registered = await register(tenant, upstream.url)
    await grant(tenant, registered, tenant.user.id)
    return registered


@pytest.fixture
def client(tenant: Tenant, server: dict[str, Any]) -> httpx2.AsyncClient:
    """The client of a user who may call all tools of the server."""
    return tenant.user.client


def returns(upstream: ScriptedServer, value: dict[str, Any]) -> None:
    async def respond(_: ScriptedServer, message: dict[str, Any], __: web.Request) -> web.Response | None:
        return result(message, value) if message["method"] == "tools/call" else None

    upstream.respond = respond


async def add_rule(platform: RunningPlatform, tenant: Tenant, **rule: Any) -> None:
    body = {"detector_name": "a rule", "detector_type": "regex", "entity_type": "credit_card", **rule}
    answer = await tenant.admin.client.post("/api/admin/dlp-rules/", json=body)
    assert answer.status_code == 201, answer.text
    await platform.refresh()


async def test_values_in_arguments_are_redacted_before_they_are_sent(
    platform: RunningPlatform, tenant: Tenant, client: httpx2.AsyncClient, upstream: ScriptedServer
) -> None:
    answer = await call(client, "weather", "echo", text=f"{SECRET} pays with {CARD}", deep=[{"model": CARD}])
    assert (answer.status_code, answer.headers["X-DLP-Action"]) == (200, "REDACT")
    sent = {"text": f"{SECRET} pays with [CREDIT_CARD_1]", "deep": [{"model": "[CREDIT_CARD_1]"}]}
    (params,) = upstream.calls()
    assert (params["name"], params["arguments"]) == ("echo", sent)
    (event,) = await recorded(platform, tenant)
    digest = hashlib.sha256(msgspec.json.encode(sent, order="sorted")).hexdigest()
    (row,) = platform.sql("SELECT approved_hash FROM mcp_tools WHERE tenant_id = %s", [tenant.id])
    details = event["details"]
    assert details["arguments_digest"] == f"sha256:{digest}"
    assert (details["server"], details["tool"], details["definition_hash"]) == ("weather", "echo", row[0])
    assert (details["status"], details["is_error"], details["dlp_action"]) == (200, False, "REDACT")
    assert details["latency_ms"] >= details["upstream_ms"] > 0
    assert (event["outcome"], event["actor_id"], event["reason"]) == ("success", str(tenant.user.id), None)
    assert event["request_id"] == answer.headers["X-Request-Id"]
    # Neither arguments nor results are stored.
    assert SECRET not in str(event)
    assert "done" not in str(event["details"])
    rows = platform.sql(
        "SELECT id, entity_type, direction, status, model, match_count FROM dlp_events WHERE tenant_id = %s",
        [tenant.id],
    )
    assert [row[1:] for row in rows] == [("credit_card", "input", "redacted", "mcp:weather/echo", 2)]
    assert platform.breaks(tenant) == []


async def test_values_in_results_are_redacted_in_every_place(
    client: httpx2.AsyncClient, upstream: ScriptedServer
) -> None:
    returns(
        upstream,
        {
            "content": [
                {"type": "text", "text": f"The card is {CARD}."},
                {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": f"or {CARD}"}},
                {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAA" * 8},
            ],
            # Ids of results are data, unlike the ids that a model's provider generates.
            "structuredContent": {"id": CARD, "rows": [{"call_id": CARD, "name": "Alice"}]},
            "_meta": {"note": CARD},
        },
    )
    answer = await call(client, "weather", "echo")
    assert (answer.status_code, answer.headers["X-DLP-Action"]) == (200, "REDACT")
    assert CARD not in answer.text
    value = answer.json()["result"]
    assert value["content"][0]["text"] == "The card is [CREDIT_CARD_1]."
    assert value["content"][1]["resource"]["text"] == "or [CREDIT_CARD_1]"
    assert value["content"][2]["data"] == "iVBORw0KGgoAAAANSUhEUgAA" * 8
    assert value["structuredContent"] == {
        "id": "[CREDIT_CARD_1]",
        "rows": [{"call_id": "[CREDIT_CARD_1]", "name": "Alice"}],
    }


async def test_a_block_on_arguments_sends_nothing(
    platform: RunningPlatform, tenant: Tenant, client: httpx2.AsyncClient, upstream: ScriptedServer
) -> None:
    await add_rule(platform, tenant, action_tier="block")
    answer = await call(client, "weather", "echo", text=CARD)
    assert (answer.status_code, answer.headers["X-DLP-Action"]) == (403, "BLOCK")
    error = answer.json()["error"]
    assert (error["code"], error["data"]["type"], error["data"]["code"]) == (403, "dlp_violation", "dlp_violation")
    assert answer.json()["id"] == 7
    assert upstream.calls() == []
    (event,) = await recorded(platform, tenant)
    assert (event["outcome"], event["reason"], event["details"]["arguments_digest"]) == (
        "refused", "dlp_violation", None,
    )  # fmt: skip


async def test_a_block_on_results_is_an_error_that_does_not_contain_the_value(
    platform: RunningPlatform, tenant: Tenant, client: httpx2.AsyncClient, upstream: ScriptedServer
) -> None:
    await add_rule(platform, tenant, action_tier="block")
    returns(upstream, {"content": [{"type": "text", "text": f"The card is {CARD}."}]})
    answer = await call(client, "weather", "echo")
    assert (answer.status_code, CARD in answer.text) == (403, False)
    (event,) = await recorded(platform, tenant)
    assert (event["outcome"], event["details"]["dlp_action"]) == ("refused", "BLOCK")
    assert event["details"]["arguments_digest"] is not None


async def test_content_filters_apply_to_arguments(
    platform: RunningPlatform, tenant: Tenant, client: httpx2.AsyncClient, upstream: ScriptedServer
) -> None:
    body = {
        "name": "Names", "filter_type": "keyword_block", "config": {"keywords": ["Falcon"]}, "scope": "org",
        "priority": 1,
    }  # fmt: skip
    assert (await tenant.admin.client.post("/api/admin/content-filters", json=body)).status_code == 201
    await platform.refresh()
    answer = await call(client, "weather", "echo", nested={"list": ["about falcon"]})
    assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (403, "content_filter_violation")
    assert upstream.calls() == []
    (event,) = await recorded(platform, tenant)
    assert [(rule["kind"], rule["result"]) for rule in event["details"]["rules"]] == [("content_filter", "matched")]


@pytest.fixture
async def waiting_call(platform: RunningPlatform, tenant: Tenant, client: httpx2.AsyncClient) -> Any:
    """A call that waits for an approval, and the approval."""
    path = "/api/v1/admin/org/feature-flags/human_in_loop"
    assert (await tenant.admin.client.patch(path, json={"enabled": True})).status_code == 200
    await add_rule(platform, tenant, action_tier="prompt")
    task = asyncio.create_task(call(client, "weather", "echo", text=CARD))
    yield task, await wait_for_approval(tenant)
    task.cancel()


async def test_a_held_call_is_sent_when_a_person_approves_it(
    tenant: Tenant, upstream: ScriptedServer, waiting_call: Any
) -> None:
    task, approval = waiting_call
    assert (approval["model"], approval["direction"]) == ("mcp:weather/echo", "input")
    assert upstream.calls() == []
    path = f"/api/admin/approvals/{approval['id']}/approve"
    assert (await tenant.admin.client.post(path, json={})).status_code == 200
    answer = await task
    assert (answer.status_code, answer.headers["X-DLP-Action"]) == (200, "PROMPT")
    assert upstream.calls()[0]["arguments"] == {"text": CARD}


@pytest.mark.parametrize("stop", ["server", "tool", "reject", "remove", "remove and reload"])
async def test_a_held_call_is_not_sent_after_its_tool_was_stopped(
    platform: RunningPlatform,
    tenant: Tenant,
    server: dict[str, Any],
    upstream: ScriptedServer,
    waiting_call: Any,
    stop: str,
) -> None:
    task, approval = waiting_call
    path, admin = f"{BASE}/{server['id']}", tenant.admin.client
    (row,) = await tools(tenant, server["id"])
    stopped = {
        "server": lambda: admin.post(f"{path}/disable", json={"reason": "other"}),
        "tool": lambda: admin.post(f"{path}/tools/{row['id']}/disable", json={"reason": "other"}),
        "reject": lambda: admin.post(f"{path}/tools/{row['id']}/reject", json={"hash": row["hash"]}),
        "remove": lambda: admin.delete(path),
    }[stop.partition(" ")[0]]
    assert (await stopped()).status_code in {200, 204}
    if stop.endswith("reload"):
        # A worker that has missed changes loads everything again.
        await platform.host.feed._load_all()
    assert (await admin.post(f"/api/admin/approvals/{approval['id']}/approve", json={})).status_code == 200
    answer = await task
    assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (503, "mcp_switched_off")
    assert upstream.calls() == []


async def test_a_held_call_is_not_sent_after_its_credential_was_revoked(
    platform: RunningPlatform, tenant: Tenant, upstream: ScriptedServer, waiting_call: Any
) -> None:
    task, approval = waiting_call
    platform.sql("UPDATE users SET is_active = false WHERE id = %s", [tenant.user.id])
    platform.touch("user", tenant.user.id)
    await platform.refresh()
    await tenant.admin.client.post(f"/api/admin/approvals/{approval['id']}/approve", json={})
    answer = await task
    assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (401, "credential_revoked")
    assert upstream.calls() == []


async def test_errors_of_the_tool_and_of_the_server_are_inspected(
    platform: RunningPlatform, tenant: Tenant, client: httpx2.AsyncClient, upstream: ScriptedServer
) -> None:
    error: dict[str, Any] = {"code": -32602, "message": "`days` is not a number"}

    async def respond(_: ScriptedServer, message: dict[str, Any], __: web.Request) -> web.Response | None:
        answer = {"jsonrpc": "2.0", "id": message["id"], "error": error}
        return web.json_response(answer) if message["method"] == "tools/call" else None

    upstream.respond = respond
    answer = await call(client, "weather", "echo")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)
    assert answer.json()["error"]["message"] == "`days` is not a number"
    error["message"] = f"no card {CARD}"
    answer = await call(client, "weather", "echo")
    assert (answer.status_code, CARD in answer.text) == (400, False)
    error |= {"code": -32603, "message": f"internal: {CARD}", "data": {"card": CARD}}
    answer = await call(client, "weather", "echo")
    assert (answer.status_code, answer.json()["error"]["code"], CARD in answer.text) == (502, 502, False)
    returns(upstream, {"content": [{"type": "text", "text": f"no card {CARD}"}], "isError": True})
    answer = await call(client, "weather", "echo")
    assert answer.json()["result"]["isError"] is True
    assert answer.json()["result"]["content"] == [{"type": "text", "text": "no card [CREDIT_CARD_1]"}]
    outcomes = [(event["outcome"], event["details"]["is_error"]) for event in await recorded(platform, tenant)]
    assert outcomes == [("refused", False), ("refused", False), ("error", False), ("success", True)]


async def test_a_client_that_disconnects_is_recorded_and_the_call_is_cancelled(
    platform: RunningPlatform, tenant: Tenant, server: dict[str, Any], upstream: ScriptedServer
) -> None:
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def respond(_: ScriptedServer, message: dict[str, Any], __: web.Request) -> None:
        if message["method"] == "tools/call":
            arrived.set()
            try:
                await forever()
            finally:
                gone.set()

    upstream.respond = respond
    key = await platform.new_key(tenant.user)
    async with platform.listening() as url:
        async with httpx2.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}) as http:
            task = asyncio.create_task(call(http, "weather", "echo", text=SECRET))
            await asyncio.wait_for(arrived.wait(), 30)
            task.cancel()
            await asyncio.wait({task})
        async with asyncio.timeout(30):
            while not (events := await recorded(platform, tenant)):
                await asyncio.sleep(0.1)
    assert [(event["outcome"], event["details"]["status"]) for event in events] == [("cancelled", 499)]
    assert events[0]["details"]["arguments_digest"] is not None


async def test_callers_without_a_credential_or_scope_are_refused(
    platform: RunningPlatform, tenant: Tenant, server: dict[str, Any], upstream: ScriptedServer
) -> None:
    answer = await call(platform.anonymous, "weather", "echo")
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert answer.json()["error"]["code"] == 401
    machine = await platform.new_m2m(tenant.id, "api:read")
    answer = await call(machine, "weather", "echo")
    assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (403, "insufficient_scope")
    assert upstream.calls() == []


async def test_calls_count_against_the_rate_limit(
    platform: RunningPlatform, tenant: Tenant, server: dict[str, Any], client: httpx2.AsyncClient
) -> None:
    platform.sql("UPDATE tenants SET custom_rate_limit_rpm = 2 WHERE id = %s", [tenant.id])
    platform.touch("tenant", tenant.id)
    await platform.refresh()
    answers = [await call(client, "weather", "echo") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[0].headers["X-RateLimit-Remaining"] == "1"
    assert answers[2].json()["error"]["data"]["code"] == "quota_exceeded"


async def test_a_parameter_is_repeated_in_its_header_after_redaction(
    tenant: Tenant, client: httpx2.AsyncClient, server: dict[str, Any], upstream: ScriptedServer
) -> None:
    properties = {"region": {"type": "string", "x-mcp-header": "Region"}, "days": {"type": "integer"}}
    upstream.tools = [tool("echo", "Annotated.", inputSchema={"type": "object", "properties": properties})]
    await tenant.admin.client.delete(f"{BASE}/{server['id']}")
    registered = await register(tenant, upstream.url)
    await grant(tenant, registered, tenant.user.id)
    # Agents do not see the annotation, because the gateway sends the header.
    (listed,) = (await send(client, "weather", "tools/list")).json()["result"]["tools"]
    assert listed["inputSchema"]["properties"]["region"] == {"type": "string"}
    for region, header in (
        ("us-west", "us-west"),
        (f"at {CARD}", "at [CREDIT_CARD_1]"),
        ("Zürich", "=?base64?WsO8cmljaA==?="),
    ):
        assert (await call(client, "weather", "echo", region=region, days=1)).status_code == 200
        assert upstream.seen[-1][1]["mcp-param-region"] == header
    assert (await call(client, "weather", "echo", region=[1])).json()["error"]["data"]["param"] == "arguments.region"


async def test_the_audit_log_lists_the_calls_of_a_tool_by_outcome(platform: RunningPlatform, tenant: Tenant) -> None:
    async with scripted_server() as upstream:
        upstream.tools.append(tool("other", "Another tool."))
        server = await register(tenant, upstream.url)
        await grant(tenant, server, tenant.user.id, tool="echo")
        for name in ("echo", "other", "echo"):
            await call(tenant.user.client, "weather", name)
    await recorded(platform, tenant)

    async def calls(**query: str) -> list[tuple[str, str]]:
        answer = await tenant.auditor.client.get("/v1/audit/events", params={"resource_id": server["id"], **query})
        assert answer.status_code == 200, answer.text
        events = answer.json()["events"]
        return [(row["details"]["tool"], row["outcome"]) for row in events if row["action"] == "mcp.tool_call"]

    assert await calls(tool="echo") == [("echo", "success")] * 2
    assert await calls(outcome="refused") == [("other", "refused")]
    assert await calls(tool="other", outcome="success") == []
    assert await calls(tool="other", action="login.succeeded") == []
    assert len(await calls(action="mcp.tool_call")) == 3
    refused = await tenant.auditor.client.get("/v1/audit/events", params={"tool": "\0"})
    assert refused.status_code == 422
    assert "tool" in refused.text
