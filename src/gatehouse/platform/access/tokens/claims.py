"""Claims about a user, for a client that the user signed in to (OpenID Connect Core, 5.1 and 5.4)."""

from collections.abc import Collection
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation import emails
from gatehouse.platform.access.linking import is_address_proven
from gatehouse.platform.access.users import table as users
from gatehouse.platform.access.users.table import UserRow

#: claims of this platform in addition to the standard ones
PLATFORM_CLAIMS = ("tenant_id", "role")
BY_SCOPE = {
    "openid": ("sub", *PLATFORM_CLAIMS),
    "email": ("email", "email_verified"),
    "profile": ("name", "preferred_username", "updated_at"),
}


async def claims_for(session: AsyncSession, user: UserRow, scopes: Collection[str]) -> dict[str, Any]:
    """Return the claims that the scopes request. Claims without a value are left out.

    `email_verified` is true only while the user's organization has verified the address's domain, because an
    organization cannot vouch for another's addresses. For a self-registered user it is false until the user has
    confirmed the address by a mailed link, or an identity provider or a directory has linked the account.
    """
    is_verified = (
        user.email_verified
        and is_address_proven(user)
        and await users.has_proven_domain(session, emails.domain(user.email))
    )
    values_by_claim = {
        "sub": str(user.id),
        "tenant_id": str(user.tenant_id),
        "role": user.role,
        "email": emails.visible_address(user.email),
        "email_verified": is_verified,
        "name": user.display_name,
        "preferred_username": user.username,
        "updated_at": int(user.updated_at.timestamp()),
    }
    requested = [name for scope, names in BY_SCOPE.items() if scope in scopes for name in names]
    return {name: values_by_claim[name] for name in requested if values_by_claim[name] is not None}
