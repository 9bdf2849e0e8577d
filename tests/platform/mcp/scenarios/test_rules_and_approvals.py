"""Policy rules about calls of tools, and tools whose calls require an approval (docs/mcp.md, docs/policies.md)."""

import asyncio
from typing import Any

import httpx2
import pytest
from tests.support.mcp_servers import (
    BASE,
    ScriptedServer,
    call,
    grant,
    recorded,
    refresh,
    register,
    scripted_server,
    tool,
    tools,
    wait_for_approval,
)
from tests.support.platform import RunningPlatform, Tenant

RULES = "/api/admin/policies"
CARD = "4242 4242 4242 4242"


@pytest.fixture
async def upstream() -> Any:
    async with scripted_server() as server:
        server.tools.append(tool("send", "Sends a message."))
        yield server


@pytest.fixture
async def server(tenant: Tenant, upstream: ScriptedServer) -> dict[str, Any]:
    registered = await register(tenant, upstream.url, "mail")
    await grant(tenant, registered, tenant.user.id)
    return registered


@pytest.fixture
def client(tenant: Tenant, server: dict[str, Any]) -> httpx2.AsyncClient:
    return tenant.user.client


async def enable_approvals(tenant: Tenant) -> None:
    path = "/api/v1/admin/org/feature-flags/human_in_loop"
    assert (await tenant.admin.client.patch(path, json={"enabled": True})).status_code == 200


async def add_rule(tenant: Tenant, condition: str, action: str = "BLOCK", **fields: Any) -> dict[str, Any]:
    body = {"name": f"{action} {condition}", "condition": condition, "action": action, **fields}
    answer = await tenant.admin.client.post(RULES, json=body)
    assert answer.status_code == 201, answer.text
    rule: dict[str, Any] = answer.json()
    return rule


async def require_approval(tenant: Tenant, server: dict[str, Any], *, name: str = "send") -> str:
    """Require an approval for calls of a tool. Returns the path of the tool."""
    (row,) = (row for row in await tools(tenant, server["id"]) if row["name"] == name)
    path = f"{BASE}/{server['id']}/tools/{row['id']}"
    answer = await tenant.admin.client.patch(path, json={"approval_required": True})
    assert (answer.status_code, answer.json()["approval_required"]) == (200, True)
    return path


async def decide(tenant: Tenant, approval: dict[str, Any], decision: str) -> None:
    path = f"/api/admin/approvals/{approval['id']}/{decision}"
    assert (await tenant.admin.client.post(path, json={})).status_code == 200


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["data"]["code"]


@pytest.mark.parametrize(("decision", "count"), [("approve", 1), ("deny", 0)])
async def test_a_call_of_a_marked_tool_waits_for_a_person(
    platform: RunningPlatform,
    tenant: Tenant,
    server: dict[str, Any],
    client: httpx2.AsyncClient,
    upstream: ScriptedServer,
    decision: str,
    count: int,
) -> None:
    await enable_approvals(tenant)
    await require_approval(tenant, server)
    assert (await call(client, "mail", "echo")).status_code == 200
    task = asyncio.create_task(call(client, "mail", "send", to="Wolpertinger"))
    approval = await wait_for_approval(tenant)
    assert (approval["model"], approval["reason"]) == ("mcp:mail/send", "calls of mcp:mail/send require an approval")
    assert "Wolpertinger" not in str(approval)
    assert len(upstream.calls()) == 1
    await decide(tenant, approval, decision)
    answer = await task
    if count:
        assert answer.status_code == 200
        assert upstream.calls()[1] == {**upstream.calls()[1], "name": "send", "arguments": {"to": "Wolpertinger"}}
    else:
        assert refusal(answer) == (403, "tool_not_approved")
        assert answer.headers["X-DLP-Action"] == "CANCEL"
    assert len(upstream.calls()) == 1 + count
    event = (await recorded(platform, tenant))[1]
    (rule,) = event["details"]["rules"]
    result = "approved" if count else "denied"
    assert (rule["kind"], rule["rule_name"], rule["result"]) == ("mcp_tool", "send", result)


