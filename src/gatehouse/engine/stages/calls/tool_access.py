"""Checks whether the caller may call a tool, and whether a kill switch stops it (docs/mcp.md)."""

from gatehouse.engine.exchange import CallRequest
from gatehouse.engine.ports import Ports
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.foundation.errors import BadRequest, Unavailable


class UnknownTool(BadRequest):
    code = "unknown_tool"
    message = "The server has no tool with this name that you may call."


class McpSwitchedOff(Unavailable):
    code = "mcp_switched_off"
    message = "The MCP server or the tool is switched off."


def check(x: CallRequest, ports: Ports) -> Verdict:
    called = x.called_tool
    assert called is not None
    server = x.identified.policy.mcp_servers.get(called.server.name)
    if server is None or not server.permits(x.identified.caller, called.tool.name):
        return Refuse(UnknownTool())
    if ports.switches.mcp_stopped(called.server.id, called.tool.id):
        return Refuse(McpSwitchedOff())
    return ALLOW
