"""Endpoints of access rules of MCP servers."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path
from sqlalchemy import select

from gatehouse.foundation.http.bodies import PathId
from gatehouse.foundation.http.lists import OffsetWindow, offset_window
from gatehouse.platform.mcp.access import service
from gatehouse.platform.mcp.access.errors import AccessRuleNotFound
from gatehouse.platform.mcp.access.schemas import AccessRule, AccessRuleList, NewAccessRule
from gatehouse.platform.mcp.access.table import AccessRuleRow
from gatehouse.platform.mcp.servers.routes import LoadedMcpServer
from gatehouse.platform.request.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.request.injected import Changing, Session

router = APIRouter(prefix="/api/v1/admin/mcp/servers/{server_id}/access", tags=["MCP servers"], responses=RESPONSES)

Window = Annotated[OffsetWindow, Depends(offset_window(default=50, maximum=200))]
_CONFLICT: Final[dict[int | str, dict[str, Any]]] = {
    409: {"description": "The server has a rule for this subject and tool, or there are too many rules."}
}


async def _loaded(
    server: LoadedMcpServer, session: Session, access_rule_id: Annotated[PathId, Path()]
) -> AccessRuleRow:
    if access_rule_id is None:
        raise AccessRuleNotFound
    query = select(AccessRuleRow).where(AccessRuleRow.id == access_rule_id, AccessRuleRow.server_id == server.id)
    row = (await session.scalars(query.with_for_update())).one_or_none()
    if row is None:
        raise AccessRuleNotFound
    return row


LoadedAccessRule = Annotated[AccessRuleRow, Depends(_loaded)]


@router.get("", response_model=AccessRuleList)
async def list_mcp_access(caller: AdminReader, server: LoadedMcpServer, session: Session, window: Window) -> object:
    """Lists the access rules of a server, oldest first."""
    return await service.list_page(session, server.id, window)


@router.post("", status_code=201, response_model=AccessRule, responses=_CONFLICT)
async def create_mcp_access(
    caller: AdminStepUp, server: LoadedMcpServer, body: NewAccessRule, change: Changing
) -> object:
    """Allows or denies a subject to call one tool or all tools of a server. The rule is active when the response is
    sent."""
    return await service.create(change, server, body)


@router.delete("/{access_rule_id}", status_code=204)
async def delete_mcp_access(
    caller: AdminStepUp, server: LoadedMcpServer, rule: LoadedAccessRule, change: Changing
) -> None:
    """Deletes an access rule. The change is active when the response is sent."""
    await service.delete(change, server, rule)
