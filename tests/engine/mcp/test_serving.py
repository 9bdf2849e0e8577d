"""The tools of all servers at `/mcp`, with ports that the test controls (docs/mcp.md)."""

import json
from uuid import uuid4

import msgspec
import pytest
from tests.support.engine import EngineHarness
from tests.support.mcp_engine import ask, call, received, returns, server_record

from gatehouse.engine.mcp.listing import full_name
from gatehouse.policy.mcp import McpAccessRecord


def harness_with(*servers: object) -> EngineHarness:
    harness = EngineHarness()
    harness.mcp_servers = servers  # type: ignore[assignment]
    return harness


async def test_a_call_is_sent_to_the_server_in_the_name_under_the_name_of_its_tool() -> None:
    evil = ("echo", "weather__echo", "_weather__echo", "__echo")
    harness = harness_with(server_record("weather", "echo"), server_record("evil", *evil))
    _, listed = await ask(harness, "tools/list")
    names = [tool["name"] for tool in listed["result"]["tools"]]
    assert names == [*sorted(full_name("evil", tool) for tool in evil), "weather__echo"]
    for name in names:
        returns(harness)
        answer, _ = await call(harness, name)
        assert answer.status == 200
        server, tool = ("weather", "echo") if name == "weather__echo" else ("evil", name.removeprefix("evil__"))
        sent = harness.outbound.sent[-1]
        assert (sent.url, sent.headers["Mcp-Name"]) == (f"https://{server}.test/mcp", tool)
        assert json.loads(sent.body)["params"]["name"] == tool
        assert (harness.tool_calls[-1].server, harness.tool_calls[-1].tool) == (server, tool)


@pytest.mark.parametrize("name", ["echo", "__echo", "weather__", "weather___echo", "Weather__echo", "x__echo", ""])
async def test_other_names_are_unknown_tools(name: str) -> None:
    harness = harness_with(server_record("weather", "echo"))
    answer, body = await call(harness, name)
    assert (answer.status, body["error"]["code"], body["error"]["data"]["code"]) == (400, -32602, "unknown_tool")
    assert harness.outbound.sent == []


async def test_a_tool_of_a_server_without_access_is_unknown() -> None:
    harness = harness_with(server_record("weather", "echo", "other", access="restricted"))
    answer, _ = await call(harness, "weather__echo")
    assert (answer.status, harness.tool_calls) == (400, [])
    assert harness.caller is not None
    assert harness.caller.user_id is not None
    rule = McpAccessRecord(subject_type="user", subject_id=harness.caller.user_id, access_type="ALLOW", tool="other")
    harness.mcp_servers = (server_record("weather", "echo", "other", access="restricted", rules=(rule,)),)
    _, listed = await ask(harness, "tools/list")
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["weather__other"]
    answer, _ = await call(harness, "weather__echo")
    assert (answer.status, harness.tool_calls[0].outcome) == (400, "refused")


async def test_a_tool_that_is_not_listed_because_of_its_length_is_not_callable() -> None:
    harness = harness_with(server_record("a" * 60, "x" * 70))
    assert (await call(harness, f"{'a' * 60}__{'x' * 70}"))[0].status == 400
    returns(harness)
    assert (await call(harness, "x" * 70, path=f"/mcp/{'a' * 60}"))[0].status == 200


async def test_switched_off_tools_are_neither_listed_nor_callable() -> None:
    record = server_record("weather", "a", "b")
    harness = harness_with(record, server_record("mail", "c"))
    harness.mcp_off = {record.tools[0].id}
    _, listed = await ask(harness, "tools/list")
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["mail__c", "weather__b"]
    answer, body = await call(harness, "weather__a")
    assert (answer.status, body["error"]["data"]["code"]) == (503, "mcp_switched_off")


async def test_pages_end_with_a_cursor_that_is_checked() -> None:
    harness = harness_with(*(server_record(f"s{number}", *(f"t{tool:03}" for tool in range(900))) for number in (1, 2)))
    _, first = await ask(harness, "tools/list")
    assert len(first["result"]["tools"]) == 1_000
    _, second = await ask(harness, "tools/list", {"cursor": first["result"]["nextCursor"]})
    assert (len(second["result"]["tools"]), "nextCursor" in second["result"]) == (800, False)
    answer, body = await ask(harness, "tools/list", {"cursor": "x"})
    assert (answer.status, body["error"]["code"]) == (400, -32602)


async def test_a_session_id_is_not_accepted_at_the_path_of_all_servers() -> None:
    harness = harness_with(server_record("weather", "echo", revision="2025-11-25"))
    params = {"name": "weather__echo", "arguments": {}}
    raw = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).encode()

    async def read() -> bytes:
        return raw

    for method in ("POST", "DELETE"):
        x = received(harness, raw, method=method, mcp_session_id=str(uuid4()), mcp_protocol_version="2025-11-25")
        answer = await harness.engine.tools.answer(x, read, lambda: None)
        assert (answer.status, json.loads(answer.body)["error"]["data"]["code"]) == (404, "unknown_mcp_session")
    assert harness.outbound.sent == []


@pytest.mark.parametrize("public_url", [None, "https://gateway.test"])
async def test_a_refusal_says_which_credential_is_missing(public_url: str | None) -> None:
    harness = harness_with(server_record("weather", "echo"))
    harness.ports.public_url = public_url
    place = 'resource_metadata="https://gateway.test/.well-known/oauth-protected-resource/mcp/weather"'

    async def challenge(**headers: str) -> tuple[int, str | None]:
        x = received(harness, b"{}", "/mcp/weather", **headers)

        async def read() -> bytes:
            return b"{}"

        answer = await harness.engine.tools.answer(x, read, lambda: None)
        return answer.status, answer.headers.get("WWW-Authenticate")

    def expected(*parameters: str) -> str:
        return ("Bearer " + ", ".join((*parameters, *([place] if public_url else [])))).rstrip()

    known = harness.caller
    assert known is not None
    harness.caller = None
    assert await challenge() == (401, expected())
    assert await challenge(authorization="Bearer gk_wrong") == (401, expected('error="invalid_token"'))
    harness.caller = msgspec.structs.replace(known, scopes=frozenset({"api:read"}))
    assert await challenge() == (403, expected('error="insufficient_scope"', 'scope="mcp:call"'))
    for scope in ("mcp:call", "chat:write"):
        harness.caller = msgspec.structs.replace(known, scopes=frozenset({scope}))
        assert (await challenge())[0] == 400


@pytest.mark.parametrize("name", [None, 1, ["echo"]])
@pytest.mark.parametrize(("path", "records"), [("/mcp", 0), ("/mcp/weather", 1)])
async def test_a_name_that_is_no_text_is_refused(name: object, path: str, records: int) -> None:
    harness = harness_with(server_record("weather", "echo"))
    raw = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": name}}).encode()

    async def read() -> bytes:
        return raw

    x = received(harness, raw, path, mcp_protocol_version="2025-11-25")
    answer = await harness.engine.tools.answer(x, read, lambda: None)
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (400, -32602)
    assert len(harness.tool_calls) == records
