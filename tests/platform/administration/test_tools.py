"""The administration API as an MCP server (docs/mcp.md)."""

import json
from typing import Any

import httpx2
import pytest
from fastapi.routing import APIRoute
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.engine.mcp.errors import InvalidParams
from gatehouse.platform.administration import tool_server
from gatehouse.platform.administration.contents import FAMILIES
from gatehouse.platform.administration.tools import PREFIXES, Operation, operations
from gatehouse.platform.worker.app import administration

PATH = "/api/mcp"


@pytest.fixture(scope="module")
def tools() -> dict[str, Operation]:
    app, _ = administration()
    return operations(app.openapi(), FAMILIES)


def test_only_aliases_of_a_path_have_the_same_name() -> None:
    endpoints: dict[str, set[Any]] = {}
    for router in FAMILIES:
        for route in router.routes:
            if isinstance(route, APIRoute) and route.path.startswith(PREFIXES):
                endpoints.setdefault(route.name, set()).add(route.endpoint)
    assert len(endpoints) > 200
    assert {name for name, functions in endpoints.items() if len(functions) > 1} == set()


@pytest.fixture
def writing(platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch) -> RunningPlatform:
    """The platform with ADMIN_MCP=write."""
    return configured(platform, monkeypatch, admin_mcp="write")


