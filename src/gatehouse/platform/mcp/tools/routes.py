"""Endpoints of tools of MCP servers."""

from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request
from sqlalchemy import select

from gatehouse.administration.etags import READ_METHODS, TheVersions
from gatehouse.foundation.http.bodies import PathId
from gatehouse.foundation.http.lists import OffsetWindow, offset_window, search_parameter
from gatehouse.platform.mcp import switching
from gatehouse.platform.mcp.servers.routes import LoadedMcpServer
from gatehouse.platform.mcp.tools import refreshing, service
from gatehouse.platform.mcp.tools.schemas import (
    Decision,
    McpTool,
    McpToolList,
    McpToolOfServerList,
    McpToolUpdate,
    Refreshed,
    SwitchedMcpTool,
)
from gatehouse.platform.mcp.tools.service import McpToolNotFound
from gatehouse.platform.mcp.tools.table import McpToolRow
from gatehouse.platform.request.callers import RESPONSES, Admin, AdminReader, AdminStepUp
from gatehouse.platform.request.injected import Changing, InSplitTransactions, Session
from gatehouse.platform.request.ports import TheHost
from gatehouse.platform.routing.kill_switch.schemas import DisableRequest
from gatehouse.policy.mcp import ToolStatus

router = APIRouter(prefix="/api/v1/admin/mcp/servers/{server_id}", tags=["MCP servers"], responses=RESPONSES)

all_tools_router = APIRouter(prefix="/api/v1/admin/mcp/tools", tags=["MCP servers"], responses=RESPONSES)

Window = Annotated[OffsetWindow, Depends(offset_window(default=50, maximum=200))]
_CHANGED: Final[dict[int | str, dict[str, Any]]] = {409: {"description": "The tool has another definition now."}}
_REFRESH: Final[dict[int | str, dict[str, Any]]] = {
    409: {"description": "The server was changed in the meantime."},
    502: {"description": "The server did not answer, or its answer is not valid."},
}


async def _loaded(
    server: LoadedMcpServer,
    session: Session,
    request: Request,
    versions: TheVersions,
    tool_id: Annotated[PathId, Path()],
) -> McpToolRow:
    if tool_id is None:
        raise McpToolNotFound
    query = select(McpToolRow).where(McpToolRow.id == tool_id, McpToolRow.server_id == server.id)
    if request.method not in READ_METHODS:
        query = query.with_for_update()
    row = (await session.scalars(query)).one_or_none()
    if row is None:
        raise McpToolNotFound
    versions.about(row, "tool_id")
    return row


LoadedMcpTool = Annotated[McpToolRow, Depends(_loaded)]


@router.post("/refresh", response_model=Refreshed, responses=_REFRESH)
async def refresh_mcp_server(
    caller: AdminStepUp, server_id: Annotated[PathId, Path()], transactions: InSplitTransactions, host: TheHost
) -> Refreshed:
    """Reads the server's protocol revision and tools. New and changed tools enter quarantine."""
    return await refreshing.refresh(transactions, host, server_id)


@router.get("/tools", response_model=McpToolList)
async def list_mcp_tools(
    caller: AdminReader,
    server: LoadedMcpServer,
    session: Session,
    window: Window,
    status: Annotated[ToolStatus | None, Query(description="Only tools with this status.")] = None,
) -> object:
    """Lists the tools of a server by name."""
    return await service.list_page(session, server.id, window, status)


@router.get("/tools/{tool_id}", response_model=McpTool)
async def read_mcp_tool(caller: AdminReader, tool: LoadedMcpTool) -> McpTool:
    """Returns one tool with its present definition, the approved one, and their difference."""
    return service.shown(tool)


@router.patch("/tools/{tool_id}", response_model=McpTool)
async def update_mcp_tool(
    caller: AdminStepUp, server: LoadedMcpServer, tool: LoadedMcpTool, body: McpToolUpdate, change: Changing
) -> McpTool:
    """Changes the fields in the body. The change is active when the response is sent."""
    return service.update(change, server, tool, body)


@router.post("/tools/{tool_id}/approve", response_model=McpTool, responses=_CHANGED)
async def approve_mcp_tool(
    caller: AdminStepUp, server: LoadedMcpServer, tool: LoadedMcpTool, body: Decision, change: Changing
) -> McpTool:
    """Approves the present definition of a tool. 409 if its hash differs from the one in the body."""
    return service.approve(change, server, tool, body)


@router.post("/tools/{tool_id}/reject", response_model=McpTool, responses=_CHANGED)
async def reject_mcp_tool(
    caller: AdminStepUp, server: LoadedMcpServer, tool: LoadedMcpTool, body: Decision, change: Changing
) -> McpTool:
    """Rejects the present definition of a tool, so that the tool cannot be called. 409 if its hash differs from the one
    in the body."""
    return service.reject(change, server, tool, body)


@router.post("/tools/{tool_id}/disable", response_model=SwitchedMcpTool)
async def switch_mcp_tool_off(
    caller: Admin, tool: LoadedMcpTool, body: DisableRequest, change: Changing, host: TheHost
) -> object:
    """Engages the kill switch of a tool. After the response, only the workers under `pending` may still call it. Calls
    in flight finish."""
    propagation = await switching.switch(change, host, tool, "mcp_tool", body.reason)
    return switching.with_propagation(service.shown(tool), propagation)


@router.post("/tools/{tool_id}/enable", response_model=SwitchedMcpTool)
async def switch_mcp_tool_on(caller: AdminStepUp, tool: LoadedMcpTool, change: Changing, host: TheHost) -> object:
    """Releases the kill switch of a tool."""
    propagation = await switching.switch(change, host, tool, "mcp_tool", None)
    return switching.with_propagation(service.shown(tool), propagation)


@all_tools_router.get("", response_model=McpToolOfServerList)
async def list_all_mcp_tools(
    caller: AdminReader,
    session: Session,
    window: Window,
    *,
    server_id: Annotated[UUID | None, Query(description="Only tools of this server.")] = None,
    status: Annotated[
        ToolStatus | None, Query(description="Only tools with this status. `quarantined`: those that need a decision.")
    ] = None,
    search: Annotated[str | None, search_parameter("Only tools whose name contains this text.")] = None,
) -> object:
    """Lists the tools of all servers by the names of server and tool."""
    return await service.list_page_of_all(session, window, server_id, status, search)
