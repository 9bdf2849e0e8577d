"""Lists the tools of MCP servers that a person may call."""

import msgspec

from gatehouse.foundation.http.lists import OffsetWindow
from gatehouse.foundation.identity import Caller
from gatehouse.platform.mcp.callable.schemas import CallableTool, CallableTools
from gatehouse.platform.request.ports import Host
from gatehouse.policy.mcp import McpToolRecord


async def list_page(
    host: Host, caller: Caller, window: OffsetWindow, server: str | None, search: str | None
) -> CallableTools:
    """Return a page of the tools that `tools/list` contains for the caller now, by server and name. `search` is a part
    of the tool's name."""
    assert caller.tenant_id is not None
    policy = await host.ports.policies.current(caller.tenant_id)
    servers: list[str] = []
    callable_tools: list[tuple[str, McpToolRecord]] = []
    for name, compiled in policy.mcp_servers.items():
        if host.ports.switches.mcp_stopped(compiled.record.id):
            continue
        tools = [tool for tool in compiled.permitted(caller) if not host.ports.switches.mcp_stopped(tool.id)]
        if tools:
            servers.append(name)
        if server in {None, name}:
            callable_tools += [(name, tool) for tool in tools if (search or "").lower() in tool.name.lower()]
    page = callable_tools[window.offset : window.offset + window.limit]
    return CallableTools(
        tools=[_shown(name, tool) for name, tool in page],
        servers=servers,
        total=len(callable_tools),
        limit=window.limit,
        offset=window.offset,
    )


def _shown(server: str, tool: McpToolRecord) -> CallableTool:
    definition = msgspec.json.decode(tool.definition)
    return CallableTool(
        server=server, name=tool.name, title=definition.get("title"), description=definition.get("description")
    )
