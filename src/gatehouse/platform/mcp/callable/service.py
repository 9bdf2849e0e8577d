"""Lists the tools of MCP servers that a person may call."""

import msgspec

from gatehouse.engine.mcp.credentials import refusal_of_host
from gatehouse.engine.mcp.listing import callable_tools
from gatehouse.engine.stages.calls.tool_rules import has_approvals
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
    ports = host.ports
    present = (
        compiled
        for compiled in policy.mcp_servers.values()
        if refusal_of_host(ports, caller.tenant_id, compiled.record) is None
    )
    tools = [
        (compiled.record.name, tool)
        for compiled, tool in callable_tools(present, caller, ports.switches, has_approvals=has_approvals(policy))
    ]
    servers = list(dict.fromkeys(name for name, _ in tools))
    text = (search or "").lower()
    selected = [(name, tool) for name, tool in tools if server in {None, name} and text in tool.name.lower()]
    page = selected[window.offset : window.offset + window.limit]
    return CallableTools(
        tools=[_shown(name, tool) for name, tool in page],
        servers=servers,
        total=len(selected),
        limit=window.limit,
        offset=window.offset,
    )


def _shown(server: str, tool: McpToolRecord) -> CallableTool:
    definition = msgspec.json.decode(tool.definition)
    return CallableTool(
        server=server, name=tool.name, title=definition.get("title"), description=definition.get("description")
    )
