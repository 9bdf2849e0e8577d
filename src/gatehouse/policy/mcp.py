"""MCP servers of an organization: their approved tools, and who may call them (docs/mcp.md)."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, TypeAlias
from uuid import UUID

import msgspec

from gatehouse.foundation.identity import Caller
from gatehouse.foundation.settings import EgressPolicy
from gatehouse.policy.model_access import AccessType

SubjectType: TypeAlias = Literal["group", "user", "api_key", "oauth_client"]
#: a group, a user, an API key or an OAuth client
Subject: TypeAlias = tuple[SubjectType, UUID]
ServerAccess: TypeAlias = Literal["restricted", "open"]
ClientAuthentication: TypeAlias = Literal["client_secret_basic", "client_secret_post"]
ToolStatus: TypeAlias = Literal["quarantined", "approved", "rejected"]

_RESERVED_HEADERS: Final = frozenset(
    {
        "accept", "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect",
        "host", "keep-alive", "last-event-id", "te", "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip
_RESERVED_HEADER_PREFIX: Final = "mcp-"


def is_reserved_header(name: str) -> bool:
    """Return whether the gateway or the protocol sets this header in requests to MCP servers."""
    return name.lower() in _RESERVED_HEADERS or name.lower().startswith(_RESERVED_HEADER_PREFIX)


class McpToolRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An approved tool. `definition` is its approved definition as JSON, and `hash` the hash of `definition`."""

    id: UUID
    name: str
    hash: str
    definition: str
    #: whether a person must approve each call
    approval_required: bool = False


class McpAccessRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One rule for the access to a server. `tool` is the name of a tool; None for all tools."""

    subject_type: SubjectType
    subject_id: UUID
    access_type: AccessType
    tool: str | None = None


class McpOAuthRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway as an OAuth client of an MCP server. `sealed_secret` is the sealed secret of the client."""

    token_url: str
    client_id: str
    sealed_secret: str
    scope: str | None = None
    client_authentication: ClientAuthentication = "client_secret_basic"
    #: whether the address of the server is sent as `resource` (RFC 8707)
    sends_resource: bool = True


class McpStdioRecord(msgspec.Struct, frozen=True):
    """A command of the operator. `sealed_environment` are the organization's sealed values of variables."""

    command: str
    sealed_environment: str | None = None

    @property
    def definition(self) -> str:
        """A text that changes with the command or the values. It does not show them."""
        return hashlib.sha256(f"{self.command}\0{self.sealed_environment}".encode()).hexdigest()


class McpUserOAuthRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway as an OAuth client that acts for each user at an MCP server, after the user's consent. Without
    `authorization_url` and `token_url`, the endpoints are those in the metadata of `issuer`. `sealed_secret` is None
    for a public client."""

    client_id: str
    sealed_secret: str | None = None
    scope: str | None = None
    issuer: str | None = None
    authorization_url: str | None = None
    token_url: str | None = None
    revocation_url: str | None = None
    client_authentication: ClientAuthentication = "client_secret_basic"
    #: whether the address of the server is sent as `resource` (RFC 8707)
    sends_resource: bool = True


class McpServerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An enabled MCP server. `name` is its name in the path `/mcp/{name}`. `revision` is the protocol revision that it
    has. `sealed_header` is the sealed header that authenticates the gateway, or None. At most one of
    `sealed_header`, `oauth` and `user_oauth` is set. If `stdio` is set, the server is a process, and `url` is empty."""

    id: UUID
    name: str
    url: str
    revision: str
    access: ServerAccess = "restricted"
    timeout_ms: int = 30_000
    sealed_header: str | None = None
    oauth: McpOAuthRecord | None = None
    stdio: McpStdioRecord | None = None
    user_oauth: McpUserOAuthRecord | None = None
    #: the operator's stricter egress policy for this organization
    egress_policy: EgressPolicy | None = None
    tools: tuple[McpToolRecord, ...] = ()
    rules: tuple[McpAccessRecord, ...] = ()

    @property
    def secret_key(self) -> str:
        """Return the name that the seal of the header is bound to."""
        return mcp_secret_key(self.id)


def mcp_secret_key(server_id: UUID) -> str:
    """Return the name that the seal of a server's header is bound to. It is never the name of a provider's credential,
    because those have no colon."""
    return f"mcp:{server_id}"


def mcp_client_key(server_id: UUID) -> str:
    """Return the name to which the sealed secret of the gateway's OAuth client at a server is bound."""
    return f"mcp-client:{server_id}"


def mcp_environment_key(server_id: UUID) -> str:
    """Return the name to which the sealed variables of a server's command are bound."""
    return f"mcp-environment:{server_id}"


class _SubjectRules(msgspec.Struct, frozen=True, gc=False):
    """The tools that the rules of one subject allow and deny. None stands for all tools."""

    allowed: frozenset[str | None]
    denied: frozenset[str | None]


class McpServer(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled server. `tools` are in the order of their names."""

    record: McpServerRecord
    tools: Mapping[str, McpToolRecord]
    rules: Mapping[Subject, _SubjectRules]

    def permits(self, caller: Caller, tool: str) -> bool:
        """Return whether the caller may call a tool. A DENY in any rule wins. A restricted server needs an ALLOW."""
        granted = self.record.access == "open"
        if not self.rules:
            return granted
        for subject in subjects_of(caller):
            rules = self.rules.get(subject)
            if rules is None:
                continue
            if tool in rules.denied or None in rules.denied:
                return False
            granted = granted or tool in rules.allowed or None in rules.allowed
        return granted

    def permitted(self, caller: Caller) -> Iterator[McpToolRecord]:
        """Yield the tools that the caller may call, by name. The rules are read once, because an organization may have
        many servers with many tools."""
        allowed: set[str | None] = {None} if self.record.access == "open" else set()
        denied: set[str | None] = set()
        for subject in subjects_of(caller) if self.rules else ():
            if (rules := self.rules.get(subject)) is not None:
                allowed |= rules.allowed
                denied |= rules.denied
        if not allowed or None in denied:
            return
        names: Iterable[str] = self.tools
        if None not in allowed:
            names = sorted(name for name in allowed if name is not None and name in self.tools)
        for name in names:
            if name not in denied:
                yield self.tools[name]


def subjects_of(caller: Caller) -> Iterator[Subject]:
    """Yield the subjects whose rules apply to the caller."""
    for group in caller.groups:
        yield "group", group
    if caller.user_id is not None:
        yield "user", caller.user_id
    if caller.api_key_id is not None:
        yield "api_key", caller.api_key_id
    if caller.client_id is not None:
        yield "oauth_client", caller.client_id


def compile_mcp_servers(records: Iterable[McpServerRecord]) -> Mapping[str, McpServer]:
    """Return the servers by name. They and their tools are in the order of their names."""
    return {
        record.name: McpServer(
            record=record,
            tools={tool.name: tool for tool in sorted(record.tools, key=lambda tool: tool.name)},
            rules=_rules(record.rules),
        )
        for record in sorted(records, key=lambda record: record.name)
    }


def _rules(records: Iterable[McpAccessRecord]) -> Mapping[Subject, _SubjectRules]:
    tools: dict[Subject, dict[AccessType, set[str | None]]] = defaultdict(lambda: {"ALLOW": set(), "DENY": set()})
    for record in records:
        tools[record.subject_type, record.subject_id][record.access_type].add(record.tool)
    return {
        subject: _SubjectRules(allowed=frozenset(rules["ALLOW"]), denied=frozenset(rules["DENY"]))
        for subject, rules in tools.items()
    }
