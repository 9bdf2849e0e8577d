"""Bodies of the endpoints of connections. No body contains a token."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import ResponseBody

ConnectionStatus = Literal["connected", "ended", "not_connected"]


class OwnMcpConnection(ResponseBody):
    server_id: UUID
    server: Annotated[str, Field(description="The name of the MCP server.", examples=["weather"])]
    available: Annotated[
        bool,
        Field(
            description="Whether you can use the server at present. If it is disabled, if its tools were not read yet"
            " or if you may not call any of them, it is listed only while you have a connection."
        ),
    ]
    status: Annotated[
        ConnectionStatus,
        Field(description="`ended`: the authorization server refuses to renew the tokens, so connect again."),
    ]
    scope: Annotated[str | None, Field(description="The granted scopes, if the authorization server has named them.")]
    connected_at: datetime | None
    connect_url: Annotated[
        str,
        Field(
            description="The page on which you connect your account, in a browser in which you are signed in.",
            examples=["https://gateway.example.com/connect/weather"],
        ),
    ]


class OwnMcpConnectionList(ResponseBody):
    mcp_connections: list[OwnMcpConnection]


class McpConnection(ResponseBody):
    id: UUID
    server_id: UUID
    user_id: UUID
    email: str
    status: ConnectionStatus
    scope: str | None
    connected_at: datetime
    expires_at: Annotated[
        datetime | None, Field(description="When the access token expires; null if this is not known.")
    ]


class McpConnectionList(ResponseBody):
    mcp_connections: list[McpConnection]
    total: int
    limit: int
    offset: int
