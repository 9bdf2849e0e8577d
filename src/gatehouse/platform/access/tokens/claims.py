"""What a client is told of a person who signed in to it (OpenID Connect Core, 5.1 and 5.4)."""

from collections.abc import Collection
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation import emails
from gatehouse.platform.access.linking import vouched
from gatehouse.platform.access.users import table as users
from gatehouse.platform.access.users.table import UserRow

#: beside the standard's: what an application of this platform needs to know whom it deals with
OWN = ("tenant_id", "role")
BY_SCOPE = {
    "openid": ("sub", *OWN),
    "email": ("email", "email_verified"),
    "profile": ("name", "preferred_username", "updated_at"),
}


async def of(session: AsyncSession, user: UserRow, scopes: Collection[str]) -> dict[str, Any]:
    """The claims that these scopes ask for. What a person has not got is left out.

    `email_verified` is true only while the person's organization has proven the address's domain: no organization can
    vouch for an address of another's. Of a person who registered, the organization has not said that the address is
    theirs, so it is false until an identity provider or a directory has linked the account.
    """
    proven = user.email_verified and vouched(user) and await users.proven(session, emails.domain(user.email))
    known = {
        "sub": str(user.id),
        "tenant_id": str(user.tenant_id),
        "role": user.role,
        "email": emails.shown(user.email),
        "email_verified": proven,
        "name": user.display_name,
        "preferred_username": user.username,
        "updated_at": int(user.updated_at.timestamp()),
    }
    asked = [name for scope, names in BY_SCOPE.items() if scope in scopes for name in names]
    return {name: known[name] for name in asked if known[name] is not None}
