"""Hostile MCP servers and agents (docs/mcp.md).

`test_tools` tests instructions in descriptions and descriptions that change after their approval;
`connections/test_consents` tests agents and users that try to use the consent of another user.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from aiohttp import web
from tests.support.mcp_servers import (
    BASE,
    ScriptedServer,
    begin_session,
    call,
    grant,
    register,
    result,
    scripted_server,
    sdk_server,
    send,
    send_older,
    text_result,
)
from tests.support.platform import RunningPlatform, Tenant

CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", CAPABILITIES: {}}
MODERN = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "echo"}


@pytest.fixture
async def upstream(tenant: Tenant) -> Any:
    """A server that the user may call."""
    async with scripted_server() as server:
        registered = await register(tenant, server.url, timeout_ms=2_000)
        await grant(tenant, registered, tenant.user.id)
        yield server


def answers(upstream: ScriptedServer, respond: Any) -> None:
    async def of_call(_: ScriptedServer, message: dict[str, Any], request: web.Request) -> Any:
        return await respond(message, request) if message["method"] == "tools/call" else None

    upstream.respond = of_call


async def stream(request: web.Request, *events: bytes, repeat: bytes = b"", pause: float = 0.0) -> web.StreamResponse:
    """Send events, and then repeat one without end."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for event in events:
        await response.write(event)
    while repeat:
        await response.write(repeat)
        await asyncio.sleep(pause)
    return response


def event(message: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(message).encode() + b"\n\n"


PROGRESS = event({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}})


async def failure(client: httpx2.AsyncClient) -> tuple[int, str]:
    answer = await asyncio.wait_for(call(client, "weather", "echo"), 30)
    return answer.status_code, answer.json()["error"]["data"].get("reason", answer.json()["error"]["data"]["code"])


async def test_endless_streams_are_ended(tenant: Tenant, upstream: ScriptedServer) -> None:
    answers(upstream, lambda _, request: stream(request, repeat=PROGRESS))
    assert await failure(tenant.user.client) == (502, "too_many_events")
    # A stream that sends a little again and again reaches the time limit of the call.
    answers(upstream, lambda _, request: stream(request, repeat=b": still there\n\n", pause=0.05))
    assert await failure(tenant.user.client) == (502, "timeout")
    answers(upstream, lambda _, request: stream(request, repeat=b"data: " + b"x" * 100_000))
    assert await failure(tenant.user.client) == (502, "reply_too_large")
    answers(upstream, lambda _, request: stream(request, b"data: {", repeat=b"", pause=0))
    assert await failure(tenant.user.client) == (502, "bad_reply")


async def test_oversized_and_deep_results_are_refused(tenant: Tenant, upstream: ScriptedServer) -> None:
    async def large(message: dict[str, Any], _: web.Request) -> web.Response:
        return result(message, text_result("x" * (4 * 1024 * 1024)))

    async def deep(message: dict[str, Any], _: web.Request) -> web.Response:
        nested = b"[" * 200 + b"]" * 200
        body = b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":' + nested + b"}}"
        return web.Response(body=body, content_type="application/json")

    answers(upstream, large)
    assert await failure(tenant.user.client) == (502, "reply_too_large")
    answers(upstream, deep)
    assert await failure(tenant.user.client) == (502, "bad_reply")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"resultType": "input_required", "inputRequests": {}}, "input_required"),
        ({"content": "text"}, "bad_reply"),
        ({"content": ["text"]}, "bad_reply"),
        ({"content": [], "isError": "no"}, "bad_reply"),
        ({}, "bad_reply"),
    ],
)
async def test_results_that_are_not_complete_or_not_valid_are_refused(
    tenant: Tenant, upstream: ScriptedServer, value: dict[str, Any], reason: str
) -> None:
    async def respond(message: dict[str, Any], _: web.Request) -> web.Response:
        return result(message, value)

    answers(upstream, respond)
    assert await failure(tenant.user.client) == (502, reason)


async def test_a_server_cannot_ask_the_agent_or_answer_another_request(
    tenant: Tenant, upstream: ScriptedServer
) -> None:
    sampling = event({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {}})
    answers(upstream, lambda _, request: stream(request, PROGRESS, sampling))
    assert await failure(tenant.user.client) == (502, "server_request")
    other = event({"jsonrpc": "2.0", "id": 99, "result": text_result("of another request")})
    own = event({"jsonrpc": "2.0", "id": 1, "result": text_result("own")})
    answers(upstream, lambda _, request: stream(request, other, PROGRESS, own))
    answer = await call(tenant.user.client, "weather", "echo")
    assert answer.json()["result"]["content"] == [{"type": "text", "text": "own"}]