async def test_without_approvals_a_marked_tool_is_not_callable(
    tenant: Tenant, server: dict[str, Any], client: httpx2.AsyncClient, upstream: ScriptedServer
) -> None:
    await require_approval(tenant, server)
    assert refusal(await call(client, "mail", "send")) == (403, "tool_not_approved")
    assert upstream.calls() == []


async def test_the_mark_is_changed_by_administrators_and_recorded(
    platform: RunningPlatform, tenant: Tenant, server: dict[str, Any], client: httpx2.AsyncClient
) -> None:
    path = await require_approval(tenant, server)
    for person, status in ((tenant.user, 403), (tenant.auditor, 403)):
        answer = await person.client.patch(path, json={"approval_required": False})
        assert answer.status_code == status
    assert (await platform.client("gw-none").patch(path, json={})).status_code == 401
    for body in ({"approval_required": None}, {"approval_required": "no"}, {"name": "x"}):
        assert (await tenant.admin.client.patch(path, json=body)).status_code == 422
    answer = await tenant.admin.client.patch(path, json={"approval_required": False}, headers={"If-Match": '"x"'})
    assert answer.status_code == 412
    assert (await tenant.admin.client.patch(path, json={"approval_required": False})).status_code == 200
    assert (await tenant.admin.client.patch(path, json={"approval_required": False})).status_code == 200
    assert (await call(client, "mail", "send")).status_code == 200
    events = await platform.audit(tenant, "mcp_tool.updated")
    assert sorted(event["details"]["approval_required"] for event in events) == [False, True]


async def test_a_server_cannot_remove_the_mark(
    tenant: Tenant, server: dict[str, Any], client: httpx2.AsyncClient, upstream: ScriptedServer
) -> None:
    upstream.tools.append(tool("late", "Is new."))
    await refresh(tenant, server["id"])
    await require_approval(tenant, server, name="late")
    *others, late = upstream.tools
    upstream.tools = others
    await refresh(tenant, server["id"])
    upstream.tools = [*others, late]
    await refresh(tenant, server["id"])
    assert {row["name"]: row["approval_required"] for row in await tools(tenant, server["id"])} == {
        "echo": False, "late": True, "send": False,
    }  # fmt: skip


async def test_rules_see_server_tool_arguments_and_findings(
    platform: RunningPlatform,
    tenant: Tenant,
    server: dict[str, Any],
    client: httpx2.AsyncClient,
    upstream: ScriptedServer,
) -> None:
    message = "Mail leaves the company."
    condition = 'mcp.server == "mail" && mcp.tool == "send" && !mcp.arguments.to.endsWith("@example.com")'
    rule = await add_rule(tenant, condition, message=message)
    await add_rule(tenant, "has(mcp.arguments.amount) && mcp.arguments.amount > 100")
    await add_rule(tenant, 'mcp.tool == "echo" && "credit_card" in dlp.entities && user.role == "user"')
    for arguments, status in (
        ({"to": "bob@example.com"}, 200),
        ({"to": "bob@example.org"}, 403),
        # A condition that fails is treated as true for BLOCK.
        ({}, 403),
        ({"to": 1}, 403),
        ({"to": "bob@example.com", "amount": 101}, 403),
        ({"to": "bob@example.com", "amount": 10**30}, 403),
        ({"to": "bob@example.com", "amount": 99.5}, 200),
    ):
        assert (await call(client, "mail", "send", **arguments)).status_code == status, arguments
    assert len(upstream.calls()) == 2
    answer = await call(client, "mail", "send", to="bob@example.org")
    assert (refusal(answer), answer.json()["error"]["message"]) == ((403, "policy_violation"), message)
    assert answer.json()["error"]["data"]["rule_id"] == rule["id"]
    assert (await call(client, "mail", "echo", text="a")).status_code == 200
    assert refusal(await call(client, "mail", "echo", text=CARD)) == (403, "policy_violation")
    event = (await recorded(platform, tenant))[1]
    (entry,) = event["details"]["rules"]
    assert entry["kind"] == "policy_rule"
    assert (entry["rule_id"], entry["action"], entry["result"], entry["model"]) == (
        rule["id"], "BLOCK", "matched", "mcp:mail/send",
    )  # fmt: skip


