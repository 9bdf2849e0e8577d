"""MCP servers at an outpost with a real platform: access, kill switches, credentials, and an unreachable platform."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.mcp_servers import BASE
from tests.support.outpost_mcp import (
    ThreadedServer,
    add_server,
    call,
    code_of,
    listed,
    remove_server,
    send,
    text_of,
    tool_calls,
    wait_for,
)
from tests.support.outpost_server import OutpostServer, Trust, until
from tests.support.server import ADMIN_EMAIL

HEADER = "Bearer of-the-mcp-server-0001"
CLIENT_SECRET = "of-the-oauth-client-0001"


@pytest.fixture(scope="module")
def upstream() -> Iterator[ThreadedServer]:
    with ThreadedServer("add", "echo") as server:
        yield server


@pytest.fixture
def notes(trust: Trust, outpost: OutpostServer, upstream: ThreadedServer) -> Iterator[dict[str, Any]]:
    server = add_server(trust, "notes", url=upstream.url)
    wait_for(outpost, server)
    yield server
    remove_server(trust, server)


def switch(trust: Trust, path: str, *, on: bool) -> None:
    with trust.admin() as admin:
        body = None if on else {"reason": "security_event"}
        answer = admin.post(f"{path}/{'enable' if on else 'disable'}", json=body)
        assert answer.status_code == 200, answer.text


def test_the_kill_switches_of_the_platform_reach_the_outpost(
    trust: Trust, outpost: OutpostServer, notes: dict[str, Any]
) -> None:
    (add, _), server = notes["tools"], f"{BASE}/{notes['id']}"
    tool = f"{server}/tools/{add['id']}"
    switch(trust, tool, on=False)
    until(lambda: listed(outpost) == ["notes__echo"])
    assert code_of(call(outpost, "notes", "add")) == "mcp_switched_off"
    assert text_of(call(outpost, "notes", "echo", a=1)) == '{"a": 1}'
    switch(trust, server, on=False)
    until(lambda: listed(outpost) == [])
    refused = call(outpost, "notes", "echo")
    assert (refused.status_code, code_of(refused)) == (503, "mcp_switched_off")
    switch(trust, server, on=True)
    switch(trust, tool, on=True)
    until(lambda: listed(outpost) == ["notes__add", "notes__echo"])
    assert text_of(call(outpost, "notes", "add")) == "{}"


def test_the_outposts_own_kill_switch_stops_all_calls(outpost: OutpostServer, notes: dict[str, Any]) -> None:
    with outpost.admin() as operator:
        assert operator.post("/admin/api/override/kill-switch", json={"active": True}).status_code == 200
        for method, params in (("tools/call", {"name": "echo", "arguments": {}}), ("tools/list", {})):
            refused = send(outpost, "notes", method, params)
            assert (refused.status_code, code_of(refused)) == (503, "kill_switch_active")
        assert operator.post("/admin/api/override/kill-switch", json={"active": False}).status_code == 200
    assert text_of(call(outpost, "notes", "echo", a=1)) == '{"a": 1}'


def test_access_rules_apply_at_the_outpost(trust: Trust, outpost: OutpostServer, upstream: ThreadedServer) -> None:
    server = add_server(trust, "limited", access="restricted", url=upstream.url)
    with trust.admin() as admin:
        ((user,),) = trust.server.sql("SELECT id::text FROM users WHERE email = %s", [ADMIN_EMAIL])
        assert call(outpost, "limited", "echo").status_code == 404
        rule = {"subject_type": "user", "subject_id": user, "access_type": "ALLOW", "tool": "echo"}
        created = admin.post(f"{BASE}/{server['id']}/access", json=rule)
        assert created.status_code == 201, created.text
        until(lambda: listed(outpost, "limited") == ["echo"])
        assert code_of(call(outpost, "limited", "add")) == "unknown_tool"
        assert text_of(call(outpost, "limited", "echo")) == "{}"
    remove_server(trust, server)
    until(lambda: code_of(call(outpost, "limited", "echo")) == "unknown_mcp_server")


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/mcp", 405), ("GET", "/mcp/notes", 405), ("POST", "/mcp/none", 404)]
)
def test_other_requests_are_refused(outpost: OutpostServer, method: str, path: str, status: int) -> None:
    with outpost.client() as client:
        answer = client.request(method, path, json={} if method == "POST" else None)
    assert answer.status_code == status
    assert answer.headers.get("Allow") == ("POST, DELETE" if status == 405 else None)


def test_an_unknown_key_is_refused_without_metadata_that_the_outpost_does_not_serve(outpost: OutpostServer) -> None:
    answer = send(outpost, "", "tools/list", key="gk_" + "0" * 40)
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, 'Bearer error="invalid_token"')


@pytest.fixture
def sends_credentials(trust: Trust) -> Iterator[None]:
    def put(value: str) -> None:
        with trust.admin() as admin:
            answer = admin.put("/api/admin/config/outpost_provider_credentials", json={"value": value})
            assert answer.status_code == 200, answer.text

    put("sealed")
    yield
    put("off")


@pytest.fixture
def with_credentials(trust: Trust) -> Iterator[ThreadedServer]:
    """A server that is registered twice: `keyed` with a static header, `client` with an OAuth client."""
    with ThreadedServer("echo") as upstream:
        oauth = {"token_url": f"{upstream.base}/token", "client_id": "gatehouse", "client_secret": CLIENT_SECRET}
        servers = [
            add_server(trust, "keyed", url=upstream.url, header={"name": "Authorization", "value": HEADER}),
            add_server(trust, "client", url=upstream.url, oauth=oauth),
        ]
        upstream.clients.clear()
        yield upstream
        for server in servers:
            remove_server(trust, server)


@pytest.mark.usefixtures("sends_credentials")
def test_credentials_that_the_platform_sends_are_used_and_never_shown(
    trust: Trust, with_credentials: ThreadedServer
) -> None:
    with OutpostServer(trust) as outpost:
        until(lambda: listed(outpost) == ["client__echo", "keyed__echo"])
        assert text_of(call(outpost, "keyed", "echo")) == "{}"
        assert text_of(call(outpost, "client", "echo")) == "{}"
        assert with_credentials.authorizations == [HEADER, "Bearer token-1"]
        assert len(with_credentials.clients) == 1
        with outpost.admin() as operator:
            status = operator.get("/admin/api/status").text
        files = b"".join(path.read_bytes() for path in outpost.home.rglob("*") if path.is_file())
        assert json.loads(status)["policy"]["credentials_unopened"] == []
        for secret in (HEADER, CLIENT_SECRET):
            assert secret not in status
            assert secret.encode() not in files


def test_credentials_of_the_environment_are_used(trust: Trust, with_credentials: ThreadedServer) -> None:
    with OutpostServer(trust, MCP_SERVER_KEYED_HEADER="Authorization: Bearer of-the-operator") as outpost:
        until(lambda: listed(outpost) == ["client__echo", "keyed__echo"])
        assert text_of(call(outpost, "keyed", "echo")) == "{}"
        assert with_credentials.authorizations == ["Bearer of-the-operator"]
        refused = call(outpost, "client", "echo")
        assert (refused.status_code, code_of(refused)) == (503, "mcp_credential_missing")
        assert "MCP_SERVER_CLIENT_CLIENT_SECRET" in refused.text
        assert with_credentials.clients == []


def test_calls_continue_while_the_platform_is_unreachable(trust: Trust, upstream: ThreadedServer) -> None:
    server = add_server(trust, "notes", url=upstream.url)
    with OutpostServer(trust) as outpost:
        wait_for(outpost, server)
        outpost.kill()
        outpost.environment["PLATFORM_MANAGEMENT_URL"] = "http://127.0.0.1:9"
        outpost.start()
        outpost.wait()
        assert listed(outpost) == ["notes__add", "notes__echo"]
        assert text_of(call(outpost, "notes", "add", a=1)) == '{"a": 1}'
        assert text_of(call(outpost, "", "notes__echo", a=2)) == '{"a": 2}'
        assert tool_calls(trust, outpost) == []
        # The records arrive when the platform is reachable again.
        outpost.kill()
        del outpost.environment["PLATFORM_MANAGEMENT_URL"]
        outpost.start()
        until(lambda: len(tool_calls(trust, outpost)) == 2)
    assert [event["details"]["tool"] for event in tool_calls(trust, outpost)] == ["add", "echo"]
    remove_server(trust, server)
