"""The callers of the portal (docs/portal.md)."""

from enum import StrEnum
from typing import Final, Literal, TypeAlias
from uuid import UUID

import msgspec

from gatehouse.foundation.identity import TenantId

#: In the portal, the id of an organization has the same purpose as the id of a tenant in the platform.
OrgId: TypeAlias = TenantId
Plan = Literal["starter", "business", "enterprise"]
Role = Literal["admin", "member"]

#: Maximum number of requests a minute with the tokens of an organization, by plan.
REQUESTS_PER_MINUTE: Final[dict[str, int]] = {"starter": 60, "business": 300, "enterprise": 1200}


class PortalCallerKind(StrEnum):
    """The kind of a caller. The value is also the `actor_type` of audit rows."""

    ADMIN_KEY = "admin_key"
    #: a token that the admin key has issued; it has the rights of an administrator of the organization
    ORG_TOKEN = "org_token"  # noqa: S105 - a kind, not a token
    #: a token that a member has received by single sign-on
    MEMBER = "member"
    OUTPOST = "outpost"
    PLATFORM = "platform"


class PortalCaller(msgspec.Struct, frozen=True, kw_only=True):
    """An authenticated caller.

    `id` identifies the caller in audit rows: the fingerprint of a key, the `jti` of a token, or the id of a member or
    outpost. `org_id` is None for the admin key if the path contains no organization. `jti`, `plan`, `issued_at` and
    `expires_at` are those of the token. `family` is the `jti` of the first token in a series of refreshed tokens.
    `signed_in_at` is the time at which a member signed in, or at which the admin key issued the first token of the
    series. All times are Unix times.
    """

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

    @property
    def actor_id(self) -> str:
        """Returns the actor's id for audit events."""
        return self.id


def shown_role(role: str) -> Role:
    """Returns the role that is shown and enforced. An owner is shown as an administrator."""
    return "member" if role == "member" else "admin"
