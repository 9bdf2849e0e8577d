"""Queries across organizations. They run as the service role, because the organization is only known from their
result."""

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import text

from gatehouse.foundation.storage.database import Database
from gatehouse.portal.identity import OrgId
from gatehouse.portal.platform_link.openid_provider import Person


class Membership(NamedTuple):
    org_id: OrgId
    member_id: UUID
    name: str
    slug: str
    role: str


_MEMBERSHIPS: Final = text(
    "SELECT o.id, m.id, o.name, o.slug, m.role FROM members m"
    " JOIN organizations o ON o.id = m.org_id AND o.status = 'active'"
    " WHERE m.platform_sub = :sub AND m.platform_tenant_id = :tenant ORDER BY o.name, o.id"
)
_INVITATION: Final = text(
    "SELECT m.org_id FROM members m JOIN organizations o ON o.id = m.org_id AND o.status = 'active'"
    " WHERE m.invite_digest = :digest"
)


async def memberships(database: Database, person: Person) -> Sequence[Membership]:
    """Returns the person's memberships in active organizations, sorted by name."""
    async with database.service() as session:
        rows = await session.execute(_MEMBERSHIPS, {"sub": person.sub, "tenant": person.tenant_id})
        return [Membership(OrgId(row[0]), *row[1:]) for row in rows]


async def org_of_invitation(database: Database, digest: bytes) -> OrgId | None:
    async with database.service() as session:
        org_id = await session.scalar(_INVITATION, {"digest": digest})
    return None if org_id is None else OrgId(org_id)
