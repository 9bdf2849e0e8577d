"""Endpoints of MCP servers."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends

from gatehouse.foundation.http.lists import OffsetWindow, offset_window, search_parameter
from gatehouse.platform.mcp import switching
from gatehouse.platform.mcp.servers import service
from gatehouse.platform.mcp.servers.schemas import (
    McpServer,
    McpServerList,
    McpServerUpdate,
    NewMcpServer,
    StdioCommand,
    StdioCommandList,
    SwitchedMcpServer,
)
from gatehouse.platform.mcp.servers.service import McpServerNotFound
from gatehouse.platform.mcp.servers.table import McpServerRow
from gatehouse.platform.request.callers import RESPONSES, Admin, AdminReader, AdminStepUp
from gatehouse.platform.request.injected import Changing, Session, loaded
from gatehouse.platform.request.ports import TheHost
from gatehouse.platform.routing.kill_switch.schemas import DisableRequest

router = APIRouter(prefix="/api/v1/admin/mcp/servers", tags=["MCP servers"], responses=RESPONSES)
commands_router = APIRouter(prefix="/api/v1/admin/mcp/stdio-commands", tags=["MCP servers"], responses=RESPONSES)

LoadedMcpServer = Annotated[McpServerRow, Depends(loaded(McpServerRow, "server_id", McpServerNotFound))]
Window = Annotated[OffsetWindow, Depends(offset_window(default=50, maximum=200))]
_CONFLICT: Final[dict[int | str, dict[str, Any]]] = {409: {"description": "The name is in use, or there are too many."}}


@router.get("", response_model=McpServerList)
async def list_mcp_servers(
    caller: AdminReader,
    session: Session,
    window: Window,
    search: Annotated[str | None, search_parameter("Part of the name or the description.")] = None,
) -> object:
    """Lists the organization's MCP servers by name."""
    return await service.list_page(session, window, search)


@router.post("", status_code=201, response_model=McpServer, responses=_CONFLICT)
async def create_mcp_server(caller: AdminStepUp, body: NewMcpServer, change: Changing, host: TheHost) -> object:
    """Registers an MCP server. It can be called after its tools have been read and approved and access has been
    granted."""
    return await service.create(change, host, body)


@router.get("/{server_id}", response_model=McpServer)
async def read_mcp_server(caller: AdminReader, server: LoadedMcpServer) -> object:
    """Returns one MCP server, without the value of its header."""
    return server


@router.patch("/{server_id}", response_model=McpServer, responses={409: {"description": "The name is in use."}})
async def update_mcp_server(
    caller: AdminStepUp, server: LoadedMcpServer, body: McpServerUpdate, change: Changing, host: TheHost
) -> object:
    """Changes the fields in the body. A new `url` or command puts all tools into quarantine, and the server must be
    refreshed before it can be called again. `stdio` replaces all variables."""
    return await service.update(change, host, server, body)


@router.delete("/{server_id}", status_code=204)
async def delete_mcp_server(caller: AdminStepUp, server: LoadedMcpServer, change: Changing) -> None:
    """Removes an MCP server with its tools and access rules. Calls that wait for an approval are refused."""
    await service.delete(change, server)


@router.post("/{server_id}/disable", response_model=SwitchedMcpServer)
async def switch_mcp_server_off(
    caller: Admin, server: LoadedMcpServer, body: DisableRequest, change: Changing, host: TheHost
) -> object:
    """Engages the kill switch of a server. After the response, only the workers under `pending` may still send calls to
    it. Calls in flight finish. The processes of a server over stdio end at once, and their calls fail."""
    propagation = await switching.switch(change, host, server, "mcp_server", body.reason)
    return switching.with_propagation(McpServer.model_validate(server), propagation)


@router.post("/{server_id}/enable", response_model=SwitchedMcpServer)
async def switch_mcp_server_on(caller: AdminStepUp, server: LoadedMcpServer, change: Changing, host: TheHost) -> object:
    """Releases the kill switch of a server."""
    propagation = await switching.switch(change, host, server, "mcp_server", None)
    return switching.with_propagation(McpServer.model_validate(server), propagation)


@commands_router.get("", response_model=StdioCommandList)
async def list_stdio_commands(caller: AdminReader, host: TheHost) -> StdioCommandList:
    """Lists the commands that the operator offers to the organization as MCP servers (`MCP_STDIO_COMMANDS`), by name.
    The list is empty while the setting is not set. Programs, arguments and values are never returned."""
    assert caller.tenant_id is not None
    offered = {} if host.stdio is None else host.stdio.commands.offered_to(str(caller.tenant_id))
    return StdioCommandList(
        stdio_commands=[
            StdioCommand(name=name, environment=sorted(command.environment))
            for name, command in sorted(offered.items())
        ]
    )
