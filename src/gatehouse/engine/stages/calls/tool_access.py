"""Checks whether the caller may call a tool, and whether a kill switch stops it (docs/mcp.md)."""

from uuid import UUID

from gatehouse.engine.exchange import CallRequest, Identified
from gatehouse.engine.ports import Ports
from gatehouse.engine.stages.candidates.sending import CredentialRevoked, OutOfTouch
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


def check_sending(x: Identified, ids: tuple[UUID, ...], ports: Ports) -> Verdict:
    """Check right before the first byte that the permission was not revoked while the request waited. `ids` are those
    of the server and, for a call of a tool, of the tool."""
    if not ports.switches.up_to_date():
        return Refuse(OutOfTouch())
    if ports.switches.mcp_stopped(*ids):
        return Refuse(McpSwitchedOff())
    if not ports.credentials.still_good(x.caller):
        return Refuse(CredentialRevoked())
    return ALLOW
