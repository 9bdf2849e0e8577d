"""Lists, creates, changes and deletes access rules of MCP servers."""

from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.http.lists import OffsetWindow, count_query
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.conflicts import unique
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.changes.change import Change
from gatehouse.platform.mcp.access import table
from gatehouse.platform.mcp.access.schemas import AccessRuleUpdate, NewAccessRule
from gatehouse.platform.mcp.access.table import AccessRuleRow
from gatehouse.platform.mcp.servers.table import McpServerRow

#: Maximum number of access rules of an organization.
MAX_ACCESS_RULES: Final = 20_000


class AccessRuleNotFound(NotFound):
    message = "Access rule not found"


class AccessRuleExists(Conflict):
    code = "mcp_access_rule_exists"
    message = "The server already has a rule for this subject and tool. Remove that rule first."


class TooManyMcpAccessRules(Conflict):
    code = "too_many_mcp_access_rules"
    message = "The organization has the maximum number of access rules of MCP servers. Remove some first."


class InvalidAccessField(Unprocessable):
    """The subject or tool of a rule does not exist. Without this error, a rule with a misspelled name would have no
    effect."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(faults=[FieldFault(field, message)])


async def list_page(session: AsyncSession, server_id: UUID, window: OffsetWindow) -> dict[str, Any]:
    query = table.oldest_first(server_id)
    total = (await session.execute(count_query(query))).scalar_one()
    rows = (await session.scalars(window.apply(query))).all()
    return window.envelope("access_rules", rows, total)


async def create(change: Change, server: McpServerRow, new: NewAccessRule) -> AccessRuleRow:
    """Create a rule. Raises `InvalidAccessField`, `AccessRuleExists`, `TooManyMcpAccessRules`."""
    session = change.session
    if not await table.subject_exists(session, new.subject_type, new.subject_id):
        raise InvalidAccessField("subject_id", f"is not the id of a subject of the type {new.subject_type}")
    if new.tool is not None and not await table.tool_exists(session, server.id, new.tool):
        raise InvalidAccessField("tool", "is not the name of a tool of the server: refresh the server first")
    await require_room(
        session, ScopedLock.MCP_ACCESS, table.count_access_rules, limit=MAX_ACCESS_RULES, full=TooManyMcpAccessRules
    )
    now = utc_now()
    row = AccessRuleRow(
        id=new_id(), tenant_id=change.tenant_id, server_id=server.id, created_at=now, updated_at=now, **new.model_dump()
    )
    session.add(row)
    with unique(AccessRuleExists):
        await session.flush()
    _record(change, "mcp_access.added", server, row)
    return row


def update(change: Change, server: McpServerRow, row: AccessRuleRow, body: AccessRuleUpdate) -> AccessRuleRow:
    """Change whether the rule allows or denies. Without a difference there is no audit event and no new version."""
    if changes := row.differing(body.model_dump()):
        row.assign(changes)
        _record(change, "mcp_access.updated", server, row)
    return row


async def delete(change: Change, server: McpServerRow, row: AccessRuleRow) -> None:
    await change.session.delete(row)
    _record(change, "mcp_access.removed", server, row)


def _record(change: Change, action: str, server: McpServerRow, row: AccessRuleRow) -> None:
    change.record(
        action, "mcp_server", server.id, name=server.name, subject_type=row.subject_type, subject_id=row.subject_id,
        tool=row.tool, access_type=row.access_type,
    )  # fmt: skip
    # Urgent: the response waits until the change is active on every worker.
    change.touch("policy", change.tenant_id, urgent=True)