def configured(platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> RunningPlatform:
    monkeypatch.setattr(platform.host, "settings", platform.host.settings.model_copy(update=settings))
    return platform


async def send(
    client: httpx2.AsyncClient, method: str, params: dict[str, Any] | None = None, query: str = "", **headers: str
) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    return await client.post(PATH + query, json=body, headers=headers)


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def call(client: httpx2.AsyncClient, name: str, **arguments: Any) -> dict[str, Any]:
    answer = await send(client, "tools/call", {"name": name, "arguments": arguments})
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()["result"]
    return result


async def listed(client: httpx2.AsyncClient, query: str = "") -> dict[str, dict[str, Any]]:
    answer = await send(client, "tools/list", query=query)
    assert answer.status_code == 200, answer.text
    return {tool["name"]: tool for tool in answer.json()["result"]["tools"]}


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
async def test_the_official_client_reads_and_changes_the_organization(
    writing: RunningPlatform, tenant: Tenant, mode: str
) -> None:
    async with (
        writing.listening() as url,
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {tenant.admin.token}"}, timeout=60) as http,
        Client(streamable_http_client(url + PATH, http_client=http), mode=mode) as client,
    ):
        assert {"list_budgets", "create_budget"} <= {tool.name for tool in (await client.list_tools()).tools}
        body = {"scope_type": "tenant", "limit_usd": "10", "period": "month"}
        created = await client.call_tool("create_budget", {"body": body})
        assert not created.is_error, created.content
        shown = await client.call_tool("list_budgets", {"scope_type": "tenant", "page_size": 1})
        assert shown.structured_content is not None
        assert [row["id"] for row in shown.structured_content["items"]] == [created.structured_content["id"]]
        assert json.loads(text_of(shown)) == shown.structured_content
        removed = await client.call_tool("delete_budget", {"budget_id": created.structured_content["id"]})
        assert (removed.is_error, text_of(removed)) == (False, "The operation has succeeded with status 204.")
        with pytest.raises(MCPError, match="no tool with this name"):
            await client.call_tool("create_user", {"body": {}})


async def test_a_change_is_audited_with_the_id_of_the_request(writing: RunningPlatform, tenant: Tenant) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    budget = {"scope_type": "tenant", "limit_usd": "10", "period": "month"}
    params = {"name": "create_budget", "arguments": {"body": budget}}
    answer = await tenant.admin.client.post(PATH, json={**body, "params": params}, headers={"X-Request-Id": "req-1"})
    assert answer.headers["X-Request-Id"] == "req-1"
    rows = writing.sql("SELECT action, actor_id, request_id FROM audit_events WHERE tenant_id = %s", [tenant.id])
    assert ("budget.created", str(tenant.admin.id), "req-1") in rows


async def test_by_default_only_reading_operations_are_tools(platform: RunningPlatform, tenant: Tenant) -> None:
    shown = await listed(tenant.admin.client)
    assert all(tool["annotations"]["readOnlyHint"] for tool in shown.values())
    assert "list_users" in shown
    assert "create_budget" not in shown
    answer = await send(tenant.admin.client, "tools/call", {"name": "create_budget", "arguments": {"body": {}}})
    assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (400, "unknown_tool")
    assert platform.sql("SELECT count(*) FROM budgets WHERE tenant_id = %s", [tenant.id]) == [(0,)]


async def test_the_setting_turns_the_server_off(
    platform: RunningPlatform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured(platform, monkeypatch, admin_mcp="off")
    answer = await send(tenant.admin.client, "tools/list")
    assert (answer.status_code, "ADMIN_MCP is off" in answer.text) == (404, True)


async def test_the_list_has_the_tools_that_the_caller_may_call(writing: RunningPlatform, tenant: Tenant) -> None:
    admin, auditor, user = [await listed(person.client) for person in (tenant.admin, tenant.auditor, tenant.user)]
    assert auditor.keys() < admin.keys()
    assert "create_budget" in admin.keys() - auditor.keys()
    assert "list_users" not in user
    assert "read_usage_summary" in user
    machine = await listed(await writing.new_m2m(tenant.id, "audit:read"))
    assert set(machine) == {"list_audit_events", "list_audit_actions", "verify_audit_chain"}
    # Only operators switch the maintenance of the platform.
    assert "switch_maintenance" not in admin
    assert "switch_maintenance" in await listed((await writing.operator()).client)


@pytest.mark.parametrize("person", ["auditor", "user"])
async def test_a_tool_without_the_right_is_unknown(writing: RunningPlatform, tenant: Tenant, person: str) -> None:
    client = getattr(tenant, person).client
    answer = await send(client, "tools/call", {"name": "create_budget", "arguments": {"body": {}}})
    assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (400, "unknown_tool")


async def test_each_listed_tool_of_an_auditor_is_permitted(
    platform: RunningPlatform, tenant: Tenant, tools: dict[str, Operation]
) -> None:
    """The list agrees with the checks of the routes themselves."""
    shown = await listed(tenant.auditor.client)
    for name, operation in tools.items():
        if operation.reads and "{" not in operation.path:
            answer = await tenant.auditor.client.get(operation.path)
            assert (answer.status_code != 403) == (name in shown), (name, answer.text)


async def test_without_a_credential_nothing_is_answered(platform: RunningPlatform, tenant: Tenant) -> None:
    for client in (platform.anonymous, platform.client("gk_wrong")):
        answer = await send(client, "tools/list")
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert answer.json()["error"]["code"] == 401


async def test_another_organization_is_not_shown(platform: RunningPlatform, tenant: Tenant) -> None:
    other = await platform.new_tenant()
    result = await call(tenant.admin.client, "read_user", user_id=str(other.user.id))
    assert result["isError"]
    assert "not found" in result["content"][0]["text"].lower()


async def test_faults_name_the_parameter(writing: RunningPlatform, tenant: Tenant) -> None:
    result = await call(tenant.admin.client, "create_budget", body={"scope_type": "tenant", "limit_usd": "none"})
    assert (result["isError"], "limit_usd" in result["content"][0]["text"]) == (True, True)
    for arguments, name in (
        ({"budget_id": "../users"}, "budget_id"),
        ({"budget_id": ".."}, "budget_id"),
        ({"budget_id": {}}, "budget_id"),
        ({}, "budget_id"),
        ({"budget_id": "1", "other": 1}, "other"),
        ({"budget_id": "1", "body": {}}, "body"),
    ):
        answer = await send(tenant.admin.client, "tools/call", {"name": "read_budget", "arguments": arguments})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)
        assert answer.json()["error"]["data"]["param"] == f"arguments.{name}"
    answer = await send(tenant.admin.client, "tools/list", query="?family=none")
    assert "must be one of: " in answer.json()["error"]["message"]


@pytest.mark.parametrize("value", ["1%2F..%2F..%2Fapi-keys", "1?x=1", "1#x", "ä/../b"])
async def test_a_path_parameter_cannot_reach_another_operation(
    platform: RunningPlatform, tenant: Tenant, value: str
) -> None:
    answer = await send(tenant.admin.client, "tools/call", {"name": "read_budget", "arguments": {"budget_id": value}})
    if answer.status_code == 200:
        assert answer.json()["result"]["isError"]
        assert "udget not found" in answer.text
    else:
        assert answer.json()["error"]["code"] == -32602


def test_an_identifier_with_slashes_stays_below_its_path(tools: dict[str, Operation]) -> None:
    operation = tools["delete_model_access"]
    path, _ = operation.target({"group_id": "g", "model_id": "openai/gpt-5"})
    assert path == "/api/admin/groups/g/model-access/openai/gpt-5"
    for value in ("a/../../..", "/a", "a//b", "./a", ""):
        with pytest.raises(InvalidParams):
            operation.target({"group_id": "g", "model_id": value})


async def test_the_list_can_be_limited_to_families(platform: RunningPlatform, tenant: Tenant) -> None:
    shown = await listed(tenant.admin.client, "?family=budgets&family=audit")
    assert set(shown) == {
        "list_budgets", "read_budget", "list_audit_events", "list_audit_actions", "verify_audit_chain"
    }  # fmt: skip
    answer = await send(tenant.admin.client, "tools/call", {"name": "list_users"}, "?family=budgets")
    assert answer.json()["error"]["data"]["code"] == "unknown_tool"


@pytest.mark.parametrize(("name", "kind"), [("export_inventory", "csv"), ("read_report", "html")])
async def test_a_result_in_another_format_is_a_text(
    platform: RunningPlatform, tenant: Tenant, name: str, kind: str
) -> None:
    result = await call(tenant.admin.client, name, format=kind)
    assert not result["isError"], result
    assert "structuredContent" not in result
    assert result["content"][0]["text"]


async def test_a_result_is_bounded(platform: RunningPlatform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_server, "_MAX_RESULT_BYTES", 300)
    result = await call(tenant.admin.client, "list_users")
    assert result["isError"]
    assert result["content"][0]["text"] == "The answer has more than 300 bytes. Request fewer rows, or add a filter."


async def test_a_slow_operation_is_ended(
    platform: RunningPlatform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_server, "_CALL_TIMEOUT_SECONDS", 0.0)
    result = await call(tenant.admin.client, "list_users")
    assert (result["isError"], "did not end within" in result["content"][0]["text"]) == (True, True)
    assert (await tenant.admin.client.get("/api/admin/users")).status_code == 200


async def test_pages_of_other_origins_are_refused(platform: RunningPlatform, tenant: Tenant) -> None:
    answer = await send(tenant.admin.client, "tools/list", Origin="https://evil.example")
    assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (403, "origin_refused")


async def test_the_protocol_outside_tools(platform: RunningPlatform, tenant: Tenant) -> None:
    client = tenant.admin.client
    assert (await client.get(PATH)).status_code == 405
    assert (await client.delete(PATH)).status_code == 405
    notification = await client.post(PATH, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (notification.status_code, notification.content) == (202, b"")
    for method, status in (("resources/list", 404), ("initialize", 200), ("ping", 200)):
        assert (await send(client, method)).status_code == status, method
    assert (await client.post(PATH, content=b"{")).json()["error"]["code"] == -32700
    ended = await send(client, "tools/list", None, "", **{"Mcp-Session-Id": "s"})
    assert ended.json()["error"]["data"]["code"] == "unknown_mcp_session"


async def test_one_call_counts_as_one_request(platform: RunningPlatform, tenant: Tenant) -> None:
    first = await send(tenant.admin.client, "tools/call", {"name": "list_budgets"})
    second = await send(tenant.admin.client, "tools/call", {"name": "list_budgets"})
    remaining = [int(answer.headers["X-RateLimit-Remaining"]) for answer in (first, second)]
    assert remaining[0] - remaining[1] == 1


def test_operations_with_secrets_in_their_response_are_no_tools(tools: dict[str, Operation]) -> None:
    secret = {
        "create_oauth_client", "rotate_oauth_client_secret", "create_scim_token", "create_service_account_key",
        "create_tenant", "create_user", "issue_password_reset", "create_webhook",
    }  # fmt: skip
    routes = {route.name for router in FAMILIES for route in router.routes if isinstance(route, APIRoute)}
    assert secret <= routes
    assert not secret & tools.keys()


def test_definitions_are_complete_and_small(tools: dict[str, Operation]) -> None:
    for operation in tools.values():
        text = json.dumps(operation.definition)
        assert "#/components" not in text
        assert len(text) < 10_000, operation.name
        references = {part.split('"')[0] for part in text.split('"#/$defs/')[1:]}
        assert references <= operation.definition["inputSchema"].get("$defs", {}).keys()
        assert operation.checks, operation.name
