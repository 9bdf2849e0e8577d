"""Endpoints of connections."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from gatehouse.foundation.http.bodies import PathId
from gatehouse.foundation.http.lists import OffsetWindow, offset_window
from gatehouse.platform.mcp.connections import service
from gatehouse.platform.mcp.connections.schemas import McpConnectionList, OwnMcpConnectionList
from gatehouse.platform.mcp.servers.routes import LoadedMcpServer
from gatehouse.platform.request.callers import RESPONSES, AdminReader, AdminStepUp, PersonReader, PersonWriter
from gatehouse.platform.request.injected import Changing, Session
from gatehouse.platform.request.ports import TheHost

router = APIRouter(tags=["MCP servers"], responses=RESPONSES)

_OWN = "/api/v1/mcp/connections"
_ALL = "/api/v1/admin/mcp/servers/{server_id}/connections"
Window = Annotated[OffsetWindow, Depends(offset_window(default=50, maximum=200))]


@router.get(_OWN, response_model=OwnMcpConnectionList)
async def list_own_mcp_connections(caller: PersonReader, session: Session, host: TheHost) -> OwnMcpConnectionList:
    """Lists the MCP servers that you may use and that need your account, by name, with the state of your connection.
    Servers that you cannot use are listed while you have a connection, so that you can remove it."""
    assert caller.tenant_id is not None
    return OwnMcpConnectionList(mcp_connections=await service.own(session, host, caller, caller.tenant_id))


@router.delete(_OWN + "/{server_id}", status_code=204)
async def delete_own_mcp_connection(
    caller: PersonWriter, server_id: Annotated[PathId, Path()], change: Changing
) -> None:
    """Removes your tokens for an MCP server. After the response no worker sends them. Soon afterwards they are revoked
    if the authorization server supports it."""
    assert caller.user_id is not None
    await service.remove_own(change, server_id, caller.user_id)


@router.get(_ALL, response_model=McpConnectionList)
async def list_mcp_connections(
    caller: AdminReader, server: LoadedMcpServer, session: Session, window: Window
) -> object:
    """Lists the users who have connected an account at an MCP server, oldest first. Tokens are never returned."""
    return await service.list_page(session, server.id, window)


@router.delete(_ALL + "/{connection_id}", status_code=204)
async def delete_mcp_connection(
    caller: AdminStepUp,
    server_id: Annotated[PathId, Path()],
    connection_id: Annotated[PathId, Path()],
    change: Changing,
) -> None:
    """Removes a user's tokens for an MCP server. After the response no worker sends them. Soon afterwards they are
    revoked if the authorization server supports it."""
    await service.remove(change, server_id, connection_id)
