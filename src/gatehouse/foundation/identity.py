"""Who calls: the one type that authentication makes and everything else reads (reference 1, Authentication)."""

from enum import StrEnum
from typing import Final, Literal, NewType, get_args
from uuid import UUID

import msgspec

#: Comes from an authenticated caller or from a named cross-tenant query, and every tenant-bound query takes one.
TenantId = NewType("TenantId", UUID)


class Role(StrEnum):
    ADMIN = "admin"
    AUDITOR = "auditor"
    USER = "user"


class CallerKind(StrEnum):
    """How the caller proved itself; the value is also the audit event's `actor_type`."""

    USER = "user"
    API_KEY = "api_key"
    OAUTH_CLIENT = "oauth_client"
    SCIM = "scim"
    OUTPOST = "outpost"


#: What a token may be for (reference 1, Authentication, 3).
Scope = Literal[
    "api:read", "api:write", "admin:read", "admin:write", "audit:read",
    "dlp:read", "chat:write", "groups:read", "groups:write",
]  # fmt: skip
SCOPES: Final[frozenset[str]] = frozenset(get_args(Scope))


class Caller(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A caller whose credential was good when it was looked at.

    `tenant_id` is None only for a platform-wide OAuth client. `scopes` is None for callers that a role judges (users
    and their API keys) and a set for M2M tokens. `mfa_at` is the Unix time of the last second factor, or None.
    """

    kind: CallerKind
    tenant_id: TenantId | None
    user_id: UUID | None = None
    api_key_id: UUID | None = None
    client_id: UUID | None = None
    session_id: UUID | None = None
    scim_token_id: UUID | None = None
    outpost_id: UUID | None = None
    email: str | None = None
    role: Role = Role.USER
    operator: bool = False
    scopes: frozenset[str] | None = None
    #: ids of the groups that the user is a member of
    groups: tuple[UUID, ...] = ()
    rate_limit_tier: str = "standard"
    #: `oauth:{client_id}` or `user:{uuid}` (reference 1, Rate limiting, 1)
    rate_key: str = ""
    #: the organization's own limit, replacing the resolved one for users (reference 1, Rate limiting, 8)
    custom_rate_limit_rpm: int | None = None
    #: the organization's limit of scans, which are then counted by themselves
    scan_rate_limit_rpm: int | None = None
    mfa_at: float | None = None
    #: whether sensitive operations ask this caller for a second factor not older than `mfa_ttl_seconds`
    mfa_required: bool = False
    #: whether the user has a second factor to show that the organization allows
    has_factor: bool = False
    mfa_ttl_seconds: int = 900

    @property
    def actor_id(self) -> str:
        """The id that audit events carry: the user behind a session or a key, else the machine."""
        return str(self.user_id or self.client_id or self.scim_token_id or self.outpost_id)

    def has_scope(self, scope: str) -> bool:
        """Whether a scope permits this: always true for callers that a role judges."""
        return self.scopes is None or scope in self.scopes

    def has_fresh_factor(self, now: float) -> bool:
        """Whether a second factor was shown that is not too old yet at this Unix time."""
        return self.mfa_at is not None and now - self.mfa_at <= self.mfa_ttl_seconds
