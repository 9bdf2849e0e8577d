"""Lists tools, and approves or rejects their definitions."""

from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.mcp.definitions import differences
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, NotFound
from gatehouse.foundation.http.lists import OffsetWindow, count_query
from gatehouse.platform.changes.change import Change
from gatehouse.platform.mcp.servers.table import McpServerRow
from gatehouse.platform.mcp.tools.schemas import Decision, Difference, McpTool, McpToolSummary, McpToolUpdate
from gatehouse.platform.mcp.tools.table import McpToolRow, by_name, by_server, server_names
from gatehouse.policy.mcp import ToolStatus


class McpToolNotFound(NotFound):
    message = "Tool not found"


class DefinitionChanged(Conflict):
    code = "definition_changed"
    message = "The definition of the tool has changed. Read it again, then decide."


async def list_page(
    session: AsyncSession, server_id: UUID, window: OffsetWindow, status: ToolStatus | None
) -> dict[str, Any]:
    query = by_name(server_id, status)
    total = (await session.execute(count_query(query))).scalar_one()
    rows = (await session.scalars(window.apply(query))).all()
    return window.envelope("mcp_tools", rows, total)


async def list_page_of_all(
    session: AsyncSession, window: OffsetWindow, server_id: UUID | None, status: ToolStatus | None, search: str | None
) -> dict[str, Any]:
    query = by_server(server_id, status, search)
    total = (await session.execute(count_query(query))).scalar_one()
    rows = (await session.scalars(window.apply(query))).all()
    names = await server_names(session)
    tools = [{**dict(McpToolSummary.model_validate(row)), "server_name": names[row.server_id]} for row in rows]
    return window.envelope("mcp_tools", tools, total)


def shown(row: McpToolRow) -> McpTool:
    approved = row.approved_definition
    return McpTool(
        **dict(McpToolSummary.model_validate(row)),
        definition=msgspec.json.decode(row.definition),
        approved_definition=None if approved is None else msgspec.json.decode(approved),
        difference=[]
        if approved is None
        else [Difference.model_validate(field) for field in differences(approved, row.definition)],
    )


def approve(change: Change, server: McpServerRow, row: McpToolRow, decision: Decision) -> McpTool:
    """Approve the definition with this hash. Raises `DefinitionChanged`."""
    _require(row, decision)
    if row.status != "approved" or row.approved_hash != row.hash:
        row.assign(
            {
                "status": "approved", "approved_definition": row.definition, "approved_hash": row.hash,
                "approved_at": utc_now(),
            }
        )  # fmt: skip
        _record(change, "mcp_tool.approved", server, row)
    return shown(row)


def reject(change: Change, server: McpServerRow, row: McpToolRow, decision: Decision) -> McpTool:
    """Reject the definition with this hash. Raises `DefinitionChanged`."""
    _require(row, decision)
    if row.status != "rejected":
        row.assign({"status": "rejected"})
        _record(change, "mcp_tool.rejected", server, row)
    return shown(row)


def update(change: Change, server: McpServerRow, row: McpToolRow, body: McpToolUpdate) -> McpTool:
    """Change the fields that differ. Without a difference there is no audit event."""
    if changes := row.differing(body.sent()):
        row.assign(changes)
        _record(change, "mcp_tool.updated", server, row, **changes)
    return shown(row)


def _require(row: McpToolRow, decision: Decision) -> None:
    if row.hash != decision.hash:
        raise DefinitionChanged


def _record(change: Change, action: str, server: McpServerRow, row: McpToolRow, **details: Any) -> None:
    change.record(action, "mcp_tool", row.id, server=server.name, name=row.name, hash=row.hash, **details)
    change.touch("mcp_switch", row.id)
    change.touch("policy", change.tenant_id, urgent=True)
