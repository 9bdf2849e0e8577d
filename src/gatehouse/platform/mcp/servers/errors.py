"""Errors of MCP servers."""

from gatehouse.foundation.errors import BadGateway, Conflict, FieldFault, NotFound, Unprocessable


class McpServerNotFound(NotFound):
    message = "MCP server not found"


class McpServerExists(Conflict):
    code = "mcp_server_exists"
    message = "Another MCP server has this name. Choose another name."


class TooManyMcpServers(Conflict):
    code = "too_many_mcp_servers"
    message = "The organization has the maximum number of MCP servers. Remove one first."


class McpServerChanged(Conflict):
    code = "mcp_server_changed"
    message = "The server was changed while its tools were read. Refresh it again."


class McpRefreshFailed(BadGateway):
    code = "mcp_refresh_failed"
    message = "The tools of the server could not be read."


class InvalidServerField(Unprocessable):
    def __init__(self, field: str, message: str) -> None:
        super().__init__(faults=[FieldFault(field, message)])
