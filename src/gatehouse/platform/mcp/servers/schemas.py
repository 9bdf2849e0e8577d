"""Bodies of the endpoints of MCP servers."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody, partial
from gatehouse.platform.routing.kill_switch.schemas import PropagationStatus, Reason
from gatehouse.policy.mcp import ClientAuthentication, ServerAccess

Name = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9][a-z0-9-]{0,62}$",
        description="The name in the path `/mcp/{name}`: lower-case letters, digits and dashes.",
        examples=["weather"],
    ),
]
Description = Annotated[str, Field(max_length=2_000)]
Url = Annotated[str, Field(min_length=1, max_length=2_000, examples=["https://weather.example.com/mcp"])]
Access = Annotated[
    ServerAccess,
    Field(
        description="`restricted`: only callers with an ALLOW may use the server. `open`: all callers except those with"
        " a DENY.",
        examples=["restricted"],
    ),
]


class Header(Body):
    """The header that authenticates the gateway. The value is sealed and never returned."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$", examples=["Authorization"])]
    value: Annotated[str, Field(min_length=1, max_length=4_096, pattern=r"^[ -~]+$", examples=["Bearer s3cr3t"])]


ClientId = Annotated[str, Field(min_length=1, max_length=512, pattern=r"^[ -~]+$", examples=["gatehouse"])]
Scope = Annotated[
    str, Field(min_length=1, max_length=1_000, pattern=r"^[!#-\[\]-~]+( [!#-\[\]-~]+)*$", examples=["tools:call"])
]
SendsResource = Annotated[
    bool, Field(description="Whether the token request specifies the server's URL as `resource` (RFC 8707).")
]


class OAuth(Body):
    """The gateway as an OAuth client: it fetches access tokens by the grant of client credentials. The secret is sealed
    and never returned."""

    token_url: Annotated[str, Field(min_length=1, max_length=2_000, examples=["https://login.example.com/token"])]
    client_id: ClientId
    client_secret: Annotated[str, Field(min_length=1, max_length=4_096, pattern=r"^[ -~]+$", examples=["s3cr3t"])]
    scope: Scope | None = None
    client_authentication: ClientAuthentication = "client_secret_basic"
    sends_resource: SendsResource = True


class Stdio(Body):
    """A command of the operator (`MCP_STDIO_COMMANDS`), which runs as a process of this machine. The values of
    `environment` are sealed and never returned."""

    command: Annotated[
        str,
        Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", description="The name of the command.", examples=["issue-tracker"]),
    ]
    environment: Annotated[
        dict[
            Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]{0,63}$")],
            Annotated[str, Field(min_length=1, max_length=4_096, pattern=r"^[^\x00]+$")],
        ],
        Field(
            max_length=50,
            description="Values of variables that the operator permits.",
            examples=[{"TRACKER_TOKEN": "s3cr3t"}],
        ),
    ] = Field(default_factory=dict)


class StdioShown(ResponseBody):
    """The command of a server, with the names of the variables that have values."""

    command: str
    environment: list[str]


class OAuthShown(ResponseBody):
    """The gateway's OAuth client without its secret."""

    token_url: str
    client_id: str
    scope: str | None
    client_authentication: ClientAuthentication
    sends_resource: bool


EndpointUrl = Annotated[str, Field(min_length=1, max_length=2_000)]


class UserOAuthShown(ResponseBody):
    """The gateway's OAuth client that acts for each user, without its secret."""

    client_id: str
    scope: str | None
    issuer: str | None
    authorization_url: str | None
    token_url: str | None
    revocation_url: str | None
    client_authentication: ClientAuthentication
    sends_resource: bool


class UserOAuth(Body):
    """The gateway as an OAuth client that acts for each user, after the user's consent (authorization code with PKCE).
    Without `authorization_url` and `token_url`, the endpoints are those in the metadata of `issuer`, which is then
    required. The secret is sealed and never returned."""

    client_id: ClientId
    client_secret: Annotated[
        str | None,
        Field(
            min_length=1, max_length=4_096, pattern=r"^[ -~]+$", examples=["s3cr3t"],
            description="Null for a public client.",
        ),
    ] = None  # fmt: skip
    scope: Scope | None = None
    issuer: Annotated[
        EndpointUrl | None,
        Field(description="The authorization server (RFC 8414), which its answers must name if it supports RFC 9207."),
    ] = None
    authorization_url: EndpointUrl | None = None
    token_url: EndpointUrl | None = None
    revocation_url: EndpointUrl | None = None
    client_authentication: ClientAuthentication = "client_secret_basic"
    sends_resource: SendsResource = True


class NewMcpServer(Body):
    name: Name
    description: Description | None = None
    url: Annotated[Url | None, Field(description="The address of the server. Exactly one of `url` and `stdio`.")] = None
    stdio: Annotated[Stdio | None, Field(description="Instead of `url`: a command of the operator.")] = None
    header: Header | None = None
    oauth: Annotated[OAuth | None, Field(description="Instead of `header`: an OAuth client.")] = None
    user_oauth: Annotated[
        UserOAuth | None,
        Field(description="Instead of `header` and `oauth`: an OAuth client that acts for each user."),
    ] = None
    access: Access = "restricted"
    enabled: Annotated[bool, Field(description="A disabled server cannot be called.")] = True
    timeout_ms: Annotated[
        int, Field(ge=100, le=600_000, description="The longest duration of one call, in milliseconds.")
    ] = 30_000


@partial
class McpServerUpdate(NewMcpServer):
    """Partial: omitted fields keep their values. Null clears `description`, and removes `header`, `oauth` or
    `user_oauth`. A server with a `url` keeps one, and a server with `stdio` too."""


class McpServer(ResponseBody):
    id: UUID
    tenant_id: UUID
    name: str
    description: str | None
    url: Annotated[str | None, Field(description="Null if the server is a process.")]
    stdio: Annotated[StdioShown | None, Field(description="The command of the server, if it is a process.")]
    header_name: Annotated[str | None, Field(description="The name of the header that authenticates the gateway.")]
    oauth: Annotated[OAuthShown | None, Field(description="The gateway's OAuth client at the server.")]
    user_oauth: Annotated[
        UserOAuthShown | None, Field(description="The gateway's OAuth client that acts for each user.")
    ]
    access: ServerAccess
    enabled: bool
    timeout_ms: int
    revision: Annotated[
        str | None, Field(description="The protocol revision of the server; null before its first refresh.")
    ]
    server_info: Annotated[dict[str, Any], Field(description="The name and version that the server states.")]
    faults: Annotated[list[str], Field(description="Tools of the last refresh that cannot be offered, and why.")]
    refreshed_at: Annotated[datetime | None, Field(description="When the tools were read.")]
    switched_off_at: Annotated[
        datetime | None, Field(description="When the kill switch was engaged; null if it is not.")
    ]
    switched_off_reason: Reason | None
    created_at: datetime
    updated_at: datetime


class SwitchedMcpServer(McpServer):
    propagation: PropagationStatus


class McpServerList(ResponseBody):
    mcp_servers: list[McpServer]
    total: int
    limit: int
    offset: int


class StdioCommand(ResponseBody):
    name: Annotated[str, Field(description="The `command` of `stdio`.", examples=["issue-tracker"])]
    environment: Annotated[
        list[str],
        Field(description="Variables whose values the organization may set.", examples=[["TRACKER_TOKEN"]]),
    ]


class StdioCommandList(ResponseBody):
    stdio_commands: list[StdioCommand]