async def test_redirects_and_refused_credentials_reveal_nothing(tenant: Tenant, upstream: ScriptedServer) -> None:
    async with scripted_server() as other:

        async def redirect(_: dict[str, Any], __: web.Request) -> web.Response:
            return web.Response(status=307, headers={"Location": other.url})

        async def refuse(_: dict[str, Any], __: web.Request) -> web.Response:
            return web.Response(status=401, text="the key s3cr3t is wrong", headers={"WWW-Authenticate": "Bearer"})

        answers(upstream, redirect)
        assert await failure(tenant.user.client) == (502, "http_307")
        assert other.seen == []
    answers(upstream, refuse)
    answer = await call(tenant.user.client, "weather", "echo")
    assert (answer.status_code, "s3cr3t" in answer.text) == (502, False)
    assert answer.json()["error"]["message"] == "The MCP server failed. It refused the gateway's credential."


async def test_a_tool_of_one_server_does_not_replace_that_of_another(tenant: Tenant, upstream: ScriptedServer) -> None:
    async with scripted_server() as evil:
        registered = await register(tenant, evil.url, name="evil")
        await grant(tenant, registered, tenant.user.id)
        assert (await call(tenant.user.client, "weather", "echo")).status_code == 200
        assert (len(upstream.calls()), len(evil.calls())) == (1, 0)
        assert (await call(tenant.user.client, "evil", "echo")).status_code == 200
        assert (len(upstream.calls()), len(evil.calls())) == (1, 1)


@pytest.mark.parametrize(
    ("changed", "headers", "status", "code"),
    [
        ({}, {"Mcp-Name": "other"}, 400, -32020),
        ({}, {"Mcp-Name": "=?base64?!?="}, 400, -32020),
        ({}, {"Mcp-Method": "tools/list"}, 400, -32020),
        ({}, {"Mcp-Method": None}, 400, -32020),
        ({}, {"Mcp-Name": None}, 400, -32020),
        ({}, {"MCP-Protocol-Version": None}, 400, -32020),
        ({}, {"MCP-Protocol-Version": "2025-11-25"}, 400, -32020),
        ({}, {"MCP-Protocol-Version": "1900-01-01"}, 400, -32022),
        ({"params": {"name": "echo"}}, {}, 400, -32602),
        ({"params": {"name": "echo", "_meta": {**META, CAPABILITIES: None}}}, {}, 400, -32602),
        ({"params": [1]}, {}, 400, -32602),
        ({"params": {"name": "echo", "arguments": [1], "_meta": META}}, {}, 400, -32602),
        ({"params": {"name": "echo", "inputResponses": {}, "_meta": META}}, {}, 400, -32602),
        ({"params": {"name": "echo", "requestState": "x", "_meta": META}}, {}, 400, -32602),
        ({"jsonrpc": "1.0"}, {}, 400, -32600),
        ({"id": None}, {}, 400, -32600),
        ({"id": 1.5}, {}, 400, -32600),
        ({"id": "x" * 300}, {}, 400, -32600),
        ({"method": 1}, {}, 400, -32600),
        ({"method": "resources/list"}, {"Mcp-Method": "resources/list"}, 404, -32601),
        ({"method": "subscriptions/listen"}, {"Mcp-Method": "subscriptions/listen"}, 404, -32601),
        ({"method": "initialize"}, {"Mcp-Method": "initialize"}, 404, -32601),
    ],
)  # fmt: skip
async def test_messages_that_are_not_valid_are_refused(
    tenant: Tenant, upstream: ScriptedServer, changed: dict[str, Any], headers: dict[str, Any], status: int, code: int
) -> None:
    body = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "echo", "_meta": META}, **changed}
    sent = {name: value for name, value in {**MODERN, **headers}.items() if value is not None}
    answer = await tenant.user.client.post("/mcp/weather", json=body, headers=sent)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text
    if code == -32022:
        assert answer.json()["error"]["data"]["supported"] == ["2026-07-28", "2025-11-25"]
    assert upstream.calls() == []


