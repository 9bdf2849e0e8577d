"""The MCP servers' part of a tenant's policy."""

from collections import defaultdict
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId
from gatehouse.platform.mcp.servers.table import oauth_record, stdio_record, user_oauth_record
from gatehouse.policy.mcp import McpAccessRecord, McpServerRecord, McpToolRecord

_SERVERS = text(
    "SELECT s.id, s.name, s.url, s.revision, s.access, s.timeout_ms, s.sealed_header, s.oauth, s.user_oauth,"
    " s.sealed_client_secret, s.stdio, s.sealed_environment, t.egress_policy"
    " FROM mcp_servers s JOIN tenants t ON t.id = s.tenant_id"
    " WHERE s.tenant_id = :tenant AND s.enabled AND s.revision IS NOT NULL ORDER BY s.name"
)
_TOOLS = text(
    "SELECT server_id, id, name, approved_hash AS hash, approved_definition AS definition, approval_required"
    " FROM mcp_tools"
    " WHERE tenant_id = :tenant AND status = 'approved' AND missing_since IS NULL ORDER BY server_id, name"
)
_RULES = text(
    "SELECT server_id, subject_type, subject_id, access_type, tool FROM mcp_access_rules WHERE tenant_id = :tenant"
    " ORDER BY server_id, id"
)


async def records(session: AsyncSession, tenant_id: TenantId) -> tuple[McpServerRecord, ...]:
    """Return the enabled servers whose tools were read, with their approved tools."""
    servers = (await session.execute(_SERVERS, {"tenant": tenant_id})).mappings().all()
    if not servers:
        return ()
    tools: dict[UUID, list[McpToolRecord]] = defaultdict(list)
    for row in (await session.execute(_TOOLS, {"tenant": tenant_id})).mappings():
        tools[row["server_id"]].append(McpToolRecord(**_without_server(row)))
    rules: dict[UUID, list[McpAccessRecord]] = defaultdict(list)
    for row in (await session.execute(_RULES, {"tenant": tenant_id})).mappings():
        rules[row["server_id"]].append(McpAccessRecord(**_without_server(row)))
    return tuple(_record(row, tuple(tools[row["id"]]), tuple(rules[row["id"]])) for row in servers)


def _record(row: Any, tools: tuple[McpToolRecord, ...], rules: tuple[McpAccessRecord, ...]) -> McpServerRecord:
    values = dict(row)
    sealed_secret = values.pop("sealed_client_secret")
    oauth = oauth_record(values.pop("oauth"), sealed_secret)
    user_oauth = user_oauth_record(values.pop("user_oauth"), sealed_secret)
    values["url"] = values["url"] or ""
    values["stdio"] = stdio_record(values["stdio"], values.pop("sealed_environment"))
    return McpServerRecord(**values, oauth=oauth, user_oauth=user_oauth, tools=tools, rules=rules)


def _without_server(row: Any) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "server_id"}
