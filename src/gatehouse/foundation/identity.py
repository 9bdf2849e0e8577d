"""The identity of an authenticated caller."""

from enum import StrEnum
from typing import Final, Literal, NewType, get_args
from uuid import UUID

import msgspec

#: Only an authenticated caller or a named cross-tenant query yields a `TenantId`. Every query that is bound to a tenant
#: has a parameter of this type.
TenantId = NewType("TenantId", UUID)


class Role(StrEnum):
    ADMIN = "admin"
    AUDITOR = "auditor"
    USER = "user"


class CallerKind(StrEnum):
    """The kind of a credential. The value is also the `actor_type` of audit events."""

    USER = "user"
    API_KEY = "api_key"
    OAUTH_CLIENT = "oauth_client"
    #: an application to which a user has signed in; it acts for the user within its scopes
    APPLICATION = "application"
    SCIM = "scim"
    OUTPOST = "outpost"


#: scopes of tokens
Scope = Literal[
    "api:read", "api:write", "admin:read", "admin:write", "audit:read",
    "dlp:read", "chat:write", "mcp:call", "groups:read", "groups:write",
]  # fmt: skip
SCOPES: Final[frozenset[str]] = frozenset(get_args(Scope))
#: the scopes that another scope includes
_INCLUDED_IN: Final = {"mcp:call": "chat:write"}


class Caller(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A caller whose credential was valid when it was checked.

    `tenant_id` is None only for a platform-wide OAuth client. `scopes` is None for users and for API keys without
    scopes; it is a set for M2M tokens, applications, and API keys with scopes. `mfa_at` is the Unix time at which the
    caller last presented a second factor, or None.
    """

    kind: CallerKind
    tenant_id: TenantId | None
    user_id: UUID | None = None
    api_key_id: UUID | None = None
    client_id: UUID | None = None
    session_id: UUID | None = None
    #: the authorization of an application that its token belongs to
    grant_id: UUID | None = None
    scim_token_id: UUID | None = None
    outpost_id: UUID | None = None
    email: str | None = None
    role: Role = Role.USER
    operator: bool = False
    scopes: frozenset[str] | None = None
    #: ids of the groups that the user is a member of
    groups: tuple[UUID, ...] = ()
    rate_limit_tier: str = "standard"
    #: `oauth:{client_id}` or `user:{uuid}`
    rate_key: str = ""
    #: the organization's own limit in requests a minute, which replaces the path's limit for its users
    custom_rate_limit_rpm: int | None = None
    #: the organization's limit for scans in requests a minute; if set, scans are counted separately
    scan_rate_limit_rpm: int | None = None
    mfa_at: float | None = None
    #: whether sensitive operations require a second factor not older than `mfa_ttl_seconds`
    mfa_required: bool = False
    #: whether the user has a second factor that the organization allows
    has_factor: bool = False
    mfa_ttl_seconds: int = 900

    @property
    def actor_id(self) -> str:
        """Returns the actor's id for audit events: the user's id for a session or key, else the id of the OAuth client,
        SCIM token or outpost."""
        return str(self.user_id or self.client_id or self.scim_token_id or self.outpost_id)

    def has_scope(self, scope: str) -> bool:
        """Returns whether the caller has the scope. Callers without a list of scopes have every scope."""
        return self.scopes is None or scope in self.scopes or _INCLUDED_IN.get(scope) in self.scopes

    def has_fresh_factor(self, now: float) -> bool:
        """Returns whether the last second factor is recent enough at this Unix time."""
        return self.mfa_at is not None and now - self.mfa_at <= self.mfa_ttl_seconds