async def test_other_bodies_and_methods_are_refused(
    platform: RunningPlatform, tenant: Tenant, upstream: ScriptedServer
) -> None:
    client = tenant.user.client
    for body, code in (
        (b"{", -32700),
        (b"[]", -32600),
        (b"[" * 500, -32600),
        (b'{"a":' * 200 + b"1" + b"}" * 200, -32600),
    ):
        answer = await client.post("/mcp/weather", content=body, headers=MODERN)
        assert (answer.status_code, answer.json()["error"]["code"], answer.json()["id"]) == (400, code, None)
    notification = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    answer = await client.post("/mcp/weather", json=notification)
    assert (answer.status_code, answer.content) == (202, b"")
    response = {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert (await client.post("/mcp/weather", json=response)).status_code == 400
    async with platform.listening() as url, httpx2.AsyncClient(base_url=url, headers=dict(client.headers)) as http:
        answer = await http.get("/mcp/weather", headers={"Accept": "text/event-stream"})
        assert (answer.status_code, set(answer.headers["Allow"].split(", "))) == (405, {"POST", "DELETE"})
        for path in ("/mcp/Weather", "/mcp/weather/x", "/mcp/..%2fweather", "/mcp/{server}", "/mcp2"):
            assert (await http.post(path, json=response)).status_code in {404, 405}
        # A page in a browser may not call servers, whatever its origin is.
        answer = await call(http, "weather", "echo")
        assert answer.status_code == 200
        for origin in ("https://evil.example", "null", url):
            answer = await send(http, "weather", "tools/list", Origin=origin)
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "origin_refused")
    assert len(upstream.calls()) == 1


@pytest.fixture(scope="module")
def older() -> Iterator[str]:
    """A server of the older revision, with sessions."""
    with sdk_server("sessions") as url:
        yield url


async def note(client: httpx2.AsyncClient, text: str, session_id: str | None = None) -> httpx2.Response:
    headers = {} if session_id is None else {"Mcp-Session-Id": session_id}
    return await send_older(client, "weather", "tools/call", {"name": "note", "arguments": {"text": text}}, **headers)


def noted(answer: httpx2.Response) -> str:
    text: str = answer.json()["result"]["content"][0]["text"]
    return text


async def test_a_session_belongs_to_one_credential(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, older: str
) -> None:
    server = await register(tenant, older, access="open")
    await register(other_tenant, older, access="open")
    await register(tenant, older, name="second", access="open")
    key, second_key = [platform.client(await platform.new_key(tenant.user)) for _ in range(2)]
    session = await begin_session(key, "weather")
    assert noted(await note(key, "one", session)) == "one"
    assert noted(await note(key, "two", session)) == "one, two"
    # Another key of the same user, another user, another organization, and another server.
    for client, name in ((second_key, "weather"), (tenant.user.client, "weather"), (tenant.admin.client, "weather"),
                         (other_tenant.user.client, "weather"), (key, "second")):  # fmt: skip
        params = {"name": "note", "arguments": {"text": "stolen"}}
        answer = await send_older(client, name, "tools/call", params, **{"Mcp-Session-Id": session})
        assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (404, "unknown_mcp_session")
        answer = await client.delete(f"/mcp/{name}", headers={"Mcp-Session-Id": session})
        assert answer.status_code == 404
    assert noted(await note(key, "three", session)) == "one, two, three"
    # An id that the gateway did not issue, also the server's own.
    upstream_id = session.partition(".")[2]
    mac = session.partition(".")[0]
    for made_up in (upstream_id, "", "x", f"{'A' * 22}.{upstream_id}", f"{mac}.x", session + "x", "x" * 5_000):
        assert (await note(key, "fixed", made_up)).status_code == 404
    assert (await key.delete("/mcp/weather", headers={"Mcp-Session-Id": session})).status_code == 200
    assert (await note(key, "four", session)).status_code == 404
    # A changed address ends all sessions: an id is never sent to another server.
    session = await begin_session(key, "weather")
    await tenant.admin.client.patch(f"{BASE}/{server['id']}", json={"url": f"{older}?a=b"})
    answer = await tenant.admin.client.post(f"{BASE}/{server['id']}/refresh")
    for row in (await tenant.admin.client.get(f"{BASE}/{server['id']}/tools")).json()["mcp_tools"]:
        path = f"{BASE}/{server['id']}/tools/{row['id']}/approve"
        await tenant.admin.client.post(path, json={"hash": row["hash"]})
    assert (await note(key, "five", session)).status_code == 404


async def test_agents_without_a_session_do_not_share_one(platform: RunningPlatform, tenant: Tenant, older: str) -> None:
    await register(tenant, older, access="open")
    key, second_key = [platform.client(await platform.new_key(tenant.user)) for _ in range(2)]
    for client in (key, second_key, tenant.admin.client):
        answers = [await call(client, "weather", "note", text=text) for text in ("a", "b")]
        assert [noted(answer) for answer in answers] == ["a", "a, b"]
