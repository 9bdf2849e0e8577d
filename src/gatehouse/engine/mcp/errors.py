"""Errors of the MCP gateway, and their form in JSON-RPC. `UnknownTool` and `McpSwitchedOff` are in
`engine.stages.calls.tool_access`.

BadRequest
├── InvalidMessage        not a JSON-RPC request
├── InvalidParams         a parameter is missing or wrong; `param` identifies it
├── UnknownTool           the server has no such tool for this caller
├── HeaderMismatch        a header is missing or contradicts the body
├── UnsupportedRevision   the revision is not supported
└── ToolRefusedCall       the MCP server does not accept the parameters
Forbidden
├── McpConnectionRequired the user has not connected an account at the MCP server
└── McpUserRequired       the MCP server needs a user's account, and the caller is no user
NotFound
├── MethodNotFound
├── UnknownServer         the organization has no such server for this caller
└── UnknownSession        the session has ended, or is another caller's
Unavailable
├── McpSwitchedOff        a kill switch is engaged
├── AccountsElsewhere     the server needs accounts of users, and this host has none
└── StdioOff              the server is a process, and this host does not run it
BadGateway
└── McpServerFailed       the MCP server did not answer, or its answer is an error or not valid
"""

from typing import Any, Final

from gatehouse.engine.conversation.errors import MalformedCall, NestedTooDeep
from gatehouse.engine.stages.calls.tool_access import UnknownTool
from gatehouse.foundation.errors import BadGateway, BadRequest, Forbidden, NotFound, Refusal, Unavailable

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_REVISION: Final = -32022
#: revision 2025-11-25 only
URL_ELICITATION_REQUIRED: Final = -32042
#: errors by which a client recognizes a server of the newer revision
MODERN_ERRORS: Final = frozenset({HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_REVISION})


class InvalidMessage(BadRequest):
    code = "invalid_json_rpc"
    message = "The body is not a JSON-RPC request or notification."


class InvalidParams(BadRequest):
    code = "invalid_params"

    def __init__(self, param: str, message: str) -> None:
        super().__init__(f"`{param}` {message}", param=param)


class HeaderMismatch(BadRequest):
    code = "header_mismatch"


class UnsupportedRevision(BadRequest):
    code = "unsupported_protocol_version"
    message = "The protocol version is not supported."


class ToolRefusedCall(BadRequest):
    code = "mcp_invalid_params"
    message = "The MCP server does not accept the parameters of the call."


class MethodNotFound(NotFound):
    code = "method_not_found"
    message = "The gateway does not serve this method."


class McpConnectionRequired(Forbidden):
    """`url` is the page at which the user connects an account."""

    code = "mcp_connection_required"
    message = "Connect your account at the MCP server first."

    def __init__(self, server: str, url: str) -> None:
        super().__init__(f"Connect your account at the MCP server {server} first. Open {url}", server=server, url=url)
        self.url = url


class McpUserRequired(Forbidden):
    code = "mcp_user_required"
    message = (
        "The MCP server needs the account of a user. Call it with a user's API key or session, not as an OAuth client."
    )


class UnknownServer(NotFound):
    code = "unknown_mcp_server"
    message = "There is no MCP server with this name that you may use."


class UnknownSession(NotFound):
    code = "unknown_mcp_session"
    message = "The session has ended. Initialize a new one."


class AccountsElsewhere(Unavailable):
    code = "mcp_accounts_elsewhere"
    message = (
        "The MCP server needs the account of each user, and outposts have no accounts. Call the server at the platform."
    )


class StdioOff(Unavailable):
    code = "mcp_stdio_off"
    message = "This host does not run the stdio MCP server. Its operator permits commands with MCP_STDIO_COMMANDS."


class McpServerFailed(BadGateway):
    """The MCP server failed. `reason` is a code of `upstream.UpstreamFailed`."""

    type = "mcp_server_error"
    code = "mcp_server_failed"
    message = "The MCP server failed."


_CODES: Final[dict[type[Refusal], int]] = {
    MalformedCall: PARSE_ERROR,
    NestedTooDeep: INVALID_REQUEST,
    InvalidMessage: INVALID_REQUEST,
    InvalidParams: INVALID_PARAMS,
    UnknownTool: INVALID_PARAMS,
    ToolRefusedCall: INVALID_PARAMS,
    HeaderMismatch: HEADER_MISMATCH,
    UnsupportedRevision: UNSUPPORTED_REVISION,
    MethodNotFound: METHOD_NOT_FOUND,
}


def rendered(error: Refusal, request_id: str) -> dict[str, Any]:
    """Return the `error` of a JSON-RPC response. Its code is the HTTP status if JSON-RPC has no code for the error."""
    data: dict[str, Any] = {"type": error.type, "code": error.code, "request_id": request_id, **error.extra}
    return {"code": _CODES.get(type(error), error.status), "message": error.text, "data": data}


def elicitation(error: McpConnectionRequired, request_id: str) -> dict[str, Any]:
    """Return the `error` by which a server of the older revision asks the agent to show a URL to its user."""
    request = {"mode": "url", "elicitationId": request_id, "url": error.url, "message": error.text}
    fields = rendered(error, request_id)
    return {**fields, "code": URL_ELICITATION_REQUIRED, "data": {**fields["data"], "elicitations": [request]}}
