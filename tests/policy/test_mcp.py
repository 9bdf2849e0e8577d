"""Access to tools of MCP servers (docs/mcp.md)."""

from typing import Any
from uuid import uuid4

import pytest

from gatehouse.foundation.identity import Caller, CallerKind, TenantId
from gatehouse.policy.mcp import McpAccessRecord, McpServerRecord, McpToolRecord, compile_mcp_servers

GROUP, OTHER_GROUP, USER, KEY, CLIENT = (uuid4() for _ in range(5))


def permits(*rules: tuple[Any, ...], access: Any = "restricted", **caller: Any) -> list[str]:
    """Return the tools `a` and `b` that the caller may call."""
    tools = tuple(McpToolRecord(id=uuid4(), name=name, hash="", definition="{}") for name in "ab")
    records = tuple(
        McpAccessRecord(subject_type=kind, subject_id=subject, access_type=access_type, tool=tool)
        for kind, subject, access_type, tool in rules
    )
    record = McpServerRecord(id=uuid4(), name="x", url="", revision="", access=access, tools=tools, rules=records)
    server = compile_mcp_servers([record])["x"]
    who = Caller(kind=CallerKind.API_KEY, tenant_id=TenantId(uuid4()), **caller)
    return [name for name in server.tools if server.permits(who, name)]


@pytest.mark.parametrize(
    ("rules", "tools"),
    [
        ([], []),
        ([("group", GROUP, "ALLOW", None)], ["a", "b"]),
        ([("group", OTHER_GROUP, "ALLOW", None)], []),
        ([("user", GROUP, "ALLOW", None)], []),
        ([("user", USER, "ALLOW", "a")], ["a"]),
        ([("api_key", KEY, "ALLOW", "b")], ["b"]),
        ([("oauth_client", CLIENT, "ALLOW", None)], []),
        ([("user", USER, "ALLOW", None), ("group", GROUP, "DENY", "a")], ["b"]),
        ([("user", USER, "ALLOW", "a"), ("api_key", KEY, "DENY", None)], []),
    ],
)
def test_a_deny_wins_and_a_restricted_server_needs_an_allow(rules: list[Any], tools: list[str]) -> None:
    assert permits(*rules, groups=(GROUP,), user_id=USER, api_key_id=KEY) == tools


def test_an_open_server_permits_everybody_without_a_deny() -> None:
    assert permits(access="open", client_id=CLIENT) == ["a", "b"]
    assert permits(("oauth_client", CLIENT, "DENY", "a"), access="open", client_id=CLIENT) == ["b"]
    assert permits(("oauth_client", CLIENT, "DENY", None), access="open", client_id=CLIENT) == []