async def test_rules_of_models_and_rules_of_tools_are_independent(
    platform: RunningPlatform, tenant: Tenant, client: httpx2.AsyncClient
) -> None:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    chat = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}
    of_tools = await add_rule(tenant, 'mcp.tool != ""')
    assert (await client.post("/v1/chat/completions", json=chat)).status_code == 200
    assert (await call(client, "mail", "echo")).status_code == 403
    await tenant.admin.client.delete(f"{RULES}/{of_tools['id']}")
    await add_rule(tenant, "true")
    assert (await client.post("/v1/chat/completions", json=chat)).status_code == 403
    assert (await call(client, "mail", "echo")).status_code == 200


async def test_arguments_that_rules_cannot_evaluate_are_refused_only_if_rules_read_them(
    tenant: Tenant, client: httpx2.AsyncClient
) -> None:
    rule = await add_rule(tenant, 'mcp.tool == "send"', "LOG")
    large = "x" * (64 * 1024)
    assert (await call(client, "mail", "echo", text=large)).status_code == 200
    await tenant.admin.client.delete(f"{RULES}/{rule['id']}")
    await add_rule(tenant, "has(mcp.arguments.text)", "LOG")
    assert refusal(await call(client, "mail", "echo", text=large)) == (403, "arguments_not_evaluated")
    assert (await call(client, "mail", "echo", text="a")).status_code == 200


async def test_one_approval_covers_the_rule_and_the_tool(
    tenant: Tenant, server: dict[str, Any], client: httpx2.AsyncClient, upstream: ScriptedServer
) -> None:
    await enable_approvals(tenant)
    await require_approval(tenant, server)
    rule = await add_rule(tenant, 'mcp.arguments.to == "bob"', "REQUIRE_APPROVAL")
    task = asyncio.create_task(call(client, "mail", "send", to="bob"))
    approval = await wait_for_approval(tenant)
    assert (approval["rule_id"], approval["model"]) == (rule["id"], "mcp:mail/send")
    await decide(tenant, approval, "approve")
    assert (await task).status_code == 200
    assert len(upstream.calls()) == 1


async def test_conditions_are_tried_with_a_call_of_a_tool(tenant: Tenant) -> None:
    path, admin = f"{RULES}/test", tenant.admin.client
    context = {"mcp": {"server": "mail", "tool": "send", "arguments": {"to": "bob"}}}
    answer = await admin.post(path, json={"condition": 'mcp.arguments.to == "bob"', "context": context})
    assert (answer.status_code, answer.json()["matched"], answer.json()["error"]) == (200, True, None)
    rule = await add_rule(tenant, 'mcp.tool == "send"')
    answer = await admin.post(path, json={"context": context})
    assert (answer.json()["action"], answer.json()["rule_id"]) == ("BLOCK", rule["id"])
    answer = await admin.post(path, json={"context": {"model": "sandbox/echo"}})
    assert (answer.json()["action"], answer.json()["rules"]) == ("ALLOW", [])


@pytest.mark.parametrize(
    ("condition", "action", "fault"),
    [
        ('mcp == "x"', "BLOCK", "without one of its fields"),
        ('mcp["arguments"].to == "x"', "BLOCK", "without one of its fields"),
        ('mcp.tool == "x" && provider == "openai"', "BLOCK", "which no request has both"),
        ('mcp.tool == "x"', "ROUTE", "must not be ROUTE"),
    ],
)
async def test_conditions_that_no_request_can_meet_are_refused(
    tenant: Tenant, condition: str, action: str, fault: str
) -> None:
    answer = await tenant.admin.client.post(RULES, json={"name": "x", "condition": condition, "action": action})
    assert (answer.status_code, fault in answer.text) == (400, True)
