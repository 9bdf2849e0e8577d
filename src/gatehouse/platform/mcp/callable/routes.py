"""Endpoints of the tools that a person may call."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from gatehouse.foundation.http.lists import OffsetWindow, offset_window, search_parameter
from gatehouse.platform.mcp.callable import service
from gatehouse.platform.mcp.callable.schemas import CallableTools
from gatehouse.platform.request.callers import RESPONSES, SessionUser
from gatehouse.platform.request.ports import TheHost

router = APIRouter(prefix="/api/v1/mcp/tools", tags=["MCP servers"], responses=RESPONSES)

Window = Annotated[OffsetWindow, Depends(offset_window(default=50, maximum=200))]


@router.get("", response_model=CallableTools)
async def list_callable_mcp_tools(
    caller: SessionUser,
    host: TheHost,
    window: Window,
    server: Annotated[
        str | None, Query(max_length=63, description="Only tools of the server with this name.", examples=["weather"])
    ] = None,
    search: Annotated[str | None, search_parameter("Only tools whose name contains this text.")] = None,
) -> CallableTools:
    """Lists the tools that the signed-in person may call, by the names of server and tool. Agents read them with
    `tools/list` of `/mcp`."""
    return await service.list_page(host, caller, window, server, search)
