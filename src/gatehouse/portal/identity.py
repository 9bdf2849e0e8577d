"""Who calls the portal (reference 1, Authentication; decisions 8, Members)."""

from enum import StrEnum
from typing import Final, Literal, TypeAlias
from uuid import UUID

import msgspec

from gatehouse.foundation.identity import TenantId

#: Organizations are to the portal's data layer what tenants are to the platform's.
OrgId: TypeAlias = TenantId
Plan = Literal["starter", "business", "enterprise"]
Role = Literal["admin", "member"]

#: Requests a minute of an organization's tokens (decisions 7, Plan limits).
REQUESTS_PER_MINUTE: Final[dict[str, int]] = {"starter": 60, "business": 300, "enterprise": 1200}


class CallerKind(StrEnum):
    """How the caller proved itself; the value is also the audit row's `actor_type`."""

    ADMIN_KEY = "admin_key"
    #: a token that the admin key issued: it acts as an administrator of the organization
    ORG_TOKEN = "org_token"  # noqa: S105 - a kind, not a token
    #: a member's, by single sign-on
    MEMBER = "member"
    OUTPOST = "outpost"
    PLATFORM = "platform"


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """A caller whose credential was good when it was looked at. `id` is what the audit calls them: a key's fingerprint,
    a token's `jti`, a member's or an outpost's id. `org_id` is None for the admin key where the path names no
    organization. `jti`, `plan`, `issued_at` and `expires_at` (Unix times) are a token's. `family` is the
    `jti` of the first token, where this one came of refreshing it. `signed_in_at` is when a member signed in; of the
    admin key's tokens, when the first was issued."""

    kind: CallerKind
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
    """An owner is shown, and acts, as an administrator (reference 2, Cloud portal resources)."""
    return "member" if role == "member" else "admin"
