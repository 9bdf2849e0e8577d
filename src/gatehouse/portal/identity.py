"""The callers of the portal (docs/portal.md)."""

from enum import StrEnum
from typing import Final, Literal, TypeAlias
from uuid import UUID

import msgspec

from gatehouse.foundation.identity import TenantId

#: Organizations are to the portal's data layer what tenants are to the platform's.
OrgId: TypeAlias = TenantId
Plan = Literal["starter", "business", "enterprise"]
Role = Literal["admin", "member"]

#: Requests a minute of an organization's tokens, by plan.
REQUESTS_PER_MINUTE: Final[dict[str, int]] = {"starter": 60, "business": 300, "enterprise": 1200}


class PortalCallerKind(StrEnum):
    """How the caller authenticated; the value is also the audit row's `actor_type`."""

    ADMIN_KEY = "admin_key"
    #: a token that the admin key issued: it acts as an administrator of the organization
    ORG_TOKEN = "org_token"  # noqa: S105 - a kind, not a token
    #: a member's, by single sign-on
    MEMBER = "member"
    OUTPOST = "outpost"
    PLATFORM = "platform"


class PortalCaller(msgspec.Struct, frozen=True, kw_only=True):
    """An authenticated caller. `id` is the caller in the audit: a key's fingerprint, a token's `jti`, a member's or an
    outpost's id. `org_id` is None for the admin key if the path names no organization. `jti`, `plan`, `issued_at` and
    `expires_at` (Unix times) are the token's. `family` is the `jti` of the first token in a series of refreshed ones.
    `signed_in_at` is when a member signed in, or when the first of the admin key's tokens was issued."""

    kind: PortalCallerKind
    id: str
    org_id: OrgId | None = None
    role: Role = "member"
    member_id: UUID | None = None
    jti: str | None = None
    family: str | None = None
    plan: Plan | None = None
    issued_at: int = 0
    expires_at: int = 0
    signed_in_at: int = 0


def shown_role(role: str) -> Role:
    """Returns the role that is shown and enforced: an owner is an administrator."""
    return "member" if role == "member" else "admin"
